"""What became of each test, and the table at the end: no test is left out in silence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .case import Case

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Outcome:
    """One test that was run, or was not."""

    case: Case
    state: str
    reason: str
    seconds: float


def table(outcomes: list[Outcome], versions: dict[str, str]) -> str:
    """One row for each part, transport and era; the reasons of what did not pass stand below it."""
    groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[(outcome.case.part, outcome.case.transport, outcome.case.era)].append(outcome)
    rows = [("PART", "VERSION", "TRANSPORT", "ERA", "PASSED", "FAILED", "SKIPPED", "WHY")]
    for (part, transport, era), members in groups.items():
        counts = [str(sum(member.state == state for member in members)) for state in (PASSED, FAILED, SKIPPED)]
        why = sorted({member.reason for member in members if member.state == SKIPPED})
        why += sorted(member.case.title for member in members if member.state == FAILED)
        rows.append((part, versions[part], transport, era, *counts, "; ".join(why)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def totals(outcomes: list[Outcome]) -> str:
    """The last line, for people and for scripts."""
    count = {state: sum(outcome.state == state for outcome in outcomes) for state in (PASSED, FAILED, SKIPPED)}
    line = f"{count[PASSED]} passed, {count[FAILED]} failed"
    return line + (f", {count[SKIPPED]} skipped" if count[SKIPPED] else "")
