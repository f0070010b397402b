"""Installs the real parts that the suite runs against, at exactly the pinned versions.

Why a script of its own: the parts come from two registries, and neither may leak into the machine.
Everything lands in one directory (`tests/.real-parts`, git-ignored; `TOOLGATE_REAL_PARTS` or
`--parts` moves it), nothing needs root, and a second run that finds the same pins does nothing.
Uses the standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT_PARTS = HERE.parent / ".real-parts"
MINIMUM_PYTHON = (3, 11)
MINIMUM_NODE = 20
INSTALL_SECONDS = 900


class MissingTool(Exception):
    """A tool of the machine that a part needs; the text says which, and what to install."""


@dataclass
class Installed:
    """What is there to test against, and what is not, with the reason."""

    root: Path
    python: Path | None = None
    node: Path | None = None
    modules: Path | None = None
    missing: dict[str, str] = field(default_factory=dict)


def parts_directory(given: str | None) -> Path:
    """The directory of the parts: the argument, else the variable, else beside the suite."""
    return Path(given or os.environ.get("TOOLGATE_REAL_PARTS") or DEFAULT_PARTS).resolve()


def install(root: Path) -> Installed:
    """Installs what is not there yet. A part that cannot be installed is named, never skipped silently."""
    root.mkdir(parents=True, exist_ok=True)
    installed = Installed(root)
    with open(root / ".lock", "w") as lock:
        # Two runs at once would write into each other's node_modules.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for ecosystem, step in (("pypi", install_python), ("npm", install_node)):
            try:
                step(installed)
            except (MissingTool, subprocess.SubprocessError, OSError) as error:
                installed.missing[ecosystem] = describe(error)
    return installed


def install_python(installed: Installed) -> None:
    """Virtual environments: one for the client and the servers of the suite, one for each generation of the
    SDK in the matrix, because both are the package `mcp`."""
    interpreter, root = find_python(), installed.root
    what = "mcp, mcp-server-time, mcp-server-git, componentize-py"
    install_environment(root / "venv", HERE / "requirements.txt", interpreter, what)
    install_environment(root / "python1", HERE / "matrix/python1.txt", interpreter, "mcp 1.x")
    install_environment(root / "python2", HERE / "matrix/python2.txt", interpreter, "mcp 2.x, fastmcp")
    installed.python = root / "venv/bin/python"


def install_environment(venv: Path, pins: Path, interpreter: str, what: str) -> None:
    """What a file pins, each file of it checked by its hash."""
    if is_current(venv, pins, interpreter):
        return
    note(f"installing the PyPI parts ({what})")
    shutil.rmtree(venv, ignore_errors=True)
    quietly([interpreter, "-m", "venv", str(venv)])
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    quietly([*pip, "--require-hashes", "--only-binary=:all:", "--requirement", str(pins)])
    mark_current(venv, pins, interpreter)


def install_node(installed: Installed) -> None:
    """The npm servers."""
    target = installed.root / "npm"
    installed.node = install_packages(HERE, target, "server-everything, server-filesystem, componentize-js")
    installed.modules = target / "node_modules"
    install_packages(HERE / "matrix", installed.root / "matrix", "the TypeScript SDKs 1.x and 2.x")


def install_packages(source: Path, target: Path, what: str) -> Path:
    """What the lock file in `source` pins, into `target`; lifecycle scripts of packages do not run. Gives the
    Node.js of the machine."""
    node, npm = find_node()
    lock = source / "package-lock.json"
    if not is_current(target, lock, node):
        note(f"installing the npm parts ({what})")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(source / name, target / name)
        quietly([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], target)
        mark_current(target, lock, node)
    return Path(node)


def find_python() -> str:
    """This interpreter if it is new enough, else a newer one on PATH."""
    names = ["python3", *(f"python3.{minor}" for minor in range(14, MINIMUM_PYTHON[1] - 1, -1))]
    candidates = [sys.executable, *filter(None, map(shutil.which, names))]
    for candidate in candidates:
        asked = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {MINIMUM_PYTHON})"
        if subprocess.run([candidate, "-c", asked], capture_output=True, check=False).returncode == 0:
            return candidate
    raise MissingTool("Python 3.11 or newer with the venv module (Debian: python3 python3-venv)")


def find_node() -> tuple[str, str]:
    """Node and npm, new enough for the servers."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise MissingTool(f"{'node' if node is None else 'npm'} (Node.js {MINIMUM_NODE} or newer with npm)")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < MINIMUM_NODE:
        raise MissingTool(f"Node.js {MINIMUM_NODE} or newer; {node} is {version}")
    return node, npm


def stamp(pins: Path, tool: str) -> str:
    """What an installation depends on: the pins, and the program that it was made for."""
    return f"{hashlib.sha256(pins.read_bytes()).hexdigest()} {os.path.realpath(tool)}\n"


def is_current(target: Path, pins: Path, tool: str) -> bool:
    """True if `target` was installed to the end from exactly these pins."""
    mark = target / ".installed"
    return mark.exists() and mark.read_text() == stamp(pins, tool)


def mark_current(target: Path, pins: Path, tool: str) -> None:
    """Written last, so that an installation that broke off is made anew."""
    (target / ".installed").write_text(stamp(pins, tool))


def quietly(command: list[str], cwd: Path | None = None) -> None:
    """Runs an installer without its chatter; what it said counts only when it failed."""
    subprocess.run(
        command, cwd=cwd, check=True, timeout=INSTALL_SECONDS, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def describe(error: Exception) -> str:
    """One line that says what is missing or what failed."""
    if isinstance(error, MissingTool):
        return f"needs {error}"
    if isinstance(error, subprocess.CalledProcessError):
        said = (error.stdout or "").strip().splitlines()[-4:]
        return f"`{Path(error.cmd[0]).name} {' '.join(error.cmd[1:4])} …` failed: {' | '.join(said)}"
    return f"{type(error).__name__}: {error}"


def note(text: str) -> None:
    """Progress belongs to standard error: standard output holds the results."""
    print(text, file=sys.stderr, flush=True)
