"""Toolgate in front of the fixture, for the suite as client."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relay import relay

START_SECONDS = 60
STOP_SECONDS = 10
SERVER = "fixture"
# What is refused unless the operator says otherwise.
FORWARD = {"sampling": "forward", "roots": "forward", "logging": "forward"}
FIXTURE = Path(__file__).resolve().with_name("fixture.py")


@contextmanager
def behind_toolgate(toolgate: Path, scratch: Path, revision: str) -> Iterator[str]:
    """The URL under which the fixture is served, under its own names."""
    place = scratch / f"serving-{revision}"
    data = place / "data"
    if not data.exists():
        shutil.copytree(template(toolgate, scratch), data)
    era = "modern" if revision >= "2026" else "legacy"
    entry = {"command": sys.executable, "args": ["-B", str(FIXTURE), "--era", era], **FORWARD}
    config = configure(place, {SERVER: entry})
    port = free_port()
    command = [str(toolgate), "--config", str(config), "serve", "--listen", f"127.0.0.1:{port}", "--server", SERVER]
    with open(place / "log", "a") as log:
        process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        with relay(port, (data / "token").read_text().strip()) as outside:
            yield f"http://localhost:{outside}/mcp"
    finally:
        stop(process)


def template(toolgate: Path, scratch: Path) -> Path:
    """A data directory in which the plugins are compiled and a first token stands."""
    place = scratch / "template"
    data = place / "data"
    if not (place / "done").exists():
        config = configure(place, {})
        port = free_port()
        command = [str(toolgate), "--config", str(config), "serve", "--listen", f"127.0.0.1:{port}"]
        with open(place / "log", "w") as log:
            process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for(port, process)
        finally:
            stop(process)
        (place / "done").touch()
    return data


def configure(place: Path, entries: dict[str, Any]) -> Path:
    """A configuration that allows everything."""
    place.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"data_dir": str(place / "data")}
    if entries:
        persona = {"servers": list(entries), "capabilities": {"allow": ["mcp.call:*"]}}
        settings |= {"servers": entries, "personas": {"default": persona}}
    config = place / "toolgate.yaml"
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    return config


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until something listens."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"toolgate ended at once with exit {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.03)
    raise AssertionError(f"nothing listens on port {port} after {START_SECONDS} s")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Asks a process to end, and insists."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
