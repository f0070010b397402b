#!/usr/bin/env python3
"""An MCP server over stdio that has everything the suite asks a server for, under the names it uses.

It speaks one era (`--era legacy|modern`), so that a run shows what Toolgate makes of it in that era. What the
things return is what the suite's own descriptions ask for; nothing here knows that Toolgate is in between.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from typing import Any

from jobs import EXTENSION, Jobs
from offers import AUDIO, IMAGE, PROMPTS, RESOURCES, TEMPLATES, TOOLS, elicitation

Json = Any
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
INFO = {"name": "conformance-fixture", "version": "1.0.0"}
CAPABILITIES = {
    "tools": {"listChanged": True}, "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True}, "completions": {}, "logging": {},
}
KEY = os.urandom(32)
STEP_SECONDS = 0.05
ANSWER_SECONDS = 20


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class Server:
    """One connection."""

    def __init__(self, era: str) -> None:
        self.modern = era == "modern"
        self.output, self.state = threading.Lock(), threading.Lock()
        self.asked: dict[Json, Json] = {}
        self.answered = threading.Condition(self.state)
        self.listening: dict[Json, Json] = {}
        self.left_out: set[str] = set()
        self.jobs = Jobs()
        self.last = 0

    def serve(self) -> None:
        """Reads until the input ends; each request has a thread of its own."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self.answered:
                    self.asked[message["id"]] = message
                    self.answered.notify_all()
            elif "id" in message:
                threading.Thread(target=self.request, args=(message,), daemon=True).start()
            elif message["method"] == "notifications/cancelled":
                with self.state:
                    self.listening.pop(message["params"].get("requestId"), None)

    def write(self, message: Json) -> None:
        """One line."""
        with self.output:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def tell(self, method: str, params: Json) -> None:
        """A notification."""
        self.write({"method": method, "params": params})

    def ask(self, method: str, params: Json) -> Json:
        """A request to the client, as the earlier era has them."""
        with self.state:
            self.last += 1
            id_ = f"asked-{self.last}"
        self.write({"id": id_, "method": method, "params": params})
        with self.answered:
            self.answered.wait_for(lambda: id_ in self.asked, ANSWER_SECONDS)
            message = self.asked.pop(id_, {"error": {"message": "nobody answered"}})
        if "error" in message:
            raise Refused(-32603, f"{method}: {message['error'].get('message')}")
        return message["result"]

    def request(self, message: Json) -> None:
        """One request of the client."""
        params = message.get("params", {})
        try:
            if self.modern != (f"{META}protocolVersion" in params.get("_meta", {})):
                raise self.wrong_era()
            result = self.answer(message["id"], message["method"], params)
        except Refused as refused:
            self.write({"id": message["id"], "error": refused.error})
            return
        if result is None:
            return
        if self.modern:
            result = {"resultType": "complete", **result}
        self.write({"id": message["id"], "result": result})

    def wrong_era(self) -> Refused:
        """What a server of one era says to the other."""
        if self.modern:
            return Refused(-32022, "unsupported protocol version", {"supported": [MODERN], "requested": "2025-11-25"})
        return Refused(-32601, "method not found")

    def answer(self, id_: Json, method: str, params: Json) -> Json | None:
        """The result of a method; none where it comes later."""
        match method:
            case "server/discover" if self.modern:
                meta = {f"{META}serverInfo": INFO}
                capabilities = {**CAPABILITIES, "extensions": {EXTENSION: {}}}
                return self.cached({"supportedVersions": [MODERN], "capabilities": capabilities, "_meta": meta})
            case "initialize" if not self.modern:
                return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
            case "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" if not self.modern:
                return {}
            case "tools/list":
                return self.cached({"tools": self.shown(TOOLS)})
            case "prompts/list":
                return self.cached({"prompts": self.shown(PROMPTS)})
            case "resources/list":
                return self.cached({"resources": RESOURCES})
            case "resources/templates/list":
                return self.cached({"resourceTemplates": TEMPLATES})
            case "resources/read":
                return self.cached({"contents": [read(params["uri"])]})
            case "prompts/get":
                return self.prompt(params)
            case "completion/complete":
                return {"completion": {"values": ["test", "testing"], "total": 2, "hasMore": False}}
            case "tools/call":
                return self.call(params)
            case "tasks/get" | "tasks/update" | "tasks/cancel" if self.modern:
                return self.jobs.answer(method, params) or self.unknown_task()
            case "subscriptions/listen" if self.modern:
                return self.listen(id_, params["notifications"])
        raise Refused(-32601, f"method not found: {method}")

    def unknown_task(self) -> Json:
        """A task that is not there."""
        raise Refused(-32602, "unknown task")

    def cached(self, result: Json) -> Json:
        """A result with the hints that the later era wants."""
        return {**result, "ttlMs": 0, "cacheScope": "private"} if self.modern else result

    def shown(self, items: list[Json]) -> list[Json]:
        """What is not taken out at the moment."""
        with self.state:
            return [item for item in items if item["name"] not in self.left_out]

    def listen(self, id_: Json, wanted: Json) -> None:
        """Opens a subscription, which ends when it is cancelled."""
        with self.state:
            self.listening[id_] = wanted
        self.tell("notifications/subscriptions/acknowledged", {
            "notifications": wanted, "_meta": {f"{META}subscriptionId": id_},
        })

    def toggle(self, name: str, member: str, method: str) -> Json:
        """Takes something out of a list or puts it back, and says so to those who want to know."""
        with self.state:
            self.left_out ^= {name}
            listening = [id_ for id_, wanted in self.listening.items() if wanted.get(member)]
        if not self.modern:
            self.tell(method, {})
        for id_ in listening:
            self.tell(method, {"_meta": {f"{META}subscriptionId": id_}})
        return text("changed")

    def prompt(self, params: Json) -> Json:
        """prompts/get."""
        given = params.get("arguments", {})
        match params["name"]:
            case "test_simple_prompt":
                return messages({"type": "text", "text": "This is a simple prompt for testing."})
            case "test_prompt_with_arguments":
                said = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
                return messages({"type": "text", "text": said})
            case "test_prompt_with_embedded_resource":
                resource = {
                    "uri": given.get("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                }
                process = {"type": "text", "text": "Please process the embedded resource above."}
                return messages({"type": "resource", "resource": resource}, process)
            case "test_prompt_with_image":
                return messages(IMAGE, {"type": "text", "text": "Please analyze the image above."})
            case "test_input_required_result_prompt" if self.modern:
                asked = {"user_context": elicitation("What context should the prompt use?", context="string")}
                if given_to(params, asked) is None:
                    return required(asked)
                context = params["inputResponses"]["user_context"]["content"]["context"]
                return messages({"type": "text", "text": f"Context: {context}"})
        raise Refused(-32602, f"unknown prompt: {params['name']}")

    def call(self, params: Json) -> Json:
        """tools/call."""
        name, given, meta = params["name"], params.get("arguments", {}), params.get("_meta", {})
        if name in PLAIN:
            return PLAIN[name]
        if name in self.jobs.tools and self.modern:
            return self.jobs.call(name, given, params) or required({"user_name": elicitation("Who?", name="string")})
        if name.startswith("test_input_required_result_") and self.modern:
            return rounds(name, params)
        match name:
            case "greet":
                return text(f"Hello, {given['name']}!")
            case "test_tool_with_progress":
                for step in (0, 50, 100):
                    if "progressToken" in meta:
                        self.tell("notifications/progress", {
                            "progressToken": meta["progressToken"], "progress": step, "total": 100,
                        })
                    time.sleep(STEP_SECONDS)
                return text("progress reported")
            case "test_tool_with_logging" | "test_logging_tool":
                for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                    if not self.modern or f"{META}logLevel" in meta:
                        self.tell("notifications/message", {"level": "info", "logger": "fixture", "data": said})
                    time.sleep(STEP_SECONDS)
                return text("logged")
            case "test_trigger_tool_change":
                return self.toggle("test_comes_and_goes", "toolsListChanged", "notifications/tools/list_changed")
            case "test_trigger_prompt_change":
                return self.toggle("test_comes_and_goes_too", "promptsListChanged", "notifications/prompts/list_changed")
            case "test_missing_capability":
                return needs_sampling(meta)
            case "test_streaming_elicitation" if self.modern:
                asked = {"answer": elicitation("A question", text="string")}
                return required(asked) if given_to(params, asked) is None else text("answered")
            case "test_sampling" if not self.modern:
                content = {"role": "user", "content": {"type": "text", "text": given["prompt"]}}
                result = self.ask("sampling/createMessage", {"messages": [content], "maxTokens": 100})
                return text(f"LLM response: {result['content'].get('text')}")
            case _ if name in QUESTIONS and not self.modern:
                result = self.ask("elicitation/create", QUESTIONS[name](given)["params"])
                content = json.dumps(result.get("content"))
                return text(f"Elicitation completed: action={result['action']}, content={content}")
        raise Refused(-32602, f"unknown tool: {name}")


def rounds(name: str, params: Json) -> Json:
    """The tools that ask in rounds. The state is sealed: it comes back from a client that nobody trusts."""
    state = params.get("requestState")
    match name.removeprefix("test_input_required_result_"):
        case "elicitation":
            asked = {"user_name": elicitation("What is your name?", name="string")}
            answers = given_to(params, asked)
            return required(asked) if answers is None else text(f"Hello, {answers['user_name']['content']['name']}!")
        case "sampling":
            answers = given_to(params, SAMPLING)
            return required(SAMPLING) if answers is None else text(answers["capital_question"]["content"]["text"])
        case "list_roots":
            answers = given_to(params, ROOTS)
            return required(ROOTS) if answers is None else text(json.dumps(answers["client_roots"]["roots"]))
        case "request_state" | "tampered_state":
            asked = {"confirm": elicitation("Please confirm", ok="boolean")}
            if state is None or given_to(params, asked) is None:
                return required(asked, seal("confirm"))
            unseal(state)
            return text("state-ok")
        case "multiple_inputs":
            asked = {"user_name": elicitation("What is your name?", name="string"), **GREETING, **ROOTS}
            if state is None or given_to(params, asked) is None:
                return required(asked, seal("several"))
            unseal(state)
            return text("all inputs received")
        case "multi_round":
            if state is None:
                return required({"step1": elicitation("Step 1: What is your name?", name="string")}, seal("one"))
            if unseal(state) == "one":
                return required({"step2": elicitation("Step 2: What is your favorite color?", color="string")}, seal("two"))
            return text("both rounds done")
        case "capabilities":
            declared = params.get("_meta", {}).get(f"{META}clientCapabilities", {})
            asked = {**(SAMPLING if "sampling" in declared else {})}
            if "elicitation" in declared:
                asked["user_name"] = elicitation("What is your name?", name="string")
            return required(asked) if asked and given_to(params, asked) is None else text("nothing to ask")
    raise Refused(-32602, f"unknown tool: {name}")


SAMPLING = {"capital_question": {"method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
    "maxTokens": 100,
}}}
GREETING = {"greeting": {"method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Generate a greeting"}}], "maxTokens": 50,
}}}
ROOTS = {"client_roots": {"method": "roots/list", "params": {}}}


def given_to(params: Json, asked: Json) -> Json | None:
    """The answers, if there is one of the right kind to each question."""
    given = params.get("inputResponses")
    if not isinstance(given, dict) or not all(isinstance(given.get(key), dict) for key in asked):
        return None
    return given


def required(asked: Json, state: str | None = None) -> Json:
    """A result that asks."""
    return {"resultType": "input_required", "inputRequests": asked, **({} if state is None else {"requestState": state})}


def seal(word: str) -> str:
    """A state that only this process can have made."""
    mark = hmac.new(KEY, word.encode(), hashlib.sha256).digest()
    return f"{word}.{base64.urlsafe_b64encode(mark).decode()}"


def unseal(state: str) -> str:
    """The word of a state; an altered one is refused."""
    word = state.split(".")[0]
    if not hmac.compare_digest(state.encode(), seal(word).encode()):
        raise Refused(-32602, "requestState was not made here")
    return word


def needs_sampling(meta: Json) -> Json:
    """A tool that will not work for a client that cannot sample."""
    if "sampling" not in meta.get(f"{META}clientCapabilities", {}):
        raise Refused(-32021, "this tool needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return text("sampling is there")


def read(uri: str) -> Json:
    """One resource."""
    if uri == "test://static-text":
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": IMAGE["data"]}
    if uri == "test://watched-resource":
        return {"uri": uri, "mimeType": "text/plain", "text": "Watched."}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        one = uri.split("/")[3]
        said = {"id": one, "templateTest": True, "data": f"Data for ID: {one}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(said)}
    raise Refused(-32602, "resource not found", {"uri": uri})


def text(said: str) -> Json:
    """A result of one text."""
    return {"content": [{"type": "text", "text": said}]}


def messages(*contents: Json) -> Json:
    """A prompt."""
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def resource(uri: str, kind: str, said: str) -> Json:
    """An embedded resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


PLAIN = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [AUDIO]},
    "test_embedded_resource": {"content": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ]},
    "test_multiple_content_types": {"content": [
        {"type": "text", "text": "Multiple content types test:"}, IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]},
    "test_error_handling": {**text("This tool intentionally returns an error for testing"), "isError": True},
    "test_reconnection": text("Reconnection test completed"),
    "test_comes_and_goes": text("here"),
    "test_custom_header": text("received"),
    "json_schema_2020_12_tool": text("received"),
}

QUESTIONS = {
    "test_elicitation": lambda given: elicitation(given["message"], username="string", email="string"),
    "test_elicitation_sep1034_defaults": lambda _: {"params": {
        "message": "Please take or change the defaults", "requestedSchema": {"type": "object", "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }},
    }},
    "test_elicitation_sep1330_enums": lambda _: {"params": {
        "message": "Please choose", "requestedSchema": {"type": "object", "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": [
                {"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]},
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": [
                {"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"},
                {"const": "value3", "title": "Third Choice"},
            ]}},
        }},
    }},
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--era", choices=["legacy", "modern"], required=True)
    Server(parser.parse_args().era).serve()
