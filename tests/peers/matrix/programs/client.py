"""A client of the matrix, by the PyPI package `mcp`, 1.x or 2.x as the interpreter has it.

Jobs come in on standard input and answers go out, one JSON object a line, as tests/rmcp/src/client.rs says; a
job can name an event stream of 2024-11-05 as `sse`. What counts is what crossed the transport, as it came; that
the package took it is the member `client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from importlib import metadata
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

FIRST = metadata.version("mcp").startswith("1.")
if FIRST:
    import httpx as http_library
    from mcp.shared.exceptions import McpError as ProtocolError
    from mcp.types import ElicitResult, PromptReference, ResourceTemplateReference
    from pydantic import AnyUrl
else:
    import httpx2 as http_library
    from mcp import Client
    from mcp.shared.exceptions import MCPError as ProtocolError
    from mcp_types import ElicitResult, PromptReference, ResourceTemplateReference

Json = Any
REPLY_SECONDS = 30
# An update is told within so long.
TOLD_SECONDS = 10
MODERN = "2026-07-28"


class Tap:
    """Writes down what passes on one stream; everything else goes straight to it."""

    def __init__(self, stream: Any, kept: list[Json]) -> None:
        self._stream, self._kept = stream, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Tap:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self._stream.__aexit__(*details)

    def __aiter__(self) -> Tap:
        return self

    async def __anext__(self) -> Any:
        return self._note(await self._stream.__anext__())

    async def receive(self) -> Any:
        return self._note(await self._stream.receive())

    async def send(self, item: Any) -> None:
        await self._stream.send(self._note(item))

    def _note(self, item: Any) -> Any:
        if not isinstance(item, Exception):
            self._kept.append(item.message.model_dump(by_alias=True, exclude_unset=True, mode="json"))
        return item


class Tapped:
    """A transport whose messages are written down."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.sent, self.received, self.questions = inner, [], [], []

    async def answer(self, _: Any, params: Any) -> ElicitResult:
        """What a person says to any question."""
        self.questions.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        return ElicitResult(action="accept", content={"reason": "because"})

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write, *_ = await self.inner.__aenter__()
        return Tap(read, self.received), Tap(write, self.sent)

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self.inner.__aexit__(*details)


@contextlib.asynccontextmanager
async def transport(job: Json) -> Any:
    """What a job names."""
    headers = {"Authorization": f"Bearer {job['token']}"} if job.get("token") else {}
    if "url" in job:
        timeout = http_library.Timeout(REPLY_SECONDS)
        async with http_library.AsyncClient(headers=headers, timeout=timeout) as http:
            async with streamable_http_client(job["url"], http_client=http) as streams:
                yield streams
    elif "sse" in job:
        async with sse_client(job["sse"], headers=headers) as streams:
            yield streams
    else:
        command, *args = job["command"]
        with open("/dev/null", "w") as nowhere:
            parameters = StdioServerParameters(command=command, args=args, env=job["env"])
            async with stdio_client(parameters, errlog=nowhere) as streams:
                yield streams


@contextlib.asynccontextmanager
async def connected(job: Json, tapped: Tapped) -> Any:
    """A client that has greeted its server."""
    if FIRST:
        async with tapped as (read, write), ClientSession(
                read, write, elicitation_callback=tapped.answer) as session:
            await session.initialize()
            yield session
    else:
        mode = MODERN if job["era"] == "modern" else "legacy"
        async with Client(tapped, mode=mode, cache=None, elicitation_callback=tapped.answer) as client:
            yield client


async def run(job: Json) -> Json:
    """One job."""
    tapped = Tapped(transport(job))
    async with connected(job, tapped) as client:
        kinds = {"updated": updated, "changed": changed}
        answers = [await kinds.get(request.get("follow"), ask)(client, tapped, request)
                   for request in job["requests"]]
    return {"version": job["era"], "answers": answers}


async def ask(client: Any, tapped: Tapped, asked: Json) -> Json:
    """One request, and what came back for it."""
    method, params, follow = asked["method"], asked["params"], asked.get("follow")
    before, notes, first_note = len(tapped.sent), [], anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        notes.append({"progress": progress, "total": total, "message": message})
        first_note.set()

    said = "accepted"
    try:
        with anyio.fail_after(REPLY_SECONDS):
            if follow == "cancel":
                return await cancelled(client, params, note, first_note)
            await send(client, method, params, note if follow in ("progress", "cancel") else None)
    except ProtocolError:
        said = "error"
    except (ValueError, RuntimeError) as error:
        said = f"refused: {type(error).__name__}: {error}"
    request = [message for message in tapped.sent[before:] if message.get("method") == method][-1]
    answer = [message for message in tapped.received
              if message.get("id") == request["id"] and "method" not in message][-1]
    kept = {name: answer[name] for name in ("result", "error") if name in answer}
    if follow == "answer":
        kept["asked"], tapped.questions = tapped.questions, []
    return {**kept, "client": said, **({"progress": notes} if follow == "progress" else {})}


async def updated(client: Any, tapped: Tapped, asked: Json) -> Json:
    """Subscribes, has the tool say that the resource changed, and gives what was told."""
    uri, before = asked["params"]["uri"], len(tapped.received)
    try:
        async with subscribed(client, uri):
            await client.call_tool(asked["params"]["touch"], {"uri": asked["params"]["own"]})
            told = await notifications(tapped, before, "notifications/resources/updated")
    except (ProtocolError, RuntimeError):
        return {"refused": True}
    return {"updated": list(dict.fromkeys(note["params"]["uri"] for note in told))}


async def changed(client: Any, tapped: Tapped, asked: Json) -> Json:
    """Has the tool change the list of tools, and says whether that was told."""
    if FIRST:
        tools = client.get_server_capabilities().tools
        if not (tools and tools.listChanged):
            return {"changed": False}
    before = len(tapped.received)
    listening = contextlib.nullcontext() if FIRST else client.listen(tools_list_changed=True)
    async with listening:
        await client.call_tool(asked["params"]["name"], {})
        told = await notifications(tapped, before, "notifications/tools/list_changed")
    return {"changed": bool(told)}


async def notifications(tapped: Tapped, before: int, method: str) -> list[Json]:
    """Those of this method after so many messages, once there is one."""
    found: list[Json] = []
    with anyio.move_on_after(TOLD_SECONDS):
        while not found:
            found = [message for message in tapped.received[before:] if message.get("method") == method]
            await anyio.sleep(0.01)
    return found


@contextlib.asynccontextmanager
async def subscribed(client: Any, uri: str) -> Any:
    """A subscription as the era has it."""
    if FIRST:
        await client.subscribe_resource(AnyUrl(uri))
        yield
        await client.unsubscribe_resource(AnyUrl(uri))
    else:
        async with client.listen(resource_subscriptions=[uri]) as stream:
            if uri not in (stream.honored.resource_subscriptions or ()):
                raise RuntimeError("it is not accepted")
            yield


async def cancelled(client: Any, params: Json, note: Any, first_note: anyio.Event) -> Json:
    """Cancels a call at its first note. 1.x tells no server of it by itself, so it is told by hand."""
    async with anyio.create_task_group() as group:
        async def call() -> None:
            with contextlib.suppress(ProtocolError):
                await send(client, "tools/call", params, note)

        identifier = client._request_id if FIRST else None  # noqa: SLF001
        group.start_soon(call)
        await first_note.wait()
        if FIRST:
            from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification
            told = CancelledNotificationParams(requestId=identifier, reason="enough")
            await client.send_notification(ClientNotification(CancelledNotification(params=told)))
        group.cancel_scope.cancel()
    return {"cancelled": True}


async def send(client: Any, method: str, params: Json, note: Any) -> None:
    """The package's own method for a request."""
    match method:
        case "tools/call":
            await client.call_tool(params["name"], params["arguments"], progress_callback=note)
        case "tools/list":
            await client.list_tools()
        case "prompts/list":
            await client.list_prompts()
        case "resources/list":
            await client.list_resources()
        case "resources/templates/list":
            await client.list_resource_templates()
        case "prompts/get":
            await client.get_prompt(params["name"], params["arguments"])
        case "resources/read":
            await client.read_resource(AnyUrl(params["uri"]) if FIRST else params["uri"])
        case "completion/complete":
            kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
            await client.complete(kind.model_validate(params["ref"]), params["argument"])
        case _:
            raise AssertionError(method)


async def main() -> None:
    """Jobs until standard input ends, several at a time."""
    logging.disable(logging.CRITICAL)
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def one(job: Json) -> None:
        try:
            said = await run(job)
        except Exception as error:  # noqa: BLE001  (whatever it was, the others go on)
            said = {"failed": explain(error)}
        print(json.dumps({"id": job["id"], **said}, ensure_ascii=False), flush=True)

    async with asyncio.TaskGroup() as group:
        while line := await reader.readline():
            group.create_task(one(json.loads(line)))


def explain(error: BaseException) -> str:
    """The causes inside groups."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(explain(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


asyncio.run(main())
