"""The surface of the matrix, by `mcp` 1.x (FastMCP), `mcp` 2.x (MCPServer) or the package `fastmcp`.

    server_python.py mcp|fastmcp stdio|http|sse [PORT]

The three register things the same way; what they call differently stands in `make`.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

import anyio
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

# A hanging call ends by itself after so long: nothing of a test may stay.
LONGEST = 30
# A cancelled call notices within so long.
NOTICE = 4
INSTRUCTIONS = "The surface of the matrix."
ENDED: dict[str, str] = {}
KIND, TRANSPORT = sys.argv[1:3]
PORT = int(sys.argv[3]) if len(sys.argv) > 3 else 0

if KIND == "fastmcp":
    from fastmcp import Context, FastMCP
elif metadata.version("mcp").startswith("1."):
    from mcp.server.fastmcp import Context, FastMCP
else:
    from mcp.server.mcpserver import Context, MCPServer as FastMCP


class Total(TypedDict):
    """What `sum` gives."""

    total: int


def make() -> Any:
    """An empty server."""
    name = f"matrix-{KIND}"
    if KIND == "mcp" and metadata.version("mcp").startswith("1."):
        return FastMCP(name, instructions=INSTRUCTIONS, host="127.0.0.1", port=PORT, log_level="ERROR")
    return FastMCP(name, instructions=INSTRUCTIONS)


server = make()


@server.tool(description="Gives back its text.")
def echo(text: str) -> str:
    return text


@server.tool(name="sum", description="Adds two numbers.")
def add(a: int, b: int) -> Total:
    return {"total": a + b}


@server.tool(description="A list of texts.")
def pieces() -> list[str]:
    return ["a text", "é 漢字"]


@server.tool(description="Fails as tools fail.")
def fail() -> str:
    raise ValueError("it failed on purpose")


@server.tool(description="Says how far it is.")
async def steps(count: int, ctx: Context) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
    return f"{count} steps"


QUESTION = "Why is that?"


class Reason(BaseModel):
    """What a person answers."""

    reason: str = Field(description="In a few words.")


if KIND == "mcp" and not metadata.version("mcp").startswith("1."):
    from typing import Annotated

    from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve

    async def why() -> Elicit[Reason]:
        return Elicit(QUESTION, Reason)

    @server.tool(description="Says that a resource changed.")
    async def touch(uri: str, ctx: Context) -> str:
        await ctx.notify_resource_updated(uri)
        return "touched"

    @server.tool(description="Adds a tool, or takes it away again.")
    async def grow(ctx: Context) -> str:
        def grown() -> str:
            return "here"

        if any(tool.name == "grown" for tool in await server.list_tools()):
            server.remove_tool("grown")
        else:
            server.add_tool(grown, description="A tool that came later.")
        await ctx.notify_tools_changed()
        return "done"

    # A question of either era, as the package asks it.
    @server.tool(description="Asks why.")
    async def ask(said: Annotated[ElicitationResult[Reason], Resolve(why)]) -> str:
        return f"{said.action}: {said.data.reason}"
elif KIND == "mcp":
    @server.tool(description="Asks why.")
    async def ask(ctx: Context) -> str:
        said = await ctx.elicit(QUESTION, Reason)
        return f"{said.action}: {said.data.reason}"
else:
    import mcp_types

    # In the modern era the package leaves the round to the tool.
    @server.tool(description="Asks why.", output_schema=None)
    async def ask(ctx: Context) -> str | mcp_types.InputRequiredResult:
        if ctx.request_context.protocol_version < "2026":
            said = await ctx.elicit(QUESTION, Reason)
            return f"{said.action}: {said.data.reason}"
        answers = ctx.input_responses
        if answers:
            return f"{answers['why'].action}: {answers['why'].content['reason']}"
        form = mcp_types.ElicitRequestFormParams(message=QUESTION, requested_schema=Reason.model_json_schema())
        asked = mcp_types.ElicitRequest(method="elicitation/create", params=form)
        return mcp_types.InputRequiredResult(input_requests={"why": asked})


@server.tool(description="Runs until it is cancelled.")
async def hang(key: str, ctx: Context) -> str:
    await ctx.report_progress(1, 2, "step 1")
    try:
        await anyio.sleep(LONGEST)
    except anyio.get_cancelled_exc_class():
        ENDED[key] = "cancelled"
        raise
    ENDED[key] = "by itself"
    return ENDED[key]


@server.tool(description="How a hanging call ended.")
async def ended(key: str) -> str:
    with anyio.move_on_after(NOTICE):
        while key not in ENDED:
            await anyio.sleep(0.02)
    return ENDED.get(key, "running")


@server.prompt(description="Greets somebody.")
def greet(who: str) -> str:
    return f"Hello, {who}!"


@server.resource("matrix://static", name="static", mime_type="text/plain")
def static() -> str:
    return "the static text"


@server.resource("matrix://item/{id}", name="item", mime_type="text/plain")
def item(id: str) -> str:  # noqa: A002  (the template's own word)
    return f"item {id}"


def guesses(value: str) -> list[str]:
    """What an argument could go on as."""
    return [f"{value}one", f"{value}other"]


if KIND == "fastmcp":
    @server.completion
    async def complete(ref: Any, argument: Any, context: Any = None) -> Any:
        return guesses(argument.value)
else:
    from mcp.types import Completion

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        values = guesses(argument.value)
        return Completion(values=values, total=len(values), **MORE)

    MORE = {"hasMore": False} if metadata.version("mcp").startswith("1.") else {"has_more": False}


def run() -> None:
    """Serves until the process is ended."""
    if KIND == "fastmcp":
        more = {} if TRANSPORT == "stdio" else {"host": "127.0.0.1", "port": PORT, "log_level": "error"}
        server.run(transport=TRANSPORT, show_banner=False, **more)
        return
    transport = {"http": "streamable-http"}.get(TRANSPORT, TRANSPORT)
    if metadata.version("mcp").startswith("1.") or transport == "stdio":
        server.run(transport=transport)
    else:
        server.run(transport=transport, host="127.0.0.1", port=PORT)


run()
