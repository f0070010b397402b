"""docs/conformance.md, from a run."""

from __future__ import annotations

from result import Result

HEAD = """# Conformance

What the official conformance suite (npm `@modelcontextprotocol/conformance` 0.2.0-alpha.12) says about Toolgate.
`cargo xtask test` runs it and fails if this page does not say what it saw; `tests/conformance/README.md` says how.

As **client**: an agent reaches the suite's server through `toolgate serve --stdio --server NAME`, so that each
message which the suite sees is one that Toolgate sent. As **server**: the suite reaches a server of the tests
through `toolgate serve --listen ADDR --server NAME`. Nothing is pinned to an era: Toolgate finds it.
A scenario passes if at least one check succeeded, and none failed or warned. Scenarios that the suite itself does
not count for a revision (extensions, later additions, pending ones) are run too and marked.
"""


def text(results: list[Result]) -> str:
    """The whole page."""
    parts = [HEAD]
    for revision in sorted({result.revision for result in results}, reverse=True):
        for role in ("server", "client"):
            parts.append(section(role, revision, [r for r in results if (r.role, r.revision) == (role, revision)]))
    return "\n".join(parts)


def section(role: str, revision: str, results: list[Result]) -> str:
    """One table."""
    counted = [result for result in results if not result.unscored]
    passed = sum(result.passed for result in counted)
    lines = [
        f"## {revision}, as {role}",
        "",
        f"{passed} of {len(counted)} required scenarios pass.",
        "",
        "| scenario | result |",
        "|---|---|",
    ]
    return "\n".join([*lines, *map(row, results), ""])


def row(result: Result) -> str:
    """One scenario."""
    mark = f" ({result.unscored})" if result.unscored else ""
    if result.passed:
        return f"| {result.scenario}{mark} | passes |"
    why = result.reason or "; ".join(sorted(result.failing))
    return f"| {result.scenario}{mark} | fails: {why} |"
