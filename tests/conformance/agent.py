#!/usr/bin/env python3
"""The client under test: an agent that reaches the suite's server through `toolgate serve --server`.

The suite starts it with the URL of its server as the last argument. Everything that the suite's server gets to
see is sent by Toolgate; this agent only asks for it: it lists what is offered, uses each thing once, and
answers questions as a person would who takes what a form proposes. It knows no scenario by name, so that
nothing here can be right for one of them only.

Variables: `CONFORMANCE_TOOLGATE` is the binary, `CONFORMANCE_DATA` a data directory to begin from (so that
plugins are not compiled for each scenario), and those that the suite sets.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

Json = Any
MODERN = "2026-07-28"
REPLY_SECONDS = 20
# How long a server that shows nothing is given to show something.
PATIENCE_SECONDS = 3
MAX_ROUNDS = 5
SERVER = "under-test"
# What is refused unless the operator says otherwise.
FORWARD = {"sampling": "forward", "roots": "forward", "logging": "forward"}
CAPABILITIES = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
INFO = {"name": "conformance-agent", "version": "1.0.0"}


def main() -> int:
    """Uses the server behind the URL, and ends."""
    url, revision = sys.argv[-1], os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory(prefix="toolgate-conformance-") as place:
        process = start(Path(place), url)
        try:
            agent = Agent(process, revision)
            agent.greet()
            used = use_everything(agent, context)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            code = process.wait(30)
        print((Path(place) / "log").read_text(), file=sys.stderr)
    print(f"used {used} things; toolgate ended with {code}")
    return code


def start(place: Path, url: str) -> subprocess.Popen[str]:
    """Toolgate with this one server, everything allowed."""
    data = place / "data"
    if template := os.environ.get("CONFORMANCE_DATA"):
        shutil.copytree(template, data)
    config = place / "toolgate.yaml"
    config.write_text(json.dumps({
        "data_dir": str(data),
        "servers": {SERVER: {"url": url, **FORWARD}},
        "personas": {"default": {"servers": [SERVER], "capabilities": {"allow": ["mcp.call:*"]}}},
    }))
    config.chmod(0o600)
    command = [os.environ["CONFORMANCE_TOOLGATE"], "--config", str(config), "serve", "--stdio", "--no-share", "--server", SERVER]
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "RUST_LOG": "debug"}
    with open(place / "log", "w") as log:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
        )


class Agent:
    """One connection over stdio, in the era of the revision."""

    def __init__(self, process: subprocess.Popen[str], revision: str) -> None:
        self.process, self.revision, self.last = process, revision, 0
        self.replies: queue.Queue[Json] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def greet(self) -> None:
        """The handshake, in the era that has one."""
        if self.revision == MODERN:
            self.ask("server/discover", {})
            return
        self.ask("initialize", {
            "protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": INFO,
        })
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Json) -> Json:
        """A request with its answer; rounds of questions in between are answered."""
        params = dict(params)
        for _ in range(MAX_ROUNDS):
            message = self.once(method, params)
            result = message.get("result", {})
            if result.get("resultType") != "input_required":
                return message
            asked = result.get("inputRequests", {})
            params["inputResponses"] = {
                key: answer(one["method"], one.get("params", {})) for key, one in asked.items()
            }
            params.pop("requestState", None)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise RuntimeError(f"{method} asks without end")

    def once(self, method: str, params: Json) -> Json:
        """One request with its reply."""
        self.last += 1
        if self.revision == MODERN:
            params = {**params, "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
                "io.modelcontextprotocol/clientInfo": INFO,
            }}
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        until = time.monotonic() + REPLY_SECONDS
        while True:
            message = self.replies.get(timeout=max(0.01, until - time.monotonic()))
            if message.get("id") == self.last:
                return message

    def read(self) -> None:
        """Sorts what comes: replies wait, questions are answered at once."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            print(line, end="")
            if "method" not in message:
                self.replies.put(message)
            elif "id" in message:
                result = answer(message["method"], message.get("params", {}))
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def write(self, message: Json) -> None:
        """One line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


def use_everything(agent: Agent, context: Json) -> int:
    """Lists and uses what is there; gives how many things were used."""
    tools = listed(agent, "tools/list", "tools")
    calls = context.get("toolCalls") or [
        {"name": tool["name"], "arguments": arguments(tool, tools)} for tool in tools
    ]
    for call in calls:
        agent.ask("tools/call", call)
    resources = listed(agent, "resources/list", "resources", 0)
    for resource in resources:
        agent.ask("resources/read", {"uri": resource["uri"]})
    prompts = listed(agent, "prompts/list", "prompts", 0)
    for prompt in prompts:
        named = {argument["name"]: "text" for argument in prompt.get("arguments", [])}
        agent.ask("prompts/get", {"name": prompt["name"], "arguments": named})
    return len(calls) + len(resources) + len(prompts)


def listed(agent: Agent, method: str, member: str, patience: float = PATIENCE_SECONDS) -> list[Json]:
    """All pages; a server that is only being reached shows nothing at first."""
    until = time.monotonic() + patience
    while True:
        found: list[Json] = []
        cursor: Json = {}
        while True:
            result = agent.ask(method, cursor).get("result", {})
            found += result.get(member, [])
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
        if found or time.monotonic() > until:
            return found
        time.sleep(0.2)


def arguments(tool: Json, tools: list[Json]) -> Json:
    """Something for each argument that a tool wants; a schema, where it wants one, is that of the first tool."""
    schema = tool.get("inputSchema", {})
    wanted = schema.get("required", [])
    values = {name: value(schema.get("properties", {}).get(name, {})) for name in wanted}
    if "schema" in values:
        values["schema"] = tools[0]["inputSchema"]
    return values


def answer(method: str, params: Json) -> Json:
    """A person who takes what a form proposes, a model of few words, and one root."""
    if method == "elicitation/create":
        properties = params.get("requestedSchema", {}).get("properties", {})
        return {"action": "accept", "content": {name: value(schema) for name, schema in properties.items()}}
    if method == "sampling/createMessage":
        return {
            "role": "assistant", "model": "none", "stopReason": "endTurn",
            "content": {"type": "text", "text": "an answer"},
        }
    if method == "roots/list":
        return {"roots": [{"uri": "file:///work", "name": "work"}]}
    return {}


def value(schema: Json) -> Json:
    """The default of a schema, else a value of its type."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    plain = {"string": "text", "integer": 2, "number": 2, "boolean": True, "array": [], "object": {}}
    return plain.get(schema.get("type"), "text")


if __name__ == "__main__":
    sys.exit(main())
