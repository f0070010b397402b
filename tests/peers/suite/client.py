"""The real client, with a tap on its transport.

The typed objects of the client forget what they do not know, so equality is judged on the messages
as they crossed the transport; that the client also *accepted* each result is part of the outcome.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from .parts import Call, Json

CONNECT_SECONDS = 40
REPLY_SECONDS = 40
Transport = AbstractAsyncContextManager[Any]
Progress = tuple[float, float | None, str | None]


@dataclass
class Tape:
    """Every message in both directions, in order, as JSON values whose members keep their order."""

    sent: list[Json] = field(default_factory=list)
    received: list[Json] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def request(self, method: str, wanted: Callable[[Json], bool] = lambda _params: True) -> Json:
        """The last request that fits."""
        fitting = [message for message in self.sent
                   if message.get("method") == method and "id" in message and wanted(message.get("params", {}))]
        return fitting[-1]

    def response(self, identifier: Json) -> Json | None:
        """What came back for an id, without the id; None if nothing did."""
        for message in self.received:
            if message.get("id") == identifier and "method" not in message:
                return {key: message[key] for key in ("result", "error") if key in message}
        return None

    def notifications(self, method: str) -> list[Json]:
        """Notifications of one method."""
        return [message for message in self.received if message.get("method") == method]


class Tapped:
    """A transport that writes down what passes."""

    def __init__(self, inner: Transport, tape: Tape) -> None:
        self.inner, self.tape = inner, tape

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self.inner.__aenter__()
        return ReadTap(read, self.tape), WriteTap(write, self.tape)

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self.inner.__aexit__(*details)


class StreamTap:
    """What both taps share: everything but the messages goes straight to the stream."""

    def __init__(self, stream: Any, tape: Tape) -> None:
        self._stream, self._tape = stream, tape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> StreamTap:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self._stream.__aexit__(*details)


class ReadTap(StreamTap):
    """Keeps what the server sends."""

    def __aiter__(self) -> ReadTap:
        return self

    async def __anext__(self) -> Any:
        return self._keep(await self._stream.__anext__())

    async def receive(self) -> Any:
        """One message."""
        return self._keep(await self._stream.receive())

    def _keep(self, item: Any) -> Any:
        if isinstance(item, Exception):
            self._tape.faults.append(repr(item))
        else:
            self._tape.received.append(as_json(item))
        return item


class WriteTap(StreamTap):
    """Keeps what the client sends."""

    async def send(self, item: Any) -> None:
        """One message."""
        self._tape.sent.append(as_json(item))
        await self._stream.send(item)


def as_json(item: Any) -> Json:
    """A message as JSON; results and params are kept by the client as they came."""
    return item.message.model_dump(by_alias=True, exclude_unset=True)


@dataclass
class Session:
    """One connection of the real client."""

    client: Client
    tape: Tape

    @property
    def version(self) -> str:
        """The revision in use."""
        return self.client.protocol_version

    async def list_tools(self) -> list[Json]:
        """All pages of the listing, as they came."""
        return list(itertools.chain.from_iterable([page["tools"] for page in await self.list_pages()]))

    async def list_pages(self) -> list[Json]:
        """The results of tools/list, page by page."""
        pages: list[Json] = []
        cursor: str | None = None
        while True:
            with anyio.fail_after(REPLY_SECONDS):
                page = await self.client.list_tools(cursor=cursor)
            answer = self.tape.response(self.tape.request("tools/list")["id"])
            assert answer is not None and "result" in answer, answer
            pages.append(answer["result"])
            cursor = page.next_cursor
            if cursor is None:
                return pages

    async def call(self, call: Call, prefix: str = "", progress: list[Progress] | None = None) -> Json:
        """Calls a tool; gives the raw result or error, and what the client made of it."""
        async def note(done: float, total: float | None, message: str | None) -> None:
            if progress is not None:
                progress.append((done, total, message))

        name, accepted = prefix + call.tool, "accepted"
        try:
            with anyio.fail_after(REPLY_SECONDS):
                await self.client.call_tool(
                    name, call.arguments, progress_callback=note if progress is not None else None)
        except MCPError:
            accepted = "error"
        except (ValueError, RuntimeError) as error:
            # A result that breaks its own output schema, or the protocol's types.
            accepted = f"refused by the client: {type(error).__name__}: {error}"
        sent = self.tape.request("tools/call", lambda params: (
            params["name"] == name and params.get("arguments", {}) == call.arguments))
        answer = self.tape.response(sent["id"])
        assert answer is not None, f"no reply to {name}: {self.tape.faults}"
        return {**answer, "client": accepted}


@asynccontextmanager
async def connect(transport: Transport, mode: str) -> AsyncIterator[Session]:
    """A connected client. Its cache is off: each listing must come from the server."""
    tape = Tape()
    client = Client(Tapped(transport, tape), mode=mode, cache=None)
    async with client:
        yield Session(client, tape)


def over_stdio(command: str, args: list[str], environment: dict[str, str], log: Path) -> Transport:
    """Starts a server and speaks over its pipes; its standard error goes to `log`."""
    @asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        with open(log, "a") as errors:
            parameters = StdioServerParameters(command=command, args=args, env=environment)
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams
    return start()


def over_http(url: str, token: str | None) -> Transport:
    """Speaks to a listening server."""
    @asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(CONNECT_SECONDS)) as http:
            # The client stops at events of 1 MiB by default; a large file is larger.
            async with streamable_http_client(url, http_client=http, max_sse_event_size=None) as streams:
                yield streams
    return start()
