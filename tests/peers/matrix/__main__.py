"""Runs the matrix and compares it with docs/peers.md; `run.py` calls it.

Cells run two at a time. Each opens two connections through Toolgate: to a gateway that has every server, where
names carry the server's, and to `serve --stdio --server NAME`, which shows one server as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
import traceback
from pathlib import Path

from suite import processes

from . import page
from .cells import Cell, Runner
from .clients import CLIENTS, Drivers
from .gateway import gateway
from .places import prepare
from .servers import running, servers

AT_ONCE = 2


async def run(arguments: argparse.Namespace) -> int:
    """Everything, in a scratch directory of its own."""
    places = prepare(Path(arguments.parts), Path(arguments.node), Path(arguments.toolgate))
    try:
        cells = [Cell(server, client) for server in servers(places) for client in CLIENTS]
        cells = [cell for cell in cells
                 if not arguments.only or any(text in cell.name for text in arguments.only)]
        started = time.monotonic()
        chosen = list({cell.server.name: cell.server for cell in cells}.values())
        async with running(places, chosen), gateway(places, chosen) as through, Drivers(places) as drivers:
            runner = Runner(chosen, through, drivers)
            turns = asyncio.Semaphore(AT_ONCE)

            # One cell of a server at a time: a server on pipes does not say which call its question is about, and
            # one that fits two calls is declined.
            each = {server.name: asyncio.Lock() for server in chosen}

            async def one(cell: Cell) -> None:
                async with turns, each[cell.server.name]:
                    await runner.run(cell)

            # By clients, so that the next cell is another server's.
            await asyncio.gather(*(one(cell) for cell in sorted(cells, key=lambda cell: CLIENTS.index(cell.client))))
        return conclude(arguments, runner, cells, time.monotonic() - started)
    finally:
        if arguments.keep:
            shutil.copytree(places.scratch, arguments.keep, symlinks=True)
        shutil.rmtree(places.scratch, ignore_errors=True)


def conclude(arguments: argparse.Namespace, runner: Runner, cells: list[Cell], seconds: float) -> int:
    """What became of it, and the exit code."""
    failed = [cell for cell in cells if runner.found[cell.name]]
    for cell in failed:
        print(f"failed  {cell.name}")
        print("".join(f"    {line}\n" for found in runner.found[cell.name] for line in found.splitlines()), end="")
    left = processes.wait_for_none()
    processes.end(left)
    if left:
        print(f"left running: {', '.join(process.command[:120] for process in left)}")
    stale = not arguments.only and not failed and page.differs(cells, runner, update=arguments.update)
    if stale:
        print("docs/peers.md is not what this run saw; write it with `--update`")
    print(f"matrix: {len(cells) - len(failed)} cells passed, {len(failed)} failed, "
          f"{sum(runner.compared.values())} answers compared, {seconds:.0f} s", flush=True)
    return 1 if failed or left or stale or not (cells or arguments.only) else 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    for name in ("--toolgate", "--parts", "--node"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--keep")
    return parser.parse_args()


if __name__ == "__main__":
    processes.become_reaper()
    try:
        sys.exit(asyncio.run(run(parse())))
    except Exception:  # noqa: BLE001  (the run is over; say why)
        traceback.print_exc()
        sys.exit(1)
