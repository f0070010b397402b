"""docs/peers.md: what the matrix saw last, written by `--update` and compared otherwise."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .cells import Cell, Runner
from .clients import CLIENTS

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs/peers.md"

HEAD = """# Real peers

Written by `python3 tests/peers/run.py --update`, and compared with what was seen by every other run.

Each server below offers the same tools, prompts, resources, templates and completions, made with the SDK that is
named, or is the reference server. Each client lists all of it, calls tools that answer with text, structured content,
media and errors, is asked something in the middle of a call, reads, completes, follows progress and cancels,
subscribes to a resource and hears of it: once through a gateway that has all of these servers at a time, where names
carry the server's, and once through `serve --stdio --server NAME`, which shows one server as it is. There a server on
pipes changes its list too, which its client hears of. A number says how many answers were compared with those of a
direct connection and found equal.

Asked are the servers of all SDKs; server-everything has no question that needs no other, and its subscriptions tell
by the clock. Subscriptions and changes are of the TypeScript SDK, of Python `mcp` 2.x and of rmcp: Python `mcp` 1.x
declares neither, and `fastmcp` has none. Tasks are in none of these SDKs but rmcp: its server makes one of a call,
which its own client asks for, and which Toolgate asks for in place of every other.

What may differ from a direct connection, and nothing else:

"""


def differs(cells: list[Cell], runner: Runner, update: bool) -> bool:
    """Whether the page is another than this run would write; with `update` it is written."""
    text = HEAD + allowed() + "\n" + table(cells, runner) + "\n" + versions()
    if update:
        PAGE.write_text(text)
        return False
    return not PAGE.exists() or PAGE.read_text() != text


def allowed() -> str:
    """The list that stands at the head of `equal.py`, which is what the run goes by."""
    document = (HERE / "equal.py").read_text().split('"""')[1]
    return document.split("nothing else:\n\n")[1]


def table(cells: list[Cell], runner: Runner) -> str:
    """A row for each server and transport, a column for each client."""
    heads = [f"{client.made_with}, {client.era}" for client in CLIENTS]
    lines = ["| server | transport | eras | " + " | ".join(heads) + " |", "|---" * (3 + len(heads)) + "|"]
    servers = list({cell.server.name: cell.server for cell in cells}.values())
    for server in servers:
        counts = [str(runner.compared[cell.name]) for cell in cells if cell.server.name == server.name]
        eras = ", ".join(server.eras)
        lines.append(f"| {server.made_with} | {server.transport} | {eras} | " + " | ".join(counts) + " |")
    return "\n".join(lines) + "\n"


def versions() -> str:
    """The pins, as the lock files have them."""
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    packages |= json.loads((HERE.parent / "package.json").read_text())["dependencies"]
    npm = sorted(f"`{name}` {version}" for name, version in packages.items() if "modelcontextprotocol" in name)
    pypi = [line.replace("==", " ") for name in ("python1.in", "python2.in")
            for line in (HERE / name).read_text().split()]
    lock = (HERE.parents[2] / "Cargo.lock").read_text()
    rmcp = re.search(r'name = "rmcp"\nversion = "([^"]+)"', lock)
    return (f"npm: {', '.join(npm)}. PyPI: {', '.join(f'`{word}`' for word in pypi)}. "
            f"crates.io: `rmcp` {rmcp.group(1) if rmcp else '?'}.\n")
