"""What is known to fail, and the judgement on a run."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from result import Result


@dataclass
class Entry:
    """One expected failure."""

    checks: frozenset[str]
    reason: str


class Expected:
    """The file of expected failures."""

    def __init__(self, entries: dict[tuple[str, str, str], Entry]) -> None:
        self.entries = entries

    @classmethod
    def read(cls, path: Path) -> Expected:
        """Reads the file; an entry without a reason, or said twice, is an error."""
        entries: dict[tuple[str, str, str], Entry] = {}
        for given in tomllib.loads(path.read_text()).get("expected", []):
            assert given["reason"].strip(), f"{path.name}: an entry without a reason: {given}"
            for revision in given["revisions"]:
                for scenario in given["scenarios"]:
                    key = (given["role"], revision, scenario)
                    assert key not in entries, f"{path.name}: {key} stands twice"
                    entries[key] = Entry(frozenset(given.get("checks", [])), given["reason"].strip())
        return cls(entries)

    def judge(self, results: list[Result]) -> list[str]:
        """Puts the reasons into the results, and gives what is wrong with this run."""
        wrong: list[str] = []
        for result in results:
            entry = self.entries.get(result.key)
            failing = set(result.failing)
            if entry is None:
                wrong += [f"{result.name}: {check}: {result.failing[check]}" for check in sorted(failing)]
                continue
            result.reason = entry.reason
            if not failing:
                wrong.append(f"{result.name} passes by now; take it out of expected.toml")
            elif entry.checks:
                wrong += [f"{result.name}: {check}: {result.failing[check]}" for check in sorted(failing - entry.checks)]
                wrong += [f"{result.name}: {check} passes by now; take it out" for check in sorted(entry.checks - failing)]
        return wrong
