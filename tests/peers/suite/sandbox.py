"""A place of its own for one run of Toolgate: home, configuration, data, and nothing of the machine's."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .client import Transport, over_http, over_stdio
from .parts import Json, Part, yaml

START_SECONDS = 30
COMMAND_SECONDS = 60
STOP_SECONDS = 10


class Sandbox:
    """Directories, configuration and the binary."""

    def __init__(self, root: Path, toolgate: Path) -> None:
        shutil.rmtree(root, ignore_errors=True)
        for name in ("home", "config", "share", "work"):
            (root / name).mkdir(parents=True)
        self.root, self.toolgate = root, toolgate
        self.config, self.log = root / "toolgate.yaml", root / "log"
        self.log.touch()

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.root / "data"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of Toolgate."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_DATA_HOME": str(self.root / "share"),
            # npx would look for a newer npm on the network.
            "npm_config_update_notifier": "false",
            "npm_config_offline": "true",
            # Must not reach a server: Toolgate passes on an allow list of names only.
            "PEERS_SECRET": "must-not-pass",
        }

    def configure(
        self, servers: dict[str, Json], allow: Sequence[str] | None = ("mcp.call:*",), plugins: Json = None,
    ) -> None:
        """Writes the operator's file: these servers for persona `default`, with these labels, or with none."""
        persona: dict[str, Json] = {"servers": list(servers)} if servers else {}
        if allow is not None:
            persona["capabilities"] = {"allow": list(allow)}
        settings: dict[str, Json] = {"data_dir": str(self.data)}
        settings |= {"servers": servers} if servers else {}
        settings |= {"personas": {"default": persona}} if persona else {}
        settings |= {"plugins": plugins} if plugins else {}
        self.config.write_text(yaml(settings))
        self.config.chmod(0o600)

    def configure_part(self, part: Part, **more: Json) -> None:
        """One server under its own name, everything allowed."""
        self.configure({part.name: part.entry(**more)})

    def command(self, *arguments: str) -> list[str]:
        """The binary with this sandbox's configuration."""
        return [str(self.toolgate), "--config", str(self.config), *arguments]

    def run(
        self, *arguments: str, cwd: Path | None = None, seconds: int = COMMAND_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a verb to its end."""
        done = subprocess.run(
            self.command(*arguments), env=self.environment, cwd=cwd or self.root / "work",
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False,
        )
        with open(self.log, "a") as log:
            log.write(done.stderr)
        return done

    def start(self, *arguments: str, pipes: bool = False) -> subprocess.Popen[bytes]:
        """Starts a verb that goes on."""
        channel = subprocess.PIPE if pipes else subprocess.DEVNULL
        with open(self.log, "a") as errors:
            return subprocess.Popen(
                self.command(*arguments), env=self.environment, cwd=self.root / "work",
                stdin=channel, stdout=channel, stderr=errors,
            )

    def stdio(self) -> Transport:
        """A transport that starts `serve --stdio`, as a client's own configuration would."""
        command, *arguments = self.command("serve", "--stdio", "--no-share")
        return over_stdio(command, arguments, self.environment, self.log)

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        """`serve --listen` on a free loopback port, stopped with TERM at the end."""
        port = free_port()
        process = self.start("serve", "--listen", f"127.0.0.1:{port}")
        try:
            wait_for_port(port, process)
            yield Listener(f"http://127.0.0.1:{port}/mcp", self.data / "token", process)
        finally:
            stop(process)

    def events(self) -> list[Json]:
        """The rows of the audit log, oldest first."""
        done = self.run("audit", "tail", "-n", "100000", "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def verify_audit(self) -> None:
        """The audit log has to be whole whatever happened."""
        done = self.run("audit", "verify")
        assert done.returncode == 0, f"audit verify: exit {done.returncode}: {done.stdout}{done.stderr}"


class Listener:
    """A listening Toolgate."""

    def __init__(self, url: str, token: Path, process: subprocess.Popen[bytes]) -> None:
        self.url, self.process = url, process
        self._token = token

    @property
    def token(self) -> str:
        """The token that was made at the first start."""
        return self._token.read_text().strip()

    def http(self) -> Transport:
        """A transport to it."""
        return over_http(self.url, self.token)


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until something listens."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"ended at once with exit {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.03)
    raise AssertionError(f"nothing listens on port {port} after {START_SECONDS} s")


def stop(process: subprocess.Popen[bytes]) -> int:
    """Asks a process to end, and insists."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"did not end within {STOP_SECONDS} s of TERM") from None
