"""When an answer through Toolgate counts as the one of a direct connection.

May differ, and nothing else:

1. names of tools and prompts, and URIs, where the gateway shows several servers (undone before comparing);
2. the era's envelope of a result: `resultType`, `ttlMs`, `cacheScope`, and in `_meta` what begins with
   `io.modelcontextprotocol/`;
3. in `_meta`, what begins with `toolgate/`;
4. an unknown name, which Toolgate refuses itself: the code -32602 in place of whatever the server says;
5. a resource that is not there, which is -32002 in the legacy era and -32602 in the modern one;
6. the order of members, where the server speaks another era to Toolgate than to the client;
7. a cancellation that the server does not notice in the era of the direct connection, and does in the one in which
   Toolgate reaches it;
8. a question's words: Toolgate writes before them whose they are, and titles say it again;
9. a question that the server cannot ask, a subscription that it does not take, and a change of its list of which it
   says nothing, in the era of the direct connection, and does in the one in which Toolgate reaches it.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = Any
ENVELOPE = ("resultType", "ttlMs", "cacheScope")
LONGEST = 300
WHOSE = re.compile(r"^(⚠️ MCP server '[^']+' asks \(this is NOT Toolgate\):\n|\[MCP server '[^']+'\] )")
MOMENTS = re.compile(r"\d{1,2}:\d{2}:\d{2} [AP]M")


def bare(answer: Json) -> Json:
    """An answer without what may differ."""
    answer = dict(answer)
    if isinstance(answer.get("result"), dict):
        answer["result"] = without_envelope(answer["result"])
    if isinstance(answer.get("error"), dict):
        error = dict(answer["error"])
        error["code"] = -32602 if error["code"] == -32002 else error["code"]
        answer["error"] = error
    if "asked" in answer:
        answer["asked"] = [question(params) for params in answer["asked"]]
    return answer


def question(params: Json) -> str:
    """What a person reads of a question and may type: the rest is what one SDK or the other keeps of it. A field
    without a title has its name for one."""
    schema = params["requestedSchema"]
    fields = {
        name: {"title": name} | {key: WHOSE.sub("", value) if key == "title" else value for key, value in field.items()}
        for name, field in schema["properties"].items()
    }
    kept = {"message": WHOSE.sub("", params["message"]), "fields": fields, "required": schema.get("required")}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True)


def without_envelope(result: Json) -> Json:
    """A result without the envelope of its era and without what Toolgate adds."""
    kept = {key: value for key, value in result.items() if key not in ENVELOPE}
    meta = kept.get("_meta")
    if isinstance(meta, dict):
        ours = ("io.modelcontextprotocol/", "toolgate/")
        meta = {key: value for key, value in meta.items() if not key.startswith(ours)}
        kept.pop("_meta")
        if meta:
            kept["_meta"] = meta
    return kept


def difference(asked: Json, direct: Json, through: Json, ordered: bool) -> str | None:
    """Nothing, or the first place where they part."""
    params = asked["params"]
    if str(params.get("name", "")).startswith("no-such-"):
        code = through.get("error", {}).get("code")
        return None if code == -32602 else f"an unknown name is not refused: {through}"
    if params.get("name") == "ended" and said(through) == "cancelled" and said(direct) == "running":
        return None
    if asked.get("follow") == "answer" and not direct.get("asked") and through.get("asked"):
        return None if said(through) == "accept: because" else f"a question came to nothing: {through}"
    if asked.get("follow") == "updated" and direct.get("refused") and through.get("updated"):
        return None
    if asked.get("follow") == "changed" and through.get("changed"):
        return None
    left, right = (text(bare(answer), ordered) for answer in (direct, through))
    if left == right:
        return None
    at = next((index for index, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))
    start = max(0, at - 60)
    what = params.get("name") or params.get("uri") or ""
    return (f"{asked['method']} {what}\n      direct  …{left[start:start + LONGEST]}\n"
            f"      through …{right[start:start + LONGEST]}")


def text(value: Json, ordered: bool) -> str:
    """JSON text; moments of the clock are one word."""
    return MOMENTS.sub("<time>", json.dumps(value, ensure_ascii=False, sort_keys=not ordered))


def said(answer: Json) -> str:
    """The text of a result."""
    content = answer.get("result", {}).get("content") or [{}]
    return content[0].get("text", "")
