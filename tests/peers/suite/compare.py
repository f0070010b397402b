"""When two replies count as equal, and how a difference is shown.

Allowed to differ are exactly: the exposed name, `_meta` of a result, and the envelope of the era
(`resultType`, and on lists `ttlMs` and `cacheScope`). Everything else, the order of members
included, has to be what a direct connection gives.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from .parts import Json

ENVELOPE = ("_meta", "resultType", "ttlMs", "cacheScope")
LONGEST = 400

# Moments, and the ids of commits made at such a moment.
MASKS = (
    (re.compile(r"\d{1,2}:\d{2}:\d{2} [AP]M"), "<time>"),
    (re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?"), "<moment>"),
    (re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{4} \d{2}:\d{2}:\d{2} GMT[^\"\\\n]*"), "<moment>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
)


def bare(reply: Json, volatile: bool = False) -> Json:
    """A reply without what may differ."""
    reply = dict(reply)
    if isinstance(reply.get("result"), dict):
        reply["result"] = {key: value for key, value in reply["result"].items() if key not in ENVELOPE}
    return mask(reply) if volatile else reply


def mask(value: Any, key: str = "") -> Any:
    """Replaces moments by a word, also inside base64 text that says when it was made."""
    if isinstance(value, dict):
        return {name: mask(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [mask(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    text = base64.b64decode(value).decode(errors="replace") if key == "blob" else value
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def difference(what: str, direct: Json, through: Json, ordered: bool = True) -> list[str]:
    """Nothing if both are equal, else one text that shows the first place where they part."""
    left, right = text(direct, ordered), text(through, ordered)
    if left == right:
        return []
    at = next((index for index, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))
    start = max(0, at - 60)
    return [f"{what}:\n    direct  …{left[start:start + LONGEST]}\n    through …{right[start:start + LONGEST]}"]


def text(value: Json, ordered: bool) -> str:
    """JSON text; members keep their order unless the two come from servers that order them differently."""
    return json.dumps(value, ensure_ascii=False, sort_keys=not ordered)


def tools_difference(server: str, direct: list[Json], through: list[Json], ordered: bool) -> list[str]:
    """Compares two listings tool by tool: every field but the name, which has the server's before it."""
    prefix = f"{server}__"
    wanted = {prefix + tool["name"]: tool for tool in direct}
    got = {tool["name"]: tool for tool in through}
    found = [f"missing: {name}" for name in wanted if name not in got]
    found += [f"not the server's: {name}" for name in got if name not in wanted]
    found += [f"listed twice: {name}" for name in got if sum(tool["name"] == name for tool in through) > 1]
    for name in wanted.keys() & got.keys():
        # The name keeps its place, so that the order of members is compared with it.
        renamed = {**wanted[name], "name": name}
        found += difference(f"definition of {name}", renamed, got[name], ordered)
    return found
