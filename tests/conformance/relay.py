"""A relay that adds the bearer token, because the suite's client has none to send.

Toolgate's endpoint is never open, and the suite cannot sign in to a server under test. So the suite is given
the address of this relay: it puts one `Authorization` header into the head of each request and asks for the
connection to be closed after it; every other byte passes as it is, in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

MAX_HEAD = 64 * 1024


@contextlib.contextmanager
def relay(target: int, token: str) -> Iterator[int]:
    """Relays a free loopback port, which it gives, to the port `target`."""
    loop = asyncio.new_event_loop()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_connection(reader, writer, target, token)

    server = loop.run_until_complete(asyncio.start_server(accept, "127.0.0.1", 0, limit=MAX_HEAD))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def one_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, token: str
) -> None:
    """One request and its answer."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        head = await reader.readuntil(b"\r\n\r\n")
        back, forth = await asyncio.open_connection("127.0.0.1", target)
        request, *headers = head[:-4].split(b"\r\n")
        kept = [line for line in headers if not line.lower().startswith((b"connection:", b"authorization:"))]
        added = [b"Connection: close", b"Authorization: Bearer " + token.encode()]
        forth.write(b"\r\n".join([request, *kept, *added]) + b"\r\n\r\n")
        # Whichever side ends first ends both: a client that goes away is to be noticed, as without a relay.
        pumps = [asyncio.create_task(pump(reader, forth)), asyncio.create_task(pump(back, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for task in pumps:
            task.cancel()
        forth.close()
    writer.close()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Bytes from one side to the other until there are no more."""
    with contextlib.suppress(OSError):
        while data := await source.read(64 * 1024):
            sink.write(data)
            await sink.drain()
