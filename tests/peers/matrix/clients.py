"""The clients of the matrix: a process for each SDK that takes jobs, so that none is started for each cell."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import Any

from .places import Places
from .servers import HTTP, LEGACY, MODERN, SSE, STDIO

Json = Any
JOB_SECONDS = 90
# The longest answer that is read, in bytes.
LINE = 1 << 26


@dataclass(frozen=True)
class Client:
    """One client, in one era."""

    made_with: str
    kind: str
    language: str
    era: str
    transports: tuple[str, ...]


CLIENTS = (
    Client("TypeScript SDK 1.x", "ts1", "typescript", LEGACY, (STDIO, HTTP, SSE)),
    Client("TypeScript SDK 2.x", "ts2", "typescript", LEGACY, (STDIO, HTTP, SSE)),
    Client("TypeScript SDK 2.x", "ts2", "typescript", MODERN, (STDIO, HTTP, SSE)),
    Client("Python `mcp` 1.x", "py1", "python", LEGACY, (STDIO, HTTP, SSE)),
    Client("Python `mcp` 2.x", "py2", "python", MODERN, (STDIO, HTTP, SSE)),
    Client("rmcp", "rmcp", "rust", LEGACY, (STDIO, HTTP)),
    Client("rmcp", "rmcp", "rust", MODERN, (STDIO, HTTP)),
)


def sibling(client: Client) -> Client:
    """The legacy client of the same language."""
    return next(other for other in CLIENTS if other.language == client.language and other.era == LEGACY)


class Drivers:
    """The processes, and what they were asked."""

    def __init__(self, places: Places) -> None:
        node, programs = str(places.node), places.programs
        self.places = places
        self.commands = {
            "ts1": [node, str(programs / "client.mjs"), "v1"],
            "ts2": [node, str(programs / "client.mjs"), "v2"],
            "py1": [str(places.python(1)), str(programs / "client.py")],
            "py2": [str(places.python(2)), str(programs / "client.py")],
            "rmcp": [str(places.rmcp), "drive"],
        }
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.waiting: dict[int, asyncio.Future[Json]] = {}
        self.readers: list[asyncio.Task[None]] = []
        self.numbers = itertools.count(1)

    async def __aenter__(self) -> Drivers:
        with open(self.places.scratch / "clients.log", "ab") as log:
            for kind, command in self.commands.items():
                self.processes[kind] = await asyncio.create_subprocess_exec(
                    *command, env=self.places.environment, limit=LINE,
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log)
                self.readers.append(asyncio.create_task(self.read(self.processes[kind])))
        return self

    async def __aexit__(self, *_: Any) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()
        for reader in self.readers:
            reader.cancel()

    async def read(self, process: asyncio.subprocess.Process) -> None:
        """Gives each answer to whoever waits for it."""
        while line := await process.stdout.readline():
            said = json.loads(line)
            waiting = self.waiting.pop(said["id"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(said)

    async def ask(self, client: Client, target: Json, requests: list[Json]) -> list[Json]:
        """The answers to these requests on one connection; fails if there was none or one is missing."""
        number = next(self.numbers)
        job = {"id": number, "era": client.era, "env": self.places.environment, **target, "requests": requests}
        self.waiting[number] = asyncio.get_running_loop().create_future()
        stdin = self.processes[client.kind].stdin
        stdin.write(json.dumps(job).encode() + b"\n")
        await stdin.drain()
        said = await asyncio.wait_for(self.waiting[number], JOB_SECONDS)
        assert "failed" not in said, said["failed"]
        assert len(said["answers"]) == len(requests), said
        return said["answers"]
