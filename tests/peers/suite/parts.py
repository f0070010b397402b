"""The real servers: how each is started, which era Toolgate must find, and what is asked of it.

The calls are chosen so that every shape of result a server can give comes by at least once: text,
images, audio-free media, embedded resources, links, structured content, annotations, errors of the
tool and errors of its input check.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Any
NPM_VERSION = "2026.8.31"
PYPI_VERSION = "2026.10.19"
LEGACY = "legacy"
MODERN = "2026-07-28"

# A PNG of one pixel, so that the file server has an image to read.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@dataclass(frozen=True)
class Call:
    """One call of a tool, by the name the server gives it."""

    tool: str
    arguments: dict[str, Json] = field(default_factory=dict)
    # The result names a moment or a fresh commit, which two runs cannot share; see `compare.mask`.
    volatile: bool = False


@dataclass(frozen=True)
class Part:
    """A real server as it is started for one test."""

    name: str
    package: str
    command: str
    args: tuple[str, ...]
    # The eras it speaks when a client reaches it directly.
    eras: tuple[str, ...]
    calls: tuple[Call, ...]
    parallel: tuple[Call, ...]
    # Set for a server that is reached over HTTP instead of being started.
    url: str | None = None

    @property
    def upstream_era(self) -> str:
        """The era in which Toolgate must come to speak with it: the newest it has."""
        return MODERN if MODERN in self.eras else LEGACY

    def entry(self, **more: Json) -> dict[str, Json]:
        """Its entry in `servers:`."""
        if self.url is not None:
            return {"transport": "streamable-http", "url": self.url, **more}
        return {"command": self.command, "args": list(self.args), **more}


@dataclass(frozen=True)
class Catalogue:
    """Where the parts are installed, and why some are not."""

    root: Path
    node: Path | None
    no_npm: str | None

    @property
    def bin(self) -> Path:
        """The programs of the Python parts."""
        return self.root / "venv/bin"

    def script(self, package: str) -> Path:
        """The entry point of an npm server."""
        return self.root / "npm/node_modules/@modelcontextprotocol" / package / "dist/index.js"

    @property
    def npm(self) -> Path:
        """Where the npm parts are installed."""
        return self.root / "npm"

    def why_missing(self, name: str) -> str | None:
        """Why a part cannot run on this machine, or None if it can."""
        if name in ("everything", "everything-http", "filesystem"):
            return self.no_npm
        if name == "git" and shutil.which("git") is None:
            return "needs git"
        return None

    def part(self, name: str, files: Path, url: str | None = None) -> Part:
        """A server set up over the sample files in `files`."""
        return BUILDERS[name](self, files, url)


def everything(where: Catalogue, _files: Path, url: str | None) -> Part:
    """The reference server with a tool for every shape of result; over stdio or over HTTP."""
    data = "data:text/plain;base64,SGVsbG8="
    calls = (
        Call("echo", {"message": "plain"}),
        Call("echo", {"message": "é 漢字 🎉 \"quoted\" \\ \t and\nlines </script> "}),
        Call("echo", {"message": ""}),
        Call("echo", {}),
        Call("echo", {"message": 7}),
        Call("get-sum", {"a": 1, "b": 2.5}),
        Call("get-sum", {"a": 9007199254740991, "b": -1e-7}),
        Call("get-sum", {"a": "x", "b": 2}),
        Call("get-tiny-image"),
        *(Call("get-structured-content", {"location": city}) for city in ("New York", "Chicago", "Los Angeles")),
        Call("get-structured-content", {"location": "Nowhere"}),
        *(Call("get-annotated-message", {"messageType": kind, "includeImage": image})
          for kind in ("error", "success", "debug") for image in (True, False)),
        Call("get-resource-links", {"count": 10}),
        Call("get-resource-reference", {"resourceType": "Text", "resourceId": 2}, volatile=True),
        Call("get-resource-reference", {"resourceType": "Blob", "resourceId": 3}, volatile=True),
        Call("get-resource-reference", {"resourceType": "Text", "resourceId": -1}),
        Call("gzip-file-as-resource", {"name": "a.txt", "data": data, "outputType": "resource"}),
        Call("gzip-file-as-resource", {"name": "b.txt", "data": data, "outputType": "resourceLink"}),
        Call("gzip-file-as-resource", {"name": "c.txt", "data": "ftp://127.0.0.1/x"}),
        Call("simulate-research-query", {"topic": "gateways"}),
        Call("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    )
    parallel = tuple(Call("echo", {"message": f"number {index}"}) for index in range(30))
    name = "everything" if url is None else "everything-http"
    args = (str(where.script("server-everything")), "stdio")
    package = f"npm server-everything {NPM_VERSION}"
    return Part(name, package, str(where.node), args, (LEGACY,), calls, parallel, url)


def filesystem(where: Catalogue, files: Path, _url: str | None) -> Part:
    """The file server over the sample files; its writes are checked on the disk as well."""
    def at(name: str) -> str:
        return str(files / name)

    calls = (
        Call("list_allowed_directories"),
        Call("read_text_file", {"path": at("plain.txt")}),
        Call("read_text_file", {"path": at("odd ✓.txt")}),
        Call("read_text_file", {"path": at("plain.txt"), "head": 1}),
        Call("read_text_file", {"path": at("large.txt")}),
        Call("read_text_file", {"path": "/etc/passwd"}),
        Call("read_text_file", {"path": at("none.txt")}),
        Call("read_text_file"),
        Call("read_media_file", {"path": at("pixel.png")}),
        Call("read_multiple_files", {"paths": [at("plain.txt"), at("none.txt")]}),
        Call("list_directory", {"path": at("")}),
        Call("list_directory_with_sizes", {"path": at(""), "sortBy": "size"}),
        Call("directory_tree", {"path": at("tree")}),
        Call("search_files", {"path": at(""), "pattern": "**/*.txt"}),
        Call("get_file_info", {"path": at("plain.txt")}, volatile=True),
        Call("create_directory", {"path": at("made")}),
        Call("write_file", {"path": at("made/new.txt"), "content": "one\ntwo\n"}),
        Call("edit_file", {"path": at("made/new.txt"), "edits": [{"oldText": "two", "newText": "zwei"}]}),
        Call("move_file", {"source": at("made/new.txt"), "destination": at("made/moved.txt")}),
        Call("read_text_file", {"path": at("made/moved.txt")}),
    )
    parallel = tuple(Call("read_text_file", {"path": at(f"many/{index}.txt")}) for index in range(20))
    args = (str(where.script("server-filesystem")), str(files))
    package = f"npm server-filesystem {NPM_VERSION}"
    return Part("filesystem", package, str(where.node), args, (LEGACY,), calls, parallel)


def time(where: Catalogue, _files: Path, _url: str | None) -> Part:
    """The time server, which speaks both eras but only one per process."""
    def convert(clock: str, zone: str) -> Call:
        return Call("convert_time", {"source_timezone": "UTC", "time": clock, "target_timezone": zone})

    calls = (
        convert("12:30", "Asia/Tokyo"),
        convert("00:00", "America/St_Johns"),
        convert("99", "Asia/Tokyo"),
        convert("12:30", "Not/AZone"),
        Call("get_current_time", {"timezone": "Europe/Warsaw"}, volatile=True),
        Call("get_current_time", {"timezone": "Not/AZone"}),
        Call("get_current_time"),
    )
    parallel = tuple(convert(f"{hour:02}:15", "Asia/Kathmandu") for hour in range(20))
    args = ("--local-timezone", "UTC")
    package = f"PyPI mcp-server-time {PYPI_VERSION}"
    return Part("time", package, str(where.bin / "mcp-server-time"), args, (LEGACY, MODERN), calls, parallel)


def git(where: Catalogue, files: Path, _url: str | None) -> Part:
    """The git server over a repository whose first commits are the same in every run."""
    repository = {"repo_path": str(files / "repository")}
    calls = (
        Call("git_status", repository),
        Call("git_log", {**repository, "max_count": 5}),
        Call("git_show", {**repository, "revision": "HEAD"}),
        Call("git_show", {**repository, "revision": "no-such-revision"}),
        Call("git_branch", {**repository, "branch_type": "local"}),
        Call("git_diff_unstaged", repository),
        Call("git_diff", {**repository, "target": "HEAD"}),
        Call("git_diff", {**repository, "target": "--output=/tmp/x"}),
        Call("git_log", {"repo_path": "/"}),
        Call("git_status"),
        Call("git_add", {**repository, "files": ["tracked.txt"]}),
        Call("git_diff_staged", repository),
        Call("git_commit", {**repository, "message": "third ✓"}, volatile=True),
        Call("git_create_branch", {**repository, "branch_name": "side"}),
        Call("git_checkout", {**repository, "branch_name": "side"}),
        Call("git_status", repository),
    )
    parallel = tuple(
        Call("git_show", {**repository, "revision": f"HEAD:many/{index}.txt"}) for index in range(12)
    )
    args = ("--repository", repository["repo_path"])
    package = f"PyPI mcp-server-git {PYPI_VERSION}"
    return Part("git", package, str(where.bin / "mcp-server-git"), args, (LEGACY, MODERN), calls, parallel)


BUILDERS: dict[str, Callable[[Catalogue, Path, str | None], Part]] = {
    "everything": everything,
    "everything-http": everything,
    "filesystem": filesystem,
    "time": time,
    "git": git,
}


def sample_files(files: Path, with_git: bool) -> None:
    """Makes the sample files anew, byte for byte the same each time, so that results can be compared."""
    shutil.rmtree(files, ignore_errors=True)
    for name in ("many", "tree/inner"):
        (files / name).mkdir(parents=True)
    texts = {"plain.txt": "first line\nsecond line\n", "odd ✓.txt": "é 漢字 🎉\r\n\ttab\n"}
    texts["tree/inner/leaf.txt"] = "leaf"
    # Longer than any pipe or read buffer, and of characters that do not end where buffers do.
    texts["large.txt"] = "".join(f"{index:07} größer 漢字 🎉\n" for index in range(70_000))
    texts |= {f"many/{index}.txt": f"file {index}\n" for index in range(20)}
    for name, text in texts.items():
        (files / name).write_bytes(text.encode())
    (files / "pixel.png").write_bytes(PIXEL)
    if with_git:
        sample_repository(files / "repository")


def sample_repository(where: Path) -> None:
    """A repository with two commits at fixed times, and a change that is not committed."""
    (where / "many").mkdir(parents=True)
    identity = {"NAME": "Sample", "EMAIL": "sample@example.invalid", "DATE": "2026-01-02T03:04:05+0000"}
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in identity.items()},
    }

    def run(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(where), *arguments], env=environment, check=True, capture_output=True)

    run("init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Sample"), ("user.email", "sample@example.invalid"), ("gc.auto", "0")):
        run("config", key, value)
    for index in range(12):
        (where / f"many/{index}.txt").write_text(f"blob {index}\n")
    for number, text in (("first", "one\n"), ("second", "one\ntwo ✓\n")):
        (where / "tracked.txt").write_text(text)
        run("add", ".")
        run("commit", "--quiet", "--message", number)
    (where / "tracked.txt").write_text("one\ntwo ✓\nthree\n")


def yaml(value: Json) -> str:
    """JSON is YAML, so that the configuration needs no second library."""
    return json.dumps(value, indent=1, ensure_ascii=False)
