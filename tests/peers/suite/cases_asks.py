"""An ask, answered in the real client: in the legacy era by its elicitation callback, in the modern era by
input rounds, which the client runs by itself with the same callback."""

from __future__ import annotations

import anyio
from mcp import Client, types

from .case import HTTP, Bench
from .client import REPLY_SECONDS, Tape, Tapped
from .parts import Json, yaml

ECHO = {"message": "hi"}


class Person:
    """Answers as it was told and remembers what it was asked."""

    def __init__(self, *answers: Json | None) -> None:
        self.answers, self.asked = list(answers), []

    async def __call__(self, _context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        """One question."""
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if answer is None:
            await anyio.sleep(REPLY_SECONDS)
        return types.ElicitResult.model_validate(answer)


ALLOW = {"action": "accept", "content": {"decision": "allow once"}}
DECLINE = {"action": "decline"}
CANCEL = {"action": "cancel"}


def text_of(result: types.CallToolResult) -> str:
    """All of its text."""
    return " ".join(block.text for block in result.content if isinstance(block, types.TextContent))


def configure(bench: Bench, hold: str) -> None:
    """The server asks about everything, and its persona's client may answer over any transport."""
    settings: Json = {
        "data_dir": str(bench.sandbox.data),
        "servers": {bench.part.name: bench.part.entry()},
        "personas": {"default": {"servers": [bench.part.name], "approvals": {"in_client": True}}},
        "approvals": {"hold": hold},
    }
    bench.sandbox.config.write_text(yaml(settings))
    bench.sandbox.config.chmod(0o600)


async def the_person_at_the_client_answers(bench: Bench) -> None:
    """Yes lets exactly that call pass, no denies it, and a cancelled question waits for the operator."""
    configure(bench, "2s")
    person = Person(ALLOW, DECLINE, CANCEL)
    if bench.case.transport == HTTP:
        with bench.sandbox.listening() as listener:
            await answers(bench, listener.http(), person)
    else:
        await answers(bench, bench.sandbox.stdio(), person)
    events = [row["details"]["event"] for row in bench.sandbox.events()]
    for event in ("approval.request", "approval.grant", "approval.reject"):
        assert event in events, (event, events)
    assert events.count("mcp_called") == 1, events
    bench.sandbox.verify_audit()


async def answers(bench: Bench, transport: object, person: Person) -> None:
    """One call for each answer."""
    client = Client(Tapped(transport, Tape()), mode=bench.case.era, cache=None, elicitation_callback=person)
    name = f"{bench.part.name}__echo"
    async with client:
        with anyio.fail_after(REPLY_SECONDS):
            passed = await client.call_tool(name, ECHO)
            assert not passed.is_error and "hi" in text_of(passed), passed
            denied = await client.call_tool(name, ECHO)
            assert denied.is_error and "denied" in text_of(denied), denied
            parked = await client.call_tool(name, ECHO)
            assert parked.is_error and "approvals grant" in text_of(parked), parked
    assert len(person.asked) == 3, person.asked
    assert all("Toolgate asks" in message and "echo" in message for message in person.asked), person.asked
