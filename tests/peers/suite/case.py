"""A test, and what it finds in its hands."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import sandbox as sandboxes
from .client import Session, connect, over_http, over_stdio
from .parts import LEGACY, MODERN, Catalogue, Json, Part, sample_files
from .sandbox import Sandbox

STDIO, HTTP = "stdio", "http"
TEST_SECONDS = 90


class Skipped(Exception):
    """This test cannot run here; the text says why."""


@dataclass(frozen=True)
class Case:
    """One test of the matrix. `run` fails by raising."""

    title: str
    part: str
    transport: str
    era: str
    run: Callable[[Bench], Awaitable[None]]
    seconds: int = TEST_SECONDS

    @property
    def name(self) -> str:
        """What `--only` looks at."""
        return f"{self.part}/{self.transport}/{self.era}/{self.title}"


@dataclass
class Direct:
    """What a direct connection gave: the standard that Toolgate is held to."""

    tools: list[Json]
    replies: list[Json]
    parallel: list[Json]


@dataclass
class Bench:
    """What one test works with. Made anew for each test; only the direct results are shared."""

    case: Case
    catalogue: Catalogue
    toolgate: Path
    scratch: Path
    direct_results: dict[tuple[str, str], Direct] = field(default_factory=dict)
    sandbox: Sandbox = field(init=False)
    part: Part = field(init=False)
    upstream_log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = Sandbox(self.scratch / "sandbox", self.toolgate)
        self.upstream_log = self.scratch / "upstream.log"
        self.upstream_log.write_text("")

    @property
    def files(self) -> Path:
        """The sample files. Always at the same place, because results name it."""
        return self.scratch / "files"

    def fresh_files(self) -> None:
        """Undoes what calls changed in the sample files."""
        sample_files(self.files, with_git=self.case.part == "git")

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Sample files in place, and the HTTP server running where the part is reached over HTTP."""
        name = self.case.part
        if reason := self.catalogue.why_missing(name):
            raise Skipped(reason)
        self.fresh_files()
        if name != "everything-http":
            self.part = self.catalogue.part(name, self.files)
            yield
            return
        with self.everything_over_http() as url:
            self.part = self.catalogue.part(name, self.files, url)
            yield

    @contextmanager
    def everything_over_http(self) -> Iterator[str]:
        """The everything server on a loopback port; gives its URL. Its output says what sessions it had."""
        port = sandboxes.free_port()
        command = [str(self.catalogue.node), "--require", str(Path(__file__).with_name("loopback.cjs")),
                   str(self.catalogue.script("server-everything")), "streamableHttp"]
        environment = {**self.sandbox.environment, "PORT": str(port)}
        with open(self.upstream_log, "a") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            sandboxes.wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
            process.wait()

    @asynccontextmanager
    async def directly(self, era: str) -> AsyncIterator[Session]:
        """The real client on the real server, nothing between."""
        part = self.part
        if part.url is not None:
            transport = over_http(part.url, None)
        else:
            transport = over_stdio(part.command, list(part.args), self.sandbox.environment, self.upstream_log)
        async with connect(transport, era) as session:
            yield session

    @asynccontextmanager
    async def through(self) -> AsyncIterator[Session]:
        """The real client on Toolgate, over this test's transport and in its era."""
        if self.case.transport == STDIO:
            async with connect(self.sandbox.stdio(), self.case.era) as session:
                yield session
            return
        with self.sandbox.listening() as listener:
            async with connect(listener.http(), self.case.era) as session:
                yield session

    async def direct(self, era: str) -> Direct:
        """The results of a direct connection in one era; asked once, because servers do not change meanwhile."""
        key = (self.part.name, era)
        if key not in self.direct_results:
            self.fresh_files()
            async with self.directly(era) as session:
                tools = await session.list_tools()
                replies = [await session.call(call) for call in self.part.calls]
            self.fresh_files()
            async with self.directly(era) as session:
                parallel = [await session.call(call) for call in self.part.parallel]
            self.direct_results[key] = Direct(tools, replies, parallel)
        return self.direct_results[key]

    @property
    def same_era(self) -> str:
        """The era in which a direct connection of this test's client would speak: its own, if the server has it."""
        wanted = LEGACY if self.case.era == LEGACY else MODERN
        return wanted if wanted in self.part.eras else self.part.upstream_era

    @property
    def prefix(self) -> str:
        """What Toolgate puts before the names of this part's tools."""
        return f"{self.part.name}__"

    def check(self, differences: list[str]) -> None:
        """Fails with all differences at once."""
        assert not differences, f"{len(differences)} differences\n  " + "\n  ".join(differences[:8])
