"""Runs the matrix: each test in a fresh sandbox, with a deadline, and with a look for what it left running."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import metadata
from pathlib import Path
from types import FrameType

from . import processes, report
from .case import Bench, Case, Direct, Skipped
from .matrix import cases
from .parts import NPM_VERSION, PYPI_VERSION, Catalogue
from .report import FAILED, PASSED, SKIPPED, Outcome

# Beyond a test's own deadline: its cleanup, which may wait for processes to end.
CLEANUP_SECONDS = 30
VERSIONS = {
    "everything": NPM_VERSION, "everything-http": NPM_VERSION, "filesystem": NPM_VERSION,
    "time": PYPI_VERSION, "git": PYPI_VERSION,
}


class OutOfTime(BaseException):
    """The alarm rang. No `Exception`, so that no handler on the way takes it for its own."""


class Runner:
    """Runs tests one after another and keeps what became of them."""

    def __init__(self, catalogue: Catalogue, toolgate: Path, scratch: Path) -> None:
        self.catalogue, self.scratch = catalogue, scratch
        self.toolgate = scratch / "bin/toolgate"
        self.toolgate.parent.mkdir()
        # A copy: the binary may be built anew while the suite runs.
        shutil.copy2(toolgate, self.toolgate)
        self.direct: dict[tuple[str, str], Direct] = {}
        self.outcomes: list[Outcome] = []
        self.sees_orphans = processes.become_reaper()

    def version(self) -> str:
        """What is under test, as it calls itself."""
        done = subprocess.run([self.toolgate, "--version"], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def run(self, case: Case) -> None:
        """One test."""
        started = time.monotonic()
        bench = Bench(case, self.catalogue, self.toolgate, self.scratch, self.direct)
        try:
            with bench.ready():
                within(case, bench)
            state, reason = PASSED, ""
        except Skipped as skipped:
            state, reason = SKIPPED, str(skipped)
        except (Exception, OutOfTime) as error:  # noqa: BLE001  (whatever happened, the next test runs)
            state, reason = FAILED, explain(error)
        state, reason = self.look_for_orphans(state, reason)
        outcome = Outcome(case, state, reason, time.monotonic() - started)
        self.outcomes.append(outcome)
        show(outcome, bench)

    def look_for_orphans(self, state: str, reason: str) -> tuple[str, str]:
        """Nothing may run any more; what does is ended, so that it fails this test only."""
        if not self.sees_orphans:
            return state, reason
        left = processes.wait_for_none(seconds=processes.STOP_SECONDS if state == PASSED else 3)
        processes.end(left)
        processes.wait_for_none(seconds=3)
        processes.reap()
        if not left:
            return state, reason
        said = f"left running: {', '.join(process.command[:120] for process in left)}"
        return FAILED, f"{reason}\n{said}".strip()


def within(case: Case, bench: Bench) -> None:
    """Runs a test with two deadlines: one that asks the event loop, and an alarm if the loop hangs."""
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"no end after {case.seconds + CLEANUP_SECONDS} s")

    async def bounded() -> None:
        async with asyncio.timeout(case.seconds):
            await case.run(bench)

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(case.seconds + CLEANUP_SECONDS)
    try:
        asyncio.run(bounded())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def explain(error: BaseException) -> str:
    """The causes inside groups, each with the place in the suite where it was raised."""
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(explain(inner) for inner in error.exceptions)
    here = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(here)]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{place}: {error}"


def show(outcome: Outcome, bench: Bench) -> None:
    """One line for each test; for a failed one what went wrong and the end of Toolgate's log."""
    print(f"{outcome.state:8}{outcome.seconds:6.1f} s  {outcome.case.name}", flush=True)
    if outcome.state == FAILED:
        print("  " + outcome.reason.replace("\n", "\n  "), flush=True)
        log = bench.sandbox.log.read_text(errors="replace").splitlines()[-8:]
        print("".join(f"  log: {line[:300]}\n" for line in log), end="", flush=True)


def main() -> int:
    """The command line of the interpreter that has the client; `run.py` calls it."""
    arguments = parse()
    chosen = [case for case in cases() if not arguments.only or any(text in case.name for text in arguments.only)]
    chosen = [case for case in chosen if not arguments.parts_of or case.part in arguments.parts_of.split(",")]
    if arguments.list:
        print("\n".join(case.name for case in chosen))
        return 0
    logging.disable(logging.CRITICAL)
    catalogue = Catalogue(Path(arguments.parts), Path(arguments.node) if arguments.node else None, arguments.no_npm)
    scratch = Path(tempfile.mkdtemp(prefix="toolgate-peers-"))
    try:
        runner = Runner(catalogue, Path(arguments.toolgate), scratch)
        for case in chosen:
            runner.run(case)
        return conclude(runner)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def conclude(runner: Runner) -> int:
    """The table, and the exit code."""
    outcomes = runner.outcomes
    print(f"\nclient: PyPI mcp {metadata.version('mcp')}; {runner.version()}")
    print(f"{report.table(outcomes, VERSIONS)}\n")
    if not runner.sees_orphans:
        print("this system does not show orphan processes: nobody looked for them")
    print(report.totals(outcomes), flush=True)
    strict = os.environ.get("CI", "").lower() == "true"
    bad = {FAILED, SKIPPED} if strict else {FAILED}
    return 1 if not outcomes or any(outcome.state in bad for outcome in outcomes) else 0


def parse() -> argparse.Namespace:
    """What `run.py` found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--toolgate", required=True)
    parser.add_argument("--parts", required=True)
    parser.add_argument("--node")
    parser.add_argument("--no-npm")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--parts-of", help="only tests of these parts, with commas between")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
