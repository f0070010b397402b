#!/usr/bin/env python3
"""Runs Toolgate between real clients and real servers: the suite, then the matrix.

    python3 tests/peers/run.py --toolgate target/release/toolgate [--only TEXT] [--list] [--parts DIR]
    python3 tests/peers/run.py --toolgate target/release/toolgate --update

The first run installs the parts (see `install.py`); later runs need no network. Exit code 0 if all passed, 1 if not.
With `CI=true` a test that was skipped is a failure. `--update` writes docs/peers.md from what the matrix saw.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import install  # noqa: E402  (the path above comes first)

# Two runs of the suite at a time. Tests of one part stay together, because they share direct results.
HALVES = ("everything,everything-http", "filesystem,time,git")
TOTALS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


def main() -> int:
    """Installs, then hands over to the interpreter of the parts, which has the client."""
    arguments = parse()
    toolgate = Path(arguments.toolgate).resolve()
    if not os.access(toolgate, os.X_OK):
        print(f"{toolgate} is no program; build it with `cargo build --release -p toolgate-cli`", file=sys.stderr)
        return 1
    installed = install.install(install.parts_directory(arguments.parts))
    if installed.python is None:
        print(f"nothing can run without the client: {installed.missing['pypi']}", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    failed = suite(arguments, toolgate, installed) if arguments.what != "matrix" else False
    if arguments.what != "suite" and not arguments.list:
        failed |= matrix(arguments, toolgate, installed)
    return 1 if failed else 0


def suite(arguments: argparse.Namespace, toolgate: Path, installed: install.Installed) -> bool:
    """Both halves at a time; what they say comes one after the other, and last the sum. True if anything failed."""
    def half(parts: str) -> subprocess.CompletedProcess[str]:
        command = [str(installed.python), "-m", "suite", "--toolgate", str(toolgate), "--parts", str(installed.root)]
        command += ["--node", str(installed.node)] if installed.node else ["--no-npm", installed.missing["npm"]]
        command += ["--parts-of", parts, *only(arguments), *(["--list"] if arguments.list else [])]
        return run(command, stdout=subprocess.PIPE)

    with ThreadPoolExecutor(len(HALVES)) as pool:
        ended = list(pool.map(half, HALVES))
    sums, good = [0, 0, 0], True
    for done in ended:
        print(done.stdout, end="", flush=True)
        totals = TOTALS.search(done.stdout.strip())
        counts = [int(count or 0) for count in totals.groups()] if totals else [0, 0, 0]
        # A half in which no test was chosen says so by its exit code; that alone is no failure.
        good &= done.returncode == 0 or (totals is not None and not any(counts))
        sums = [left + right for left, right in zip(sums, counts)]
    if not arguments.list:
        print(f"suite: {sums[0]} passed, {sums[1]} failed" + (f", {sums[2]} skipped" if sums[2] else ""), flush=True)
    return not good or (not any(sums) and not arguments.only and not arguments.list)


def matrix(arguments: argparse.Namespace, toolgate: Path, installed: install.Installed) -> bool:
    """All cells. True if anything failed; without Node.js there is no matrix, which is no success either."""
    rmcp = toolgate.with_name("toolgate-rmcp-peer")
    reason = installed.missing.get("npm")
    if not os.access(rmcp, os.X_OK):
        reason = f"{rmcp} is not built: `cargo build --release -p toolgate-rmcp-peer`"
    if reason:
        print(f"matrix: 0 cells passed, 1 failed: {reason}")
        return True
    command = [str(installed.python), "-m", "matrix", "--toolgate", str(toolgate), "--parts", str(installed.root)]
    command += ["--node", str(installed.node), *only(arguments)]
    command += ["--update"] if arguments.update else []
    return run(command).returncode != 0


def run(command: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    """Runs one of them where it finds its modules."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment, check=False, text=True, **more)


def only(arguments: argparse.Namespace) -> list[str]:
    """The words that choose tests."""
    return [word for text in arguments.only for word in ("--only", text)]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolgate", required=True, help="the built binary; toolgate-rmcp-peer stands beside it")
    parser.add_argument("--parts", help="where the real parts are installed (default: tests/.real-parts)")
    parser.add_argument("--what", choices=("all", "suite", "matrix"), default="all", help="one of the two alone")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only tests and cells whose name holds TEXT; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the suite's tests and stop")
    parser.add_argument("--update", action="store_true", help="write docs/peers.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
