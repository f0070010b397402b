#!/usr/bin/env python3
"""Measures other programs that stand between a client and a server beside Toolgate, in one run.

    cargo build --release --workspace
    python3 tests/bench/peers/run.py [SECONDS]

Installs them at pinned versions below `tests/.real-parts` (`TOOLGATE_REAL_PARTS` moves it) and prints the tables of
`toolgate-bench peers`. SECONDS are those of one row, 3 by default. Only ratios within one run mean anything.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent.parent / "peers"))

import install  # noqa: E402  (the path above comes first)

# The whole of a proxy as fastmcp's own documents show it.
FASTMCP = (
    "import sys; from fastmcp.server import create_proxy; "
    "create_proxy(sys.argv[1]).run(transport='http', host='127.0.0.1', port=int(sys.argv[2]), show_banner=False)"
)


def main() -> int:
    """Installs, describes, measures."""
    bench = ROOT / "target/release/toolgate-bench"
    if not bench.exists():
        print(f"{bench} is not there; build it with `cargo build --release --workspace`", file=sys.stderr)
        return 1
    root = install.parts_directory(None)
    described = root / "bench-peers.json"
    described.parent.mkdir(parents=True, exist_ok=True)
    described.write_text(json.dumps(peers(root), indent=2))
    return subprocess.run([bench, "peers", str(described), *sys.argv[1:2]], check=False).returncode


def peers(root: Path) -> list[dict[str, object]]:
    """What is measured, and how each is started."""
    python = install.find_python()
    install.install_environment(root / "python2", install.HERE / "matrix/python2.txt", python, "mcp 2.x, fastmcp")
    install.install_environment(root / "bench-python", HERE / "requirements.txt", python, "mcp-proxy")
    node = str(install.install_packages(HERE, root / "bench-npm", "mcp-proxy, supergateway"))
    modules = root / "bench-npm/node_modules"
    proxy = str(root / "bench-python/bin/mcp-proxy")
    served = ["{fixture}", "--era", "legacy"]
    return [
        peer("fastmcp proxy", version_of(root / "python2", "fastmcp"), "http",
             [str(root / "python2/bin/python"), "-c", FASTMCP, "{upstream}", "{port}"]),
        peer("mcp-proxy (PyPI)", version_of(root / "bench-python", "mcp-proxy"), "stdio",
             [proxy, "--host", "127.0.0.1", "--port", "{port}", "--", *served]),
        peer("mcp-proxy (npm)", package(modules, "mcp-proxy")["version"], "stdio",
             [node, program(modules, "mcp-proxy"), "--host", "127.0.0.1", "--port", "{port}", "--server", "stream",
              "--no-eventStore", "--", *served]),
        peer("supergateway", package(modules, "supergateway")["version"], "stdio",
             [node, program(modules, "supergateway"), "--stdio", " ".join(served), "--outputTransport",
              "streamableHttp", "--stateful", "--port", "{port}", "--logLevel", "none"]),
    ]


def peer(name: str, version: str, over: str, command: list[str]) -> dict[str, object]:
    """One of them; all have their endpoint at the same path."""
    return {"name": name, "version": version, "over": over, "command": command, "path": "/mcp"}


def version_of(environment: Path, name: str) -> str:
    """What is installed."""
    asked = f"from importlib.metadata import version; print(version({name!r}))"
    ran = subprocess.run([environment / "bin/python", "-c", asked], check=True, text=True, capture_output=True)
    return ran.stdout.strip()


def package(modules: Path, name: str) -> dict[str, object]:
    """The description of an npm package."""
    return json.loads((modules / name / "package.json").read_text())


def program(modules: Path, name: str) -> str:
    """The script behind its command, so that no shell and no npx stand before it."""
    scripts = package(modules, name)["bin"]
    return str(modules / name / (scripts if isinstance(scripts, str) else scripts[name]))


if __name__ == "__main__":
    sys.exit(main())
