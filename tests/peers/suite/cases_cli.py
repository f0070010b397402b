"""The first steps of a person: add a real server, call it, grant it, verify the log."""

from __future__ import annotations

import json
import re
import subprocess

from . import compare
from .case import Bench
from .parts import LEGACY, Call, Json

ECHO = ("everything.echo", "--json", '{"message":"hi"}')


def add(bench: Bench, *command: str) -> subprocess.CompletedProcess[str]:
    """`mcp add everything -- COMMAND`, run where npx finds the installed package."""
    return bench.sandbox.run("mcp", "add", "everything", "--", *command, cwd=bench.catalogue.root / "npm")


def call(bench: Bench, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`mcp call everything.echo …`, from the same place."""
    return bench.sandbox.run("mcp", "call", *(arguments or ECHO), cwd=bench.catalogue.root / "npm")


def expect(done: subprocess.CompletedProcess[str], code: int) -> str:
    """Asserts the exit code; gives what was said on both outputs."""
    assert done.returncode == code, f"exit {done.returncode}, not {code}: {done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


async def add_then_ask_then_grant(bench: Bench) -> None:
    """Without a label an ask (exit 3) with its id and both ways to grant; with the label the answer."""
    first_steps(bench, bench.part.command, *bench.part.args)


async def add_with_npx(bench: Bench) -> None:
    """The line that the server's own README prints."""
    first_steps(bench, "npx", "-y", "@modelcontextprotocol/server-everything")


def first_steps(bench: Bench, *command: str) -> None:
    """The whole story with one command line for the server."""
    bench.sandbox.configure({}, allow=None)
    expect(add(bench, *command), 0)
    asked = expect(call(bench), 3)
    ask = re.search(r"\bask_[0-9a-f]{8,}\b", asked)
    assert ask, asked
    assert f"toolgate approvals grant {ask.group()}" in asked, asked
    assert '"mcp.call:everything' in asked and "personas.default.capabilities.allow" in asked, asked
    again = expect(call(bench), 3)
    assert ask.group() in again, "the same call opened a second ask"

    bench.sandbox.configure({}, allow=["mcp.call:everything"])
    granted = call(bench)
    expect(granted, 0)
    assert granted.stdout == "Echo: hi\n", granted.stdout
    expect(bench.sandbox.run("audit", "verify"), 0)
    happened = [row["details"].get("event") for row in bench.sandbox.events()]
    assert happened.count("mcp_called") == 1, f"a call left without a grant: {happened}"


async def json_output_is_the_result(bench: Bench) -> None:
    """`--output json` prints the result as the server gave it."""
    bench.sandbox.configure_part(bench.part)
    chosen = [call for call in bench.part.calls if call.tool in ("get-structured-content", "get-tiny-image")]
    async with bench.directly(LEGACY) as session:
        for one in chosen:
            direct = await session.call(one)
            done = bench.sandbox.run(
                "mcp", "call", f"everything.{one.tool}", "--json", json.dumps(one.arguments), "--output", "json")
            failed = bool(direct["result"].get("isError"))
            expect(done, 1 if failed else 0)
            got: Json = {"result": json.loads(done.stdout)}
            wanted: Json = {"result": direct["result"]}
            bench.check(compare.difference(one.tool, compare.bare(wanted), compare.bare(got)))


async def add_says_what_is_pinned(bench: Bench) -> None:
    """A name that was removed and is added with another command: what `mcp add` says of its pins is true."""
    bench.sandbox.configure({}, allow=["mcp.call:everything"])
    expect(add(bench, bench.part.command, *bench.part.args), 0)
    expect(bench.sandbox.run("mcp", "remove", "everything"), 0)
    said = expect(add(bench, bench.part.command, "--no-warnings", *bench.part.args), 0)
    status = json.loads(bench.sandbox.run("mcp", "status", "everything", "--json").stdout)["servers"][0]
    pins = {tool["pin"] for tool in status["tools"]}
    if "pinned as they are now" in said:
        assert pins == {"matches"}, f"`mcp add` said that the tools are pinned as they are now, but their pins: {pins}"
        expect(call(bench), 0)
    else:
        assert "mcp pin everything --accept" in said, said


async def a_good_start_is_quiet(bench: Bench) -> None:
    """Adding and calling a healthy server warns of nothing; several times, because it may depend on timing."""
    bench.sandbox.configure({}, allow=["mcp.call:everything"])
    runs = [add(bench, bench.part.command, *bench.part.args), *(call(bench) for _ in range(5))]
    for done in runs:
        expect(done, 0)
    said = [line for done in runs for line in done.stderr.splitlines()]
    warnings = [line for line in said if " WARN " in line or " ERROR " in line]
    assert not warnings, "\n".join(warnings)


async def none_is_none(bench: Bench) -> None:
    """`plugins.bundle: none` and no other policy: nothing is listed and nothing can be called."""
    entry = json.loads(json.dumps({bench.part.name: bench.part.entry()}))
    bench.sandbox.configure(entry)
    settings = json.loads(bench.sandbox.config.read_text())
    settings["plugins"] = {"bundle": "none"}
    bench.sandbox.config.write_text(json.dumps(settings))
    async with bench.through() as session:
        assert await session.list_tools() == []
        reply = await session.call(Call("echo", {"message": "hi"}), bench.prefix)
    refused = "error" in reply or reply["result"].get("isError") is True
    assert refused and "Echo" not in json.dumps(reply), reply
