"""What became of one scenario."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Result:
    """One scenario at one revision, on one side."""

    role: str
    revision: str
    scenario: str
    # Empty, or why the suite does not count it.
    unscored: str
    # Ids of checks that did not pass, with what the suite said.
    failing: dict[str, str] = field(default_factory=dict)
    # Why it is expected to fail.
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What an expectation is about."""
        return self.role, self.revision, self.scenario

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.role} {self.revision} {self.scenario}"

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failing

    def read(self, checks: Path | None) -> None:
        """Takes in what the suite wrote. Nothing written, nothing that succeeded, and a warning are failures:
        a scenario that tested nothing must not count as one that passed."""
        if checks is None:
            self.failing["no-result"] = "the suite wrote no result"
            return
        succeeded = 0
        for check in json.loads(checks.read_text()):
            # The suite adds the check of the schema to every scenario, also to one that saw nothing else.
            succeeded += check["status"] == "SUCCESS" and check["id"] != "wire-schema-valid"
            if check["status"] in ("FAILURE", "WARNING"):
                said = check.get("errorMessage") or check.get("description", "")
                self.failing.setdefault(check["id"], f"{check['status']}: {said}"[:600])
        if not succeeded and not self.failing:
            self.failing["nothing-succeeded"] = "no check of this scenario succeeded"
