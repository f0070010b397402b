"""How servers start, are found out, fail and end behind Toolgate."""

from __future__ import annotations

import json
import re
import signal
import time

import anyio
import httpx2

from . import processes, sandbox as sandboxes
from .case import Bench
from .client import connect
from .parts import LEGACY, MODERN, Call, Json

ECHO = Call("echo", {"message": "hi"})
SLOW = Call("trigger-long-running-operation", {"duration": 30, "steps": 30})


async def probed_era(bench: Bench) -> None:
    """The probe finds the newest era of the server; a setting holds it to one."""
    wanted = {"auto": bench.part.upstream_era, LEGACY: LEGACY}
    wanted |= {MODERN: MODERN} if MODERN in bench.part.eras else {}
    for protocol, era in wanted.items():
        bench.sandbox.configure_part(bench.part, protocol=protocol)
        status = server_status(bench)
        assert status["state"] == "connected", status
        assert status["era"] == ("legacy" if era == LEGACY else "modern"), (protocol, status["era"])


async def wrong_era_is_refused(bench: Bench) -> None:
    """A server that lacks the era it is held to fails with a reason, soon, and is not spoken to otherwise."""
    bench.sandbox.configure_part(bench.part, protocol=MODERN)
    started = time.monotonic()
    status = server_status(bench)
    assert status["state"] == "failed" and status["detail"], status
    assert time.monotonic() - started < 30


def server_status(bench: Bench) -> Json:
    """`mcp status --json` of this part."""
    done = bench.sandbox.run("mcp", "status", bench.part.name, "--json")
    return json.loads(done.stdout)["servers"][0]


async def closing_input_ends_it(bench: Bench) -> None:
    """A client that closes the pipe leaves no process, and the exit is a clean one."""
    bench.sandbox.configure_part(bench.part)
    process = bench.sandbox.start("serve", "--stdio", "--no-share", pipes=True)
    assert process.stdin and process.stdout
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "peers", "version": "0"}}}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    for message in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, listing):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    while json.loads(process.stdout.readline()).get("id") != 2:
        pass
    assert len(processes.descendants(process.pid)) >= 1, "the server was not started"
    process.stdin.close()
    code = process.wait(sandboxes.STOP_SECONDS)
    process.stdout.close()
    assert code == 0, f"exit {code}"
    left = processes.wait_for_none(seconds=1)
    assert not left, left


async def kill_nine_leaves_no_orphan(bench: Bench) -> None:
    """Toolgate is killed in the middle of a call: the server's processes end nevertheless."""
    bench.sandbox.configure_part(bench.part)
    await kill_in_a_call(bench)


async def kill_nine_under_npx_leaves_no_orphan(bench: Bench) -> None:
    """The same behind npx, which puts a shell and itself between."""
    npm = bench.catalogue.root / "npm"
    entry = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"], "cwd": str(npm)}
    bench.sandbox.configure({bench.part.name: entry})
    await kill_in_a_call(bench)


async def kill_in_a_call(bench: Bench) -> None:
    """Kills a listening Toolgate while a call is under way."""
    with bench.sandbox.listening() as listener:
        async with anyio.create_task_group() as group:
            async def hang() -> None:
                async with connect(listener.http(), LEGACY) as session:
                    await session.call(SLOW, bench.prefix, progress=steps)

            steps: list[tuple[float, float | None, str | None]] = []
            group.start_soon(hang)
            with anyio.fail_after(30):
                while not steps:
                    await anyio.sleep(0.05)
            before = processes.descendants(listener.process.pid)
            assert before, "no server runs"
            listener.process.send_signal(signal.SIGKILL)
            listener.process.wait()
            group.cancel_scope.cancel()
        left = processes.wait_for_none(seconds=6)
        assert not left, f"survived kill -9 of Toolgate: {[process.command for process in left]}"


async def a_server_that_dies_is_started_again(bench: Bench) -> None:
    """Its open call ends with an error that says so; the next call reaches a new process."""
    bench.sandbox.configure_part(bench.part)
    async with bench.through() as session:
        await session.call(ECHO, bench.prefix)
        replies: list[Json] = []
        steps: list[tuple[float, float | None, str | None]] = []

        async def doomed() -> None:
            replies.append(await session.call(SLOW, bench.prefix, progress=steps))

        async with anyio.create_task_group() as group:
            group.start_soon(doomed)
            with anyio.fail_after(15):
                while not steps:
                    await anyio.sleep(0.05)
            victims = [process for process in processes.descendants() if "server-everything" in process.command]
            processes.end([process for process in victims if "toolgate" not in process.command.split()[0]])
        error = replies[0]["result"]["_meta"]["toolgate/error"]
        assert replies[0]["result"]["isError"] is True and error["code"] == "may_have_run", replies
        again = await session.call(ECHO, bench.prefix)
        assert again["result"]["content"][0]["text"] == "Echo: hi", again


async def both_eras_at_once(bench: Bench) -> None:
    """One endpoint serves clients of both eras at the same time."""
    bench.sandbox.configure_part(bench.part)
    with bench.sandbox.listening() as listener:
        async def client(era: str, index: int) -> None:
            async with connect(listener.http(), era) as session:
                for turn in range(5):
                    text = f"{era} {index} {turn}"
                    reply = await session.call(Call("echo", {"message": text}), bench.prefix)
                    assert reply["result"]["content"][0]["text"] == f"Echo: {text}", reply

        async with anyio.create_task_group() as group:
            for index in range(3):
                for era in (LEGACY, MODERN, "auto"):
                    group.start_soon(client, era, index)
    bench.sandbox.verify_audit()


async def a_token_is_needed(bench: Bench) -> None:
    """Without the token of the data directory nothing is answered, and no server is started."""
    bench.sandbox.configure_part(bench.part)
    with bench.sandbox.listening() as listener:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient() as http:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {listener.token}"}):
                reply = await http.post(listener.url, json=body, headers={**accept, **headers})
                assert reply.status_code == 401, (headers, reply.status_code)
        assert not processes.descendants(listener.process.pid), "a server was started for nobody"


async def secrets_stay(bench: Bench) -> None:
    """A server sees the names that it needs and its entry's own, not the environment of Toolgate."""
    bench.sandbox.configure_part(bench.part, env={"GIVEN": "yes"})
    async with bench.through() as session:
        reply = await session.call(Call("get-env"), bench.prefix)
    seen = json.loads(reply["result"]["content"][0]["text"])
    assert seen.get("GIVEN") == "yes" and "PATH" in seen, sorted(seen)
    assert "PEERS_SECRET" not in seen, "the environment of Toolgate reached the server"


async def long_names_are_shortened(bench: Bench) -> None:
    """A name that would not fit gets a digest, stays below 50 characters, and can be called."""
    name = "a-server.with-a-name-that-is-rather-long"
    bench.sandbox.configure({name: bench.part.entry()})
    direct = await bench.direct(bench.part.upstream_era)
    async with bench.through() as session:
        tools = await session.list_tools()
        names = [tool["name"] for tool in tools]
        assert len(set(names)) == len(direct.tools), names
        odd = [shown for shown in names if not re.fullmatch(r"[A-Za-z0-9_-]{1,49}", shown)]
        assert not odd and all(re.search(r"_[0-9a-f]{10}$", shown) for shown in names), names
        echo = next(tool["name"] for tool in tools if tool.get("title") == "Echo Tool")
        reply = await session.call(Call(echo, {"message": "hi"}))
    assert reply["result"]["content"][0]["text"] == "Echo: hi", reply


async def several_servers_at_once(bench: Bench) -> None:
    """All parts behind one Toolgate: one listing, each tool reaches its own server."""
    names = [name for name in ("everything", "filesystem", "time") if not bench.catalogue.why_missing(name)]
    parts = [bench.catalogue.part(name, bench.files) for name in names]
    bench.sandbox.configure({part.name: part.entry() for part in parts})
    async with bench.through() as session:
        tools = await session.list_tools()
        for part in parts:
            assert any(tool["name"].startswith(f"{part.name}__") for tool in tools), (part.name, len(tools))
        for part in parts:
            call = part.parallel[0]
            reply = await session.call(call, f"{part.name}__")
            assert "result" in reply and not reply["result"].get("isError"), (part.name, reply)


async def sessions_upstream_are_ended(bench: Bench) -> None:
    """Each session that Toolgate opened on an HTTP server is ended with DELETE when Toolgate stops."""
    bench.sandbox.configure_part(bench.part)
    async with bench.through() as session:
        await session.call(ECHO, bench.prefix)
    log = bench.upstream_log.read_text()
    opened = set(re.findall(r"Session initialized with ID: (\S+)", log))
    ended = set(re.findall(r"session termination request for session (\S+)", log))
    assert opened and opened == ended, f"opened {sorted(opened)}, ended {sorted(ended)}"


async def a_server_that_comes_later(bench: Bench) -> None:
    """A call while the HTTP server is away is an error with a reason; once it is there, calls pass."""
    port = sandboxes.free_port()
    part = bench.catalogue.part("everything-http", bench.files, f"http://127.0.0.1:{port}/mcp")
    bench.sandbox.configure({part.name: part.entry()})
    done = bench.sandbox.run("mcp", "call", f"{part.name}.echo", "--json", '{"message":"hi"}')
    assert done.returncode == 1 and part.name in done.stderr, (done.returncode, done.stderr)
    with bench.everything_over_http() as url:
        bench.sandbox.configure({part.name: part.entry(url=url)})
        done = bench.sandbox.run("mcp", "call", f"{part.name}.echo", "--json", '{"message":"hi"}')
        assert (done.returncode, done.stdout.strip()) == (0, "Echo: hi"), (done.returncode, done.stderr)
