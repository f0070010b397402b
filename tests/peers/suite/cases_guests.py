"""Plugins that bring the runtime of their language: what they judge, and that a sealed WASI holds nothing.

Each guest is made here by the tool of its language, signed by a key of this test, and loaded as a policy
beside a real server. Told to look around, it asks for all that a process has and says what it found.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .case import Bench
from .client import Session
from .parts import Call, Json

# Making a component takes half a minute, compiling it as long again; a debug build on a busy machine more.
SECONDS = 900
STEP_SECONDS = 300
GUESTS = Path(__file__).resolve().parent.parent / "guests"
CONTRACT = GUESTS.parent.parent.parent / "wit"
MANIFEST = """manifest = 1
name = "peers/{name}"
version = "1.0.0"
sequence = 1
kind = "policy"
decisions = ["deny"]
min-host = "0.1.0"
"""
SEALED = '[capabilities]\nwasi = "sealed"\n'


class Guest:
    """A plugin in the making: its directory in the sandbox, and the words it reads."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.directory = bench, bench.sandbox.root / name
        self.directory.mkdir()
        self.name = name
        self.wit = bench.sandbox.root / "wit"
        shutil.copytree(GUESTS / "wit", self.wit, dirs_exist_ok=True)
        shutil.copytree(CONTRACT, self.wit / "deps/toolgate", dirs_exist_ok=True)

    def make(self, command: list[str], cwd: Path) -> None:
        """Runs the tool of its language, which writes `component.wasm`."""
        done = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=STEP_SECONDS, check=False,
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout[-500:]}{done.stderr[-500:]}"

    def sign(self, sealed: bool = True) -> None:
        """Signs what was made, with or without the declaration that it needs WASI."""
        manifest = MANIFEST.format(name=self.name) + (SEALED if sealed else "")
        (self.directory / "plugin.toml").write_text(manifest)
        run = self.bench.sandbox.run
        key = self.bench.sandbox.root / "author.key"
        if not key.exists():
            made = run("key", "new", "--seed", "--json", str(key))
            assert made.returncode == 0, made.stderr
            (key.parent / "author.json").write_text(made.stdout)
        done = run("plugin", "sign", str(self.directory), "--key", str(key))
        assert done.returncode == 0, done.stderr

    def configure(self) -> None:
        """Loads it beside the part of this test; it may deny and nothing else."""
        public = json.loads((self.bench.sandbox.root / "author.json").read_text())["public"]
        plugins = {
            "trust": [{"plugins": "peers/*", "keys": [public]}],
            "load": [{"plugin": str(self.directory), "decisions": ["deny"]}],
        }
        part = self.bench.part
        self.bench.sandbox.configure({part.name: part.entry()}, plugins=plugins)

    def refused(self, *words: str) -> None:
        """It is not loaded, and these words say why."""
        done = self.bench.sandbox.run("plugin", "verify", str(self.directory), seconds=STEP_SECONDS)
        assert done.returncode == 5, (done.returncode, done.stdout, done.stderr)
        assert all(word in done.stderr for word in words), done.stderr

    def compiled(self, call: Call) -> None:
        """One call by the command line, which compiles it off the client's clock; it passes."""
        words = ("mcp", "call", f"{self.bench.part.name}.{call.tool}", "--json", json.dumps(call.arguments))
        done = self.bench.sandbox.run(*words, seconds=STEP_SECONDS)
        assert done.returncode == 0, (done.returncode, done.stderr)


async def a_javascript_policy_works_and_finds_nothing(bench: Bench) -> None:
    """A policy in JavaScript judges; no variable, argument, preopen, socket or fetch is there for it."""
    guest = Guest(bench, "javascript")
    build = [str(bench.catalogue.node), str(GUESTS / "build.mjs"), str(GUESTS / "policy.js"), str(guest.wit),
             "looking-policy", str(guest.directory / "component.wasm")]
    npm = bench.catalogue.npm
    # One that brings wasi:http is refused before it is compiled; one that does not declare WASI by its size.
    guest.make([*build, "http"], npm)
    guest.sign()
    guest.configure()
    guest.refused("wasi:http/")
    guest.make(build, npm)
    guest.sign(sealed=False)
    guest.refused("the limit is 8388608")
    guest.sign()
    guest.compiled(Call("echo", {"message": "hi"}))

    def said(word: str) -> Call:
        return Call("echo", {"message": word})

    with listener() as (port, met):
        async with bench.through() as session:
            passing = [said(f"hi {number}") for number in range(4)]
            await judges(session, bench.prefix, said("forbidden"), "javascript says no", passing)
            looked = [await look(session, bench.prefix, said("look around")) for _ in range(2)]
            # Without the feature a fetch has nothing to call and ends the guest: a fault, so a denial.
            denied = text(await session.call(said(f"fetch http://127.0.0.1:{port}/"), bench.prefix))
            assert "peers/javascript failed (trap)" in denied, denied
        assert not met, "something was dialled"
    nothing(looked, {"tcp": "access-denied", "tcp6": "access-denied", "udp": "access-denied"})
    printed(bench, guest, said("look around"), "the javascript guest looked around")


async def a_python_policy_works_and_finds_nothing(bench: Bench) -> None:
    """A policy in Python judges; what its standard library asks the system for is not there."""
    guest = Guest(bench, "python")
    shutil.copy(GUESTS / "policy.py", guest.directory)
    tool = [str(bench.catalogue.bin / "componentize-py"), "-d", str(guest.wit), "-w", "call-policy"]
    guest.make([*tool, "componentize", "policy", "-o", "component.wasm"], guest.directory)
    guest.sign(sealed=False)
    guest.configure()
    guest.refused("the limit is 8388608")
    guest.sign()
    guest.compiled(Call("get_current_time", {"timezone": "UTC"}))

    def said(word: str) -> Call:
        return Call("get_current_time", {"timezone": word})

    with listener() as (port, met):
        async with bench.through() as session:
            passing = [said(zone) for zone in ("UTC", "Asia/Tokyo", "Europe/Warsaw", "Asia/Kathmandu")]
            await judges(session, bench.prefix, said("forbidden"), "python says no", passing)
            looked = [await look(session, bench.prefix, said(f"look around {port}")) for _ in range(2)]
        assert not met, "something was dialled"
    absent, forbidden = "FileNotFoundError", "PermissionError"
    nothing(looked, {
        "directory": absent, "file": absent, "written": absent, "tcp": forbidden, "udp": forbidden,
        "name": "gaierror", "network": "URLError",
    })
    printed(bench, guest, said(f"look around {port}"), "the python guest looked around")


async def judges(session: Session, prefix: str, forbidden: Call, denial: str, passing: list[Call]) -> None:
    """What it says no to does not pass, everything else does, and calls at once do not meet."""
    denied = await session.call(forbidden, prefix)
    assert denied["result"]["isError"] and denial in text(denied), denied
    replies = await asyncio.gather(*(session.call(call, prefix) for call in passing))
    assert not any(reply["result"].get("isError") for reply in replies), replies


async def look(session: Session, prefix: str, call: Call) -> Json:
    """What it says of its surroundings: a denial whose reason is JSON."""
    said = text(await session.call(call, prefix))
    return json.loads(said[said.index("{"):said.rindex("}") + 1])


def nothing(looked: list[Json], refused: dict[str, str]) -> None:
    """It asked for everything and found nothing; what has an answer of its own for that gave it."""
    for seen in looked:
        assert len(seen["asked"]) >= 6 and seen["found"] == {}, seen
        assert refused.items() <= seen["refused"].items(), seen
        # Documented: clocks tick and random numbers are random.
        assert abs(seen["now"] - time.time()) < SECONDS, seen
    assert looked[0]["random"] != looked[1]["random"], looked


def printed(bench: Bench, guest: Guest, call: Call, line: str) -> None:
    """What it prints is a line of the operator's log under its name, and nowhere else."""
    words = ("-v", "mcp", "call", f"{bench.part.name}.{call.tool}", "--json", json.dumps(call.arguments))
    done = bench.sandbox.run(*words, seconds=STEP_SECONDS)
    assert done.returncode == 3 and line not in done.stdout, done.stdout
    logged = [row for row in done.stderr.splitlines() if line in row]
    assert len(logged) == 1 and f"peers/{guest.name}" in logged[0], done.stderr


def text(reply: Json) -> str:
    """The text of a result."""
    return reply["result"]["content"][0]["text"]


@contextmanager
def listener() -> Iterator[tuple[int, list[Json]]]:
    """A port of the loopback address, and everybody who dialled it."""
    met: list[Json] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def accept() -> None:
            try:
                while True:
                    connection, address = server.accept()
                    met.append(address)
                    connection.close()
            except OSError:
                return
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], met
        server.shutdown(socket.SHUT_RDWR)
