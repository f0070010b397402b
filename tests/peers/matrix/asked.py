"""What is asked in each cell, by the server's own names, and as a client of the gateway has to ask it."""

from __future__ import annotations

from typing import Any

Json = Any

# Text that breaks what counts bytes, quotes badly or knows one plane of Unicode only.
HARD = "é 漢字 🎉 \"quoted\" \\ \t and\nlines </script> "


def listing(method: str) -> Json:
    """A listing from its start."""
    return {"method": method, "params": {}}


def call(name: str, follow: str | None = None, **arguments: Json) -> Json:
    """A call of a tool."""
    asked = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
    notes = arguments.get("count", arguments.get("steps", 0))
    return asked | ({"follow": follow, "notes": notes} if follow else {})


def read(uri: str) -> Json:
    """A read."""
    return {"method": "resources/read", "params": {"uri": uri}}


def prompt(name: str, **arguments: str) -> Json:
    """A prompt."""
    return {"method": "prompts/get", "params": {"name": name, "arguments": arguments}}


def complete(ref: Json, name: str) -> Json:
    """A completion of one argument."""
    return {"method": "completion/complete", "params": {"ref": ref, "argument": {"name": name, "value": "an"}}}


def subscription(uri: str) -> Json:
    """A subscription to a resource, of which the tool `touch` then says that it changed."""
    return {"method": "subscribe", "params": {"uri": uri, "own": uri, "touch": "touch"}, "follow": "updated"}


# Those whose SDK has subscriptions, in one of the eras at least.
SUBSCRIBES = ("ts1", "ts2", "py2", "rmcp")

LISTINGS = [listing(method) for method in
            ("tools/list", "prompts/list", "resources/list", "resources/templates/list")]


def requests(kind: str, cell: str, own: bool) -> list[Json]:
    """Everything that a server is asked; `cell` makes a hanging call known. One that is a client's `own` is changed
    by it, last of all."""
    if kind == "everything":
        return EVERYTHING
    changes = [{**call("grow"), "follow": "changed"}] if own and kind in SUBSCRIBES else []
    return [
        *LISTINGS,
        call("echo", text="plain"),
        call("echo", text=HARD),
        call("echo"),
        call("sum", a=1, b=41),
        call("pieces"),
        call("fail"),
        call("no-such-tool"),
        call("steps", "progress", count=3),
        call("ask", "answer"),
        call("hang", "cancel", key=cell),
        prompt("greet", who="you"),
        prompt("no-such-prompt"),
        read("matrix://static"),
        read("matrix://item/7"),
        read("matrix://nothing/at/all"),
        complete({"type": "ref/prompt", "name": "greet"}, "who"),
        complete({"type": "ref/resource", "uri": "matrix://item/{id}"}, "id"),
        *([subscription("matrix://static")] if kind in SUBSCRIBES else []),
        *([{**call("job"), "follow": "task"}] if kind == "rmcp" else []),
        # Late, so that the cancellation had its time.
        call("ended", key=cell),
        *changes,
    ]


EVERYTHING = [
    *LISTINGS,
    call("echo", message=HARD),
    call("echo"),
    call("get-sum", a=1, b=2.5),
    call("get-structured-content", location="Chicago"),
    call("get-tiny-image"),
    call("get-annotated-message", messageType="error", includeImage=True),
    call("get-resource-links", count=3),
    call("no-such-tool"),
    call("trigger-long-running-operation", "progress", duration=0.2, steps=2),
    prompt("simple-prompt"),
    prompt("args-prompt", city="Oslo"),
    read("demo://resource/static/document/features.md"),
    read("demo://resource/dynamic/text/1"),
    read("demo://resource/nothing"),
    complete({"type": "ref/prompt", "name": "completable-prompt"}, "department"),
    complete({"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}, "resourceId"),
]


def behind(server: str, asked: Json) -> Json:
    """The same request by the names that the gateway shows: tools and prompts carry the server's name, and a URI
    says which server is meant, because every server of the matrix claims the same ones."""
    params = dict(asked["params"])
    for member in ("name", "touch"):
        if member in params:
            params[member] = f"{server}__{params[member]}"
    if "uri" in params:
        params["uri"] = shown(server, params["uri"])
    if "ref" in params:
        ref = dict(params["ref"])
        if "name" in ref:
            ref["name"] = f"{server}__{ref['name']}"
        else:
            ref["uri"] = shown(server, ref["uri"])
        params["ref"] = ref
    return {**asked, "params": params}


def shown(server: str, uri: str) -> str:
    """A URI in the form that names its server (docs/compatibility.md)."""
    scheme, rest = uri.split(":", 1)
    return f"{scheme}://toolgate.{server}/{rest}"


def original(server: str, value: Json) -> Json:
    """What came back through the gateway, with the server's own names and URIs, and nothing of other servers."""
    if isinstance(value, dict):
        return {key: original(server, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [original(server, inner) for inner in value if not foreign(server, inner)]
    if isinstance(value, str):
        if value.startswith(f"{server}__"):
            return value.removeprefix(f"{server}__")
        scheme, mark, rest = value.partition(f"://toolgate.{server}/")
        return f"{scheme}:{rest}" if mark else value
    return value


def foreign(server: str, item: Json) -> bool:
    """Whether an entry of a listing is another server's."""
    if not isinstance(item, dict):
        return False
    uri = item.get("uri", item.get("uriTemplate"))
    if isinstance(uri, str) and "://toolgate." in uri:
        return f"://toolgate.{server}/" not in uri
    name = item.get("name")
    # A tool or a prompt; what has a URI goes by that.
    return uri is None and isinstance(name, str) and "__" in name and not name.startswith(f"{server}__")
