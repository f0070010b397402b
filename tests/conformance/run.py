#!/usr/bin/env python3
"""Runs the official MCP conformance suite against Toolgate, as client and as server.

    python3 tests/conformance/run.py --toolgate target/release/toolgate [--role client|server]
        [--revision REVISION] [--only TEXT] [--update] [--keep DIR] [--parts DIR]

The first run installs the suite (see `tests/peers/install.py`); later runs need no network. Exit code 0 if
every check passed or is expected to fail in `expected.toml`, and `docs/conformance.md` says what the run saw;
`--update` writes that page. A run of a part of the scenarios leaves the page alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]

import install  # noqa: E402  (the path above comes first)

import page  # noqa: E402
from expected import Expected  # noqa: E402
from official import Official  # noqa: E402

PAGE = PROJECT / "docs/conformance.md"


def main() -> int:
    """Installs, runs, compares."""
    arguments = parse()
    toolgate = Path(arguments.toolgate).resolve()
    if not os.access(toolgate, os.X_OK):
        print(f"{toolgate} is no program; build it with `cargo build --release -p toolgate-cli`", file=sys.stderr)
        return 1
    begun, scratch = time.monotonic(), Path(arguments.keep or tempfile.mkdtemp(prefix="toolgate-conformance-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        official = Official.installed(install.parts_directory(arguments.parts), toolgate, scratch)
        results = official.run(arguments.role, arguments.revision, arguments.only)
    finally:
        if not arguments.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    wrong = Expected.read(HERE / "expected.toml").judge(results)
    if not (arguments.role or arguments.revision or arguments.only):
        wrong += compare(page.text(results), arguments.update)
    for line in wrong:
        print(f"WRONG: {line}")
    passed = sum(result.passed for result in results)
    print(f"{passed} of {len(results)} scenarios pass, {len(wrong)} findings; {time.monotonic() - begun:.0f} s")
    return 1 if wrong or not results else 0


def compare(text: str, update: bool) -> list[str]:
    """The committed page has to say what was seen."""
    if update:
        PAGE.write_text(text)
    if PAGE.exists() and PAGE.read_text() == text:
        return []
    return [f"{PAGE.relative_to(PROJECT)} does not say what this run saw; run again with --update and review it"]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolgate", required=True, help="the built binary")
    parser.add_argument("--parts", help="where the suite is installed (default: tests/.real-parts)")
    parser.add_argument("--role", choices=["client", "server"], help="only one side")
    parser.add_argument("--revision", help="only one revision")
    parser.add_argument("--only", metavar="TEXT", help="only scenarios whose name holds TEXT")
    parser.add_argument("--update", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--keep", metavar="DIR", help="keep what the suite wrote, in DIR")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
