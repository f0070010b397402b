"""One cell: a server, a client, and what arrived through Toolgate compared with what arrives without it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from . import equal
from .asked import behind, original, requests
from .clients import CLIENTS, Client, Drivers, sibling
from .gateway import Gateway
from .servers import HTTP, LEGACY, SSE, STDIO, Server

Json = Any
CELL_SECONDS = 120


@dataclass(frozen=True)
class Cell:
    """A server and a client."""

    server: Server
    client: Client

    @property
    def name(self) -> str:
        """What `--only` looks at."""
        return f"{self.server.name}/{self.client.kind}/{self.client.era}"


class Runner:
    """Runs cells; direct results are asked for once."""

    def __init__(self, servers: list[Server], through: Gateway, drivers: Drivers) -> None:
        self.servers, self.through, self.drivers = servers, through, drivers
        self.found: dict[str, list[str]] = {}
        self.compared: dict[str, int] = {}
        self.direct_results: dict[tuple[str, str, str], asyncio.Task[list[Json]]] = {}

    async def run(self, cell: Cell) -> None:
        """One cell; whatever happens, the next one runs."""
        self.found[cell.name], self.compared[cell.name] = [], 0
        try:
            async with asyncio.timeout(CELL_SECONDS):
                await self.compare(cell)
        except Exception as error:  # noqa: BLE001
            self.found[cell.name].append(f"{type(error).__name__}: {error}")

    async def compare(self, cell: Cell) -> None:
        """Both ways through Toolgate."""
        server, client = cell.server, cell.client
        asked = requests(server.kind, cell.name + "/all", own=False)
        got = await self.drivers.ask(client, self.through.all_servers, [behind(server.name, one) for one in asked])
        await self.judge(cell, "behind the gateway", asked, [original(server.name, one) for one in got])
        asked = requests(server.kind, cell.name + "/alone", own=server.transport == STDIO)
        got = await self.drivers.ask(client, self.through.alone(server), asked)
        await self.judge(cell, "alone", asked, got)

    async def judge(self, cell: Cell, way: str, asked: list[Json], got: list[Json]) -> None:
        """Against a direct connection of the client's era where the server has it, and in the members' order
        against one of the era in which Toolgate reaches it."""
        newest = cell.server.eras[-1]
        same = cell.client.era if cell.client.era in cell.server.eras else LEGACY
        standards = [(same, same == newest)]
        if cell.client.language != "rust" and newest != same:
            standards.append((newest, True))
        for era, ordered in standards:
            direct = await self.direct(cell.server, cell.client, era)
            # A direct connection was asked for what is the client's own too, last.
            for one, want, have in zip(asked, direct[:len(asked)], got, strict=True):
                found = equal.difference(one, want, have, ordered)
                if found:
                    self.found[cell.name].append(f"{way}, against {era}: {found}")
                # A request that was cancelled has no answer; what became of it is asked afterwards.
                if era == same and one.get("follow") != "cancel":
                    self.compared[cell.name] += 1

    async def direct(self, server: Server, client: Client, era: str) -> list[Json]:
        """What a client of the same language gets without Toolgate."""
        key = (server.name, client.language, era)
        if key not in self.direct_results:
            self.direct_results[key] = asyncio.create_task(self.directly(server, client, era))
        return await self.direct_results[key]

    async def directly(self, server: Server, client: Client, era: str) -> list[Json]:
        """Asked once. rmcp has no client for the event streams of 2024-11-05: what it keeps of the same server's
        answers over streamable HTTP is its standard."""
        if era != client.era:
            client = sibling(client) if era == LEGACY else next(
                other for other in CLIENTS if other.language == client.language and other.era == era)
        if server.transport == SSE and SSE not in client.transports:
            server = self.through_http(server)
        cell = f"direct/{server.name}/{client.kind}/{era}"
        asked = requests(server.kind, cell, own=server.transport == STDIO)
        return await self.drivers.ask(client, server.target, asked)

    def through_http(self, server: Server) -> Server:
        """The same server over streamable HTTP."""
        return next(other for other in self.servers if other.kind == server.kind and other.transport == HTTP)
