"""Where everything is: interpreters, programs, directories, ports."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).resolve().with_name("programs")
LOOPBACK = Path(__file__).resolve().parent.parent / "suite/loopback.cjs"


@dataclass(frozen=True)
class Places:
    """What a run works with."""

    parts: Path
    node: Path
    toolgate: Path
    rmcp: Path
    scratch: Path

    @property
    def programs(self) -> Path:
        """The programs, beside the packages that they import."""
        return self.scratch / "programs"

    @property
    def everything(self) -> Path:
        """The entry point of server-everything."""
        return self.parts / "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"

    def python(self, generation: int) -> Path:
        """The interpreter that has `mcp` 1.x or 2.x."""
        return self.parts / f"python{generation}/bin/python"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of servers, clients and Toolgate."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.scratch / "home"),
            "XDG_CONFIG_HOME": str(self.scratch / "config"),
            "XDG_DATA_HOME": str(self.scratch / "share"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def prepare(parts: Path, node: Path, toolgate: Path) -> Places:
    """Makes the scratch directory. The binaries are copied: they may be built anew meanwhile."""
    scratch = Path(tempfile.mkdtemp(prefix="toolgate-matrix-"))
    for name in ("home", "config", "share", "bin"):
        (scratch / name).mkdir()
    rmcp = toolgate.with_name("toolgate-rmcp-peer")
    for binary in (toolgate, rmcp):
        shutil.copy2(binary, scratch / "bin" / binary.name)
    # Node looks for packages beside the file that imports them.
    shutil.copytree(PROGRAMS, scratch / "programs")
    (scratch / "programs/node_modules").symlink_to(parts / "matrix/node_modules")
    return Places(parts, node, scratch / "bin/toolgate", scratch / "bin/toolgate-rmcp-peer", scratch)


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
