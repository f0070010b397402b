"""What runs because of a test, and that nothing of it is left behind.

The runner makes itself the reaper of its descendants, so that a process whose parent died hangs on
the runner instead of escaping to init: an orphan cannot hide from the walk over /proc.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# Toolgate stops a child within 8 s (standard input 2 s, TERM 3 s, KILL); a busy machine adds some.
STOP_SECONDS = 12.0


@dataclass(frozen=True)
class Process:
    """A line of the process table."""

    pid: int
    parent: int
    state: str
    command: str


def become_reaper() -> bool:
    """True if orphans will be seen; only Linux can."""
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def descendants(root: int | None = None) -> list[Process]:
    """All living descendants of a process, by default of this one. The dead that wait to be reaped do not count."""
    table = [process for entry in Path("/proc").iterdir() if entry.name.isdigit() and (process := read(entry))]
    found: list[Process] = []
    frontier = {os.getpid() if root is None else root}
    while frontier:
        children = [process for process in table if process.parent in frontier]
        found += children
        frontier = {process.pid for process in children}
    return [process for process in found if process.state not in "ZX"]


def read(entry: Path) -> Process | None:
    """One process, or None if it ended while we looked."""
    try:
        head, _, tail = (entry / "stat").read_text().rpartition(")")
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    state, parent = tail.split()[:2]
    return Process(int(entry.name), int(parent), state, command or head.partition("(")[2])


def wait_for_none(ignore: frozenset[int] = frozenset(), seconds: float = STOP_SECONDS) -> list[Process]:
    """Waits until no descendant is left; gives those that still run when time is up."""
    until = time.monotonic() + seconds
    while True:
        left = [process for process in descendants() if process.pid not in ignore]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)


def end(processes: list[Process]) -> None:
    """Kills what a failed test left, so that it does not fail the next one too."""
    for process in processes:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def reap() -> None:
    """Collects orphans that ended. Called between tests, when no library waits for a child of its own."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
