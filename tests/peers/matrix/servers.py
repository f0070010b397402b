"""The servers of the matrix: what each is made with, how it is reached, and which eras it has."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from .places import LOOPBACK, Places, free_port

Json = Any
LEGACY, MODERN = "legacy", "modern"
STDIO, HTTP, SSE = "stdio", "http", "sse"
START_SECONDS = 30


@dataclass(frozen=True)
class Server:
    """One server over one transport."""

    made_with: str
    kind: str
    transport: str
    eras: tuple[str, ...]
    command: tuple[str, ...]
    url: str | None = None

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return f"{self.kind}-{self.transport}"

    @property
    def entry(self) -> Json:
        """Its entry in `servers:`."""
        if self.url is None:
            # Silence is short, and whoever is only slow is not asked in another era as well.
            timeouts = {"probe": "1s" if self.kind == "silent" else "30s"}
            return {"command": self.command[0], "args": list(self.command[1:]), "timeouts": timeouts}
        return {"transport": "sse" if self.transport == SSE else "streamable-http", "url": self.url}

    @property
    def target(self) -> Json:
        """How a client reaches it directly."""
        match self.transport:
            case "stdio":
                return {"command": list(self.command)}
            case "http":
                return {"url": self.url}
        return {"sse": self.url}


def servers(places: Places) -> list[Server]:
    """All of them, each on a port of its own."""
    node, one, two = str(places.node), str(places.python(1)), str(places.python(2))
    python = str(places.programs / "server_python.py")
    both, old = (LEGACY, MODERN), (LEGACY,)
    found: list[Server] = []

    def add(made_with: str, kind: str, eras: tuple[str, ...], transports: tuple[str, ...], *command: str) -> None:
        for transport in transports:
            port = None if transport == STDIO else free_port()
            path = "sse" if transport == SSE else "mcp"
            url = f"http://127.0.0.1:{port}/{path}" if port else None
            words = (*command, transport) + ((str(port),) if port else ())
            found.append(Server(made_with, kind, transport, eras, words, url))

    web = (STDIO, HTTP, SSE)
    add("TypeScript SDK 1.x", "ts1", old, web, node, str(places.programs / "server_v1.mjs"))
    add("TypeScript SDK 2.x", "ts2", both, (STDIO, HTTP), node, str(places.programs / "server_v2.mjs"))
    add("Python `mcp` 1.x", "py1", old, web, one, python, "mcp")
    add("Python `mcp` 2.x", "py2", both, (STDIO, HTTP), two, python, "mcp")
    add("Python `mcp` 2.x", "py2", old, (SSE,), two, python, "mcp")
    add("Python `fastmcp`", "fastmcp", both, (STDIO, HTTP), two, python, "fastmcp")
    add("Python `fastmcp`", "fastmcp", old, (SSE,), two, python, "fastmcp")
    add("rmcp", "rmcp", both, (STDIO, HTTP), str(places.rmcp), "serve")
    found += [everything(places, transport) for transport in web]
    for kind in ("exits", "silent"):
        stub = (one, str(places.programs / "stub.py"), kind, one, python, "mcp", "stdio")
        found.append(Server(f"a stub that {STUBS[kind]}", kind, STDIO, old, stub))
    return found


STUBS = {"exits": "exits on `server/discover`", "silent": "never answers `server/discover`"}


def everything(places: Places, transport: str) -> Server:
    """The reference server, which takes its port from the environment."""
    words = (str(places.node), "--require", str(LOOPBACK), str(places.everything))
    if transport == STDIO:
        return Server("server-everything", "everything", STDIO, (LEGACY,), (*words, STDIO))
    port, path = free_port(), "mcp" if transport == HTTP else "sse"
    mode = "streamableHttp" if transport == HTTP else "sse"
    command = ("/usr/bin/env", f"PORT={port}", *words, mode)
    return Server("server-everything", "everything", transport, (LEGACY,), command, f"http://127.0.0.1:{port}/{path}")


@contextlib.asynccontextmanager
async def running(places: Places, chosen: list[Server]) -> AsyncIterator[None]:
    """Those that listen, started; ended at the end."""
    started: list[subprocess.Popen[bytes]] = []
    with open(places.scratch / "servers.log", "ab") as log:
        try:
            for server in chosen:
                if server.url is not None:
                    started.append(subprocess.Popen(
                        server.command, env=places.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            for server in chosen:
                if server.url is not None:
                    await listening(server)
            yield
        finally:
            for process in started:
                process.kill()
                process.wait()


async def listening(server: Server) -> None:
    """Waits until something listens on its port."""
    port = int(server.url.split(":")[2].split("/")[0])
    for _ in range(START_SECONDS * 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{server.name} does not listen after {START_SECONDS} s")
