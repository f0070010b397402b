"""What comes through Toolgate is what a direct connection of the same client gives."""

from __future__ import annotations

import anyio

from . import compare
from .case import Bench
from .client import Progress, Session
from .parts import LEGACY, MODERN, Call, Json

SLOW = "trigger-long-running-operation"
LEGACY_VERSION = "2025-11-25"
# What the client tells itself when the stream of a cancelled request is closed; no server said it.
STREAM_ENDED = {"error": {"code": -32000, "message": "SSE stream ended without a response"}}


async def listing(bench: Bench) -> None:
    """Every tool with every field: on a fresh data directory, and again once the surface is pinned."""
    direct = await bench.direct(bench.part.upstream_era)
    same_era = await bench.direct(bench.same_era)
    for got in await four_listings(bench):
        bench.check(compare.tools_difference(bench.part.name, direct.tools, got, ordered=True))
        # A server of both eras orders members differently in the other, so there only the content is compared.
        bench.check(compare.tools_difference(bench.part.name, same_era.tools, got, ordered=False))


async def order_of_the_listing(bench: Bench) -> None:
    """Tools keep the server's order, the same in every listing: models and caches see it."""
    direct = await bench.direct(bench.part.upstream_era)
    wanted = [bench.prefix + tool["name"] for tool in direct.tools]
    labels = ("first", "first, again", "after a restart", "after a restart, again")
    for label, got in zip(labels, await four_listings(bench), strict=True):
        names = [tool["name"] for tool in got]
        assert names == wanted, f"{label}:\n  direct  {wanted}\n  through {names}"


async def four_listings(bench: Bench) -> list[list[Json]]:
    """Two listings on a fresh data directory, and two more by a second process on the same one."""
    bench.sandbox.configure_part(bench.part)
    listings: list[list[Json]] = []
    for _ in range(2):
        async with bench.through() as session:
            expect_version(bench, session)
            pages = await session.list_pages()
            check_list_envelope(bench, pages)
            listings.append([tool for page in pages for tool in page["tools"]])
            await session.call(bench.part.calls[0], bench.prefix)
            listings.append(await session.list_tools())
    return listings


async def calls(bench: Bench) -> None:
    """Results, structured content, media and errors, one after another on one connection."""
    direct = await bench.direct(bench.part.upstream_era)
    same_era = await bench.direct(bench.same_era)
    bench.fresh_files()
    bench.sandbox.configure_part(bench.part)
    async with bench.through() as session:
        got = [await session.call(call, bench.prefix) for call in bench.part.calls]
        unknown = await session.call(Call("no-such-tool"), bench.prefix)
    compare_replies(bench, direct.replies, got)
    compare_replies(bench, same_era.replies, got, ordered=False)
    # Toolgate answers for names that it does not list, in either era as the specification has it.
    assert unknown["error"]["code"] == -32602, unknown
    check_effects(bench)
    check_audit(bench, sent=len(bench.part.calls))


async def writing_systems(bench: Bench) -> None:
    """Joiners and variation selectors that people write are text, not something hidden."""
    bench.sandbox.configure_part(bench.part)
    texts = {
        "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467", "heart": "\u2764\ufe0f", "keycap": "1\ufe0f\u20e3",
        "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "Hindi": "\u0915\u094d\u200d\u0937",
        "flag": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "bell": "a\u0301\tb\r\nc",
    }
    async with bench.through() as session:
        for name, text in texts.items():
            reply = await session.call(Call("echo", {"message": text}), bench.prefix)
            bench.check(compare.difference(name, f"Echo: {text}", reply["result"]["content"][0]["text"]))


async def parallel(bench: Bench) -> None:
    """Many calls at once: each reply belongs to its own request."""
    direct = await bench.direct(bench.part.upstream_era)
    bench.fresh_files()
    bench.sandbox.configure_part(bench.part)
    got: list[Json] = [None] * len(bench.part.parallel)

    async with bench.through() as session:
        async def one(index: int, call: Call) -> None:
            got[index] = await session.call(call, bench.prefix)

        async with anyio.create_task_group() as group:
            for index, call in enumerate(bench.part.parallel):
                group.start_soon(one, index, call)
    found: list[str] = []
    for call, want, have in zip(bench.part.parallel, direct.parallel, got):
        found += compare.difference(f"{call.tool} {call.arguments}", compare.bare(want), compare.bare(have))
    bench.check(found)
    check_audit(bench, sent=len(bench.part.parallel))


async def slow_does_not_hold_up(bench: Bench) -> None:
    """A call that takes its time holds up no other on the same connection."""
    bench.sandbox.configure_part(bench.part)
    finished: list[str] = []
    async with bench.through() as session:
        await session.call(Call("echo", {"message": "warm"}), bench.prefix)

        async def slow() -> None:
            reply = await session.call(Call(SLOW, {"duration": 3, "steps": 1}), bench.prefix)
            assert "completed" in reply["result"]["content"][0]["text"], reply
            finished.append("slow")

        async def quick(index: int) -> None:
            await session.call(Call("echo", {"message": str(index)}), bench.prefix)
            finished.append("quick")

        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await anyio.sleep(0.3)
            for index in range(10):
                group.start_soon(quick, index)
    assert finished == ["quick"] * 10 + ["slow"], finished


async def progress(bench: Bench) -> None:
    """Progress arrives with the client's own token, all of it, in order, and before the reply."""
    call = Call(SLOW, {"duration": 1, "steps": 5})
    direct_steps: list[Progress] = []
    async with bench.directly(bench.part.upstream_era) as session:
        wanted = await session.call(call, progress=direct_steps)
    bench.sandbox.configure_part(bench.part)
    steps: list[Progress] = []
    async with bench.through() as session:
        got = await session.call(call, bench.prefix, progress=steps)
        request = session.tape.request("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        notes = session.tape.notifications("notifications/progress")
        assert len(notes) == 5 and all(note["params"]["progressToken"] == token for note in notes), notes
        positions = [index for index, message in enumerate(session.tape.received)
                     if message in notes or message.get("id") == request["id"]]
        assert session.tape.received[positions[-1]].get("id") == request["id"], "progress after the reply"
    bench.check(compare.difference("reply", compare.bare(wanted), compare.bare(got)))
    bench.check(compare.difference("progress", [list(step) for step in direct_steps], [list(step) for step in steps]))


async def cancel(bench: Bench) -> None:
    """A cancelled call ends on both sides, and the connection goes on."""
    bench.sandbox.configure_part(bench.part)
    steps: list[Progress] = []
    async with bench.through() as session:
        await session.call(Call("echo", {"message": "warm"}), bench.prefix)
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, Call(SLOW, {"duration": 20, "steps": 100}), bench.prefix, steps)
            with anyio.fail_after(15):
                while len(steps) < 2:
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        identifier = session.tape.request("tools/call")["id"]
        with anyio.fail_after(5):
            after = await session.call(Call("echo", {"message": "after"}), bench.prefix)
        assert after["result"]["content"][0]["text"] == "Echo: after", after
        seen = len(session.tape.notifications("notifications/progress"))
        await anyio.sleep(1.5)
        late = session.tape.notifications("notifications/progress")[seen:]
        assert not late, f"{len(late)} progress notifications for a cancelled call"
        answer = session.tape.response(identifier)
        assert answer in (None, STREAM_ENDED), f"a cancelled call was answered: {answer}"
    happened = [row["details"].get("event") for row in bench.sandbox.events()]
    assert "mcp_cancelled" in happened, f"no mcp_cancelled in the audit log: {happened[-6:]}"
    bench.sandbox.verify_audit()


def expect_version(bench: Bench, session: Session) -> None:
    """Toolgate speaks the era that the client prefers, whatever the server behind it speaks."""
    wanted = LEGACY_VERSION if bench.case.era == LEGACY else MODERN
    assert session.version == wanted, f"negotiated {session.version}, not {wanted}"


def check_list_envelope(bench: Bench, pages: list[Json]) -> None:
    """Lists depend on the caller, so a modern one must say `private`; a legacy one has no such members."""
    for page in pages:
        if bench.case.era == LEGACY:
            assert not {"resultType", "ttlMs", "cacheScope"} & page.keys(), list(page)
        else:
            assert page["resultType"] == "complete" and page["cacheScope"] == "private", page.keys()
            assert isinstance(page["ttlMs"], int) and page["ttlMs"] >= 0, page["ttlMs"]


def compare_replies(bench: Bench, direct: list[Json], got: list[Json], ordered: bool = True) -> None:
    """All replies against all replies; differences are collected, so that one run shows them all."""
    found: list[str] = []
    for call, want, have in zip(bench.part.calls, direct, got, strict=True):
        what = f"{call.tool} {str(call.arguments)[:80]}"
        found += compare.difference(
            what, compare.bare(want, call.volatile), compare.bare(have, call.volatile), ordered)
        result = have.get("result", {})
        if bench.case.era == LEGACY and "resultType" in result:
            found.append(f"{what}: a legacy client got resultType")
        if bench.case.era != LEGACY and "result" in have and result.get("resultType") != "complete":
            found.append(f"{what}: a modern client got resultType {result.get('resultType')!r}")
    bench.check(found)


def check_effects(bench: Bench) -> None:
    """What the calls were to do was done, once."""
    if bench.part.name == "filesystem":
        made = sorted(path.name for path in (bench.files / "made").iterdir())
        assert made == ["moved.txt"], made
        assert (bench.files / "made/moved.txt").read_text() == "one\nzwei\n"
    if bench.part.name == "git":
        heads = (bench.files / "repository/.git/logs/HEAD").read_text().splitlines()
        assert sum("third" in line for line in heads) == 1, heads


def check_audit(bench: Bench, sent: int) -> None:
    """Each call that left has one row before it and one after it, and the chain is whole."""
    happened = [row["details"].get("event") for row in bench.sandbox.events()]
    called = happened.count("mcp_called")
    ended = happened.count("mcp_completed") + happened.count("mcp_failed")
    assert (called, ended) == (sent, sent), f"{sent} calls, {called} mcp_called, {ended} completed or failed"
    bench.sandbox.verify_audit()
