#!/usr/bin/env python3
"""Runs Toolgate between a real client and real servers.

    python3 tests/peers/run.py --toolgate target/release/toolgate [--only TEXT] [--list] [--parts DIR]

The first run installs the parts (see `install.py`); later runs need no network. Exit code 0 if all
passed, 1 if not. With `CI=true` a test that was skipped is a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import install  # noqa: E402  (the path above comes first)


def main() -> int:
    """Installs, then hands over to the interpreter of the parts, which has the client."""
    arguments = parse()
    toolgate = Path(arguments.toolgate).resolve()
    if not os.access(toolgate, os.X_OK):
        print(f"{toolgate} is no program; build it with `cargo build --release -p toolgate`", file=sys.stderr)
        return 1
    installed = install.install(install.parts_directory(arguments.parts))
    if installed.python is None:
        print(f"nothing can run without the client: {installed.missing['pypi']}", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    command = [str(installed.python), "-m", "suite", "--toolgate", str(toolgate), "--parts", str(installed.root)]
    command += ["--node", str(installed.node)] if installed.node else ["--no-npm", installed.missing["npm"]]
    command += [word for text in arguments.only for word in ("--only", text)]
    command += ["--list"] if arguments.list else []
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolgate", required=True, help="the built binary")
    parser.add_argument("--parts", help="where the real parts are installed (default: tests/.real-parts)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only tests whose name holds TEXT; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the tests and stop")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
