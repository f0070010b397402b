"""Toolgate as the cells reach it: one listening gateway with every server, and one process for each transparent
connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .places import Places, free_port
from .servers import Server

Json = Any
START_SECONDS = 90
STOP_SECONDS = 15


@dataclass
class Gateway:
    """How clients get through."""

    places: Places
    url: str
    token: str
    template: Path
    used: int = field(default=0)

    @property
    def all_servers(self) -> Json:
        """The gateway that has every server."""
        return {"url": self.url, "token": self.token}

    def alone(self, server: Server) -> Json:
        """One server, as if there were no gateway; each time in a fresh data directory."""
        self.used += 1
        place = self.places.scratch / f"alone/{self.used}"
        shutil.copytree(self.template, place / "data")
        config = configure(place, [server])
        toolgate = str(self.places.toolgate)
        command = [toolgate, "--config", str(config), "serve", "--stdio", "--no-share", "--server", server.name]
        log = place / "log"
        # The shell only keeps the log: it becomes Toolgate.
        return {"command": ["/bin/sh", "-c", 'exec "$@" 2>"$0"', str(log), *command]}


@contextlib.asynccontextmanager
async def gateway(places: Places, servers: list[Server]) -> AsyncIterator[Gateway]:
    """A listening gateway with these servers, stopped with TERM at the end."""
    template = places.scratch / "template"
    async with listening(places, template, []) as (_, _token):
        pass
    place = places.scratch / "gateway"
    shutil.copytree(template / "data", place / "data")
    async with listening(places, place, servers) as (url, token):
        yield Gateway(places, url, token, template / "data")


@contextlib.asynccontextmanager
async def listening(places: Places, place: Path, servers: list[Server]) -> AsyncIterator[tuple[str, str]]:
    """`serve --listen` on a free loopback port; gives URL and token."""
    config = configure(place, servers)
    port = free_port()
    command = [str(places.toolgate), "--config", str(config), "serve", "--listen", f"127.0.0.1:{port}"]
    with open(place / "log", "ab") as log:
        process = subprocess.Popen(command, env=places.environment, cwd=place, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
    try:
        await wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp", (place / "data/token").read_text().strip()
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the gateway did not end within {STOP_SECONDS} s of TERM") from None


async def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until Toolgate listens."""
    for _ in range(START_SECONDS * 20):
        assert process.poll() is None, f"toolgate ended at once with exit {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        await asyncio.sleep(0.05)
    raise AssertionError(f"toolgate does not listen after {START_SECONDS} s")


def configure(place: Path, servers: list[Server]) -> Path:
    """A configuration that allows everything."""
    place.mkdir(parents=True, exist_ok=True)
    settings: Json = {"data_dir": str(place / "data")}
    if servers:
        persona = {"servers": [server.name for server in servers], "capabilities": {"allow": ["mcp.call:*"]}}
        settings |= {"servers": {server.name: server.entry for server in servers}, "personas": {"default": persona}}
    config = place / "toolgate.yaml"
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    return config
