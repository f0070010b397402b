"""Writes the vectors in this directory. Run it here when a format changes, and look at the difference."""

import base64
import hashlib
import json

from reference import (
    L, P, PAYLOAD_TYPE, Key, b64, canonical, definition_digest, envelope, key_text, normalised, pae, read, sha256,
    signature, surface_digest,
)


def canonical_vectors():
    accepted = {
        "rfc-8785-3.2.2": r'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
                          r'"string": "\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/","literals": [null, true, false]}',
        "rfc-8785-3.2.3": r'{"\u20ac": "Euro Sign","\r": "Carriage Return","\ufb33": "Hebrew Letter Dalet With Dagesh",'
                          r'"1": "One","\ud83d\ude00": "Emoji: Grinning Face","\u0080": "Control",'
                          r'"\u00f6": "Latin Small Letter O With Diaeresis"}',
        "space": ' \t\r\n{ "b" : [ ] , "a" : { } } ',
        "one": "[1, 1.0, 1e0, 10e-1, 0.1e1, 1E+0]",
        "zero": "[0, -0, 0.0, -0.0, 0e400, -0e-400]",
        "integers-keep-their-text": "[9007199254740992, 9007199254740993, -9007199254740993, "
                                    "123456789012345678901234567890, 1000000000000000000000]",
        "doubles": "[1e21, 1e20, 123456789012345680000.0, 5e-324, 1.7976931348623157e308, 0.000001, 1e-7, -1.5, "
                   "9.007199254740992e15, 0.1, 295147905179352830000.0, 1.0e-6, 2.5E+1]",
        "numbers-no-double-holds": "[1e400, -1E400, 1e-400, 0.1000000000000000055511151231257827, "
                                   "9007199254740993.0, 9.007199254740993e15, 9007199254740993.5, 1e99999999999999999999, 4.9e-324, "
                                   "2.2250738585072011e-308, 1.234567890123456789]",
        "seventeen-digits": "[0.10000000000000001, 333333333.33333329, 1.0000000000000000, "
                            "0.12345678901234567, 0.12345678901234568, 4.35]",
        "escapes": r'"\u0000\u001f\u007f\u0080\/\b\f\n\r\t\"\\ \u00e9 \ud834\udd1e"',
        "utf-16-order": '{"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3}',
        "scalars": "null",
        "depth-64": "[" * 64 + "]" * 64,
    }
    refused = {
        "duplicate-key": ('{"a":1,"a":1}', "duplicate-key"),
        "duplicate-key-behind-an-escape": (r'{"a":1,"b":{"\u0061":1,"a":2}}', "duplicate-key"),
        "lone-high-surrogate": (r'"\ud800"', "lone-surrogate"),
        "lone-low-surrogate": (r'"\udc00"', "lone-surrogate"),
        "high-surrogate-before-another": (r'"\ud800\ud800"', "lone-surrogate"),
        "depth-65": ("[" * 65 + "]" * 65, "too-deep"),
    }
    broken = ['', ' ', '{', '[1,]', '{"a":1,}', '{a:1}', "{'a':1}", '01', '+1', '1.', '.5', '1e', '-', 'NaN', 'Infinity',
              'tru', '[1 2]', '"a', '"\n"', r'"\x"', r'"\u12"', '1 2', '\ufeff1', '[1]//', '\u00a01', '--1', r'"\u+123"']
    for index, text in enumerate(broken):
        refused[f"syntax-{index}"] = (text, "syntax")
    return {
        "accepted": [{"name": n, "input": t, "canonical": canonical(read(t))} for n, t in accepted.items()],
        "refused": [{"name": n, "input": t, "reason": r} for n, (t, r) in refused.items()],
    }


TOOL = {
    "name": "read_file", "title": "Read", "description": "Reads a file",
    "inputSchema": {"type": "object", "properties": {
        "path": {"type": ["string", "null"]}, "required": {"type": "array", "items": {"required": ["b", "a"]}},
        "mode": {"enum": [["b", "a"]], "default": {"type": ["z", "a"]}}}, "required": ["path", "mode"]},
    "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "icons": [{"src": "https://x/i.png"}],
    "execution": {"taskSupport": "optional"}, "_meta": {"ui": {"resourceUri": "ui://x"}, "version": 1}, "futureField": [1.0],
}


def changed(change):
    tool = json.loads(json.dumps(TOOL))
    change(tool)
    return json.dumps(tool)


def shuffled(value):
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in sorted(value, key=lambda name: name[::-1])}
    return [shuffled(e) for e in value] if isinstance(value, list) else value


def definition_vectors():
    schema_of = lambda tool: tool["inputSchema"]
    same = {
        "tool": json.dumps(TOOL),
        "tool-shuffled-and-indented": json.dumps(shuffled(TOOL), indent=3),
        "tool-number-spelled-differently": json.dumps(TOOL).replace("1.0", "1e0"),
        "tool-escaped": json.dumps(TOOL).replace("read_file", r"\u0072ead_file"),
        "tool-other-meta": changed(lambda t: t["_meta"].update(version=2, other="x")),
        "tool-required-in-another-order": changed(lambda t: schema_of(t).update(required=["mode", "path", "mode"])),
        "tool-type-in-another-order": changed(lambda t: schema_of(t)["properties"]["path"].update(type=["null", "string"])),
        "tool-nested-required": changed(
            lambda t: schema_of(t)["properties"]["required"]["items"].update(required=["a", "b"])),
    }
    different = {
        "name": changed(lambda t: t.update(name="read_files")),
        "title": changed(lambda t: t.update(title="Reads")),
        "description": changed(lambda t: t.update(description="Reads a fila")),
        "description-hidden-text": changed(lambda t: t.update(description="Reads a file\u200b")),
        "input-schema": changed(lambda t: schema_of(t).update(required=["path"])),
        "output-schema": changed(lambda t: t["outputSchema"].update(type="array")),
        "annotations": changed(lambda t: t["annotations"].update(readOnlyHint=False)),
        "icons": changed(lambda t: t.update(icons=[])),
        "execution": changed(lambda t: t["execution"].update(taskSupport="required")),
        "meta-ui": changed(lambda t: t["_meta"]["ui"].update(resourceUri="ui://y")),
        "meta-gone": changed(lambda t: t.pop("_meta")),
        "unknown-member": changed(lambda t: t.update(futureField=[2])),
        "member-added": changed(lambda t: t.update(x=None)),
        "enum-order": changed(lambda t: schema_of(t)["properties"]["mode"].update(enum=[["a", "b"]])),
        "default-order": changed(lambda t: schema_of(t)["properties"]["mode"].update(default={"type": ["a", "z"]})),
    }
    others = {
        "prompt": ("prompt", '{"name":"p","arguments":[{"name":"x","required":true}],"_meta":{"a":1}}'),
        "tool-of-the-same-text": ("tool", '{"name":"p","arguments":[{"name":"x","required":true}],"_meta":{"a":1}}'),
        "resource": ("resource", '{"uri":"file:///a","name":"a","size":9007199254740993}'),
        "template": ("template", '{"uriTemplate":"file:///{x}","name":"a"}'),
        "instructions": ("instructions", '"Be\\u0020kind.\\n"'),
        "meta-that-is-no-object": ("tool", '{"name":"p","_meta":[1]}'),
        "schema-that-is-none": ("tool", '{"name":"p","inputSchema":{"required":["b",1,"a"],"type":7}}'),
    }
    entry = lambda name, kind, text: {
        "name": name, "kind": kind, "input": text, "normalised": normalised(kind, read(text)),
        "digest": definition_digest(kind, text)}
    surface = [[kind, read(text).get("name") if kind != "instructions" else "", definition_digest(kind, text)]
               for kind, text in others.values()]
    odd = [["tool", "a\nprompt \"b\"", surface[0][2]], ["tool", "ü\u0000", surface[1][2]]]
    lists = {"empty": [], "all": surface, "all-reversed": surface[::-1], "odd-names": odd, "twice": surface[:1] * 2}
    return {
        "same": [entry(n, "tool", t) for n, t in same.items()],
        "different": [entry(n, "tool", t) for n, t in different.items()],
        "others": [entry(n, k, t) for n, (k, t) in others.items()],
        "surfaces": [{"name": n, "definitions": d, "digest": surface_digest(d)} for n, d in lists.items()],
    }


ONE, TWO, THREE = (Key(bytes([n]) * 32) for n in (1, 2, 3))


def is_square(n):
    return n % P == 0 or pow(n, (P - 1) // 2, P) == 1


def on_curve(y):
    d = -121665 * pow(121666, -1, P) % P
    return is_square((y * y - 1) * pow(d * y * y + 1, -1, P))


def key_vectors():
    rfc = Key(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    little = lambda n: n.to_bytes(32, "little")
    y8 = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826
    weak = {"order-1": 1, "order-2": P - 1, "order-4": 0, "order-8": y8, "order-8-too": P - y8,
            "order-4-odd": 2**255, "order-8-odd": y8 + 2**255, "order-8-too-odd": P - y8 + 2**255}
    refused = [{"name": n, "key": key_text(little(y)), "reason": "weak"} for n, y in weak.items()]
    beyond = next(y for y in range(2, 19) if on_curve(y))
    nowhere = next(y for y in range(2, 99) if not on_curve(y))
    text = ONE.text
    refused += [
        {"name": "y-beyond-p", "key": key_text(little(P + beyond)), "reason": "non-canonical"},
        {"name": "y-beyond-p-odd", "key": key_text(little(P + beyond + 2**255)), "reason": "non-canonical"},
        {"name": "y-beyond-p-of-order-1", "key": key_text(little(P + 1)), "reason": "non-canonical"},
        {"name": "no-point", "key": key_text(little(nowhere)), "reason": "not-a-point"},
        {"name": "scheme", "key": text.replace("ed25519", "rsa"), "reason": "scheme"},
        {"name": "scheme-in-capitals", "key": text.replace("ed25519", "Ed25519"), "reason": "scheme"},
        {"name": "bare", "key": text.split(":")[1], "reason": "scheme"},
        {"name": "short", "key": key_text(ONE.bytes[1:]), "reason": "length"},
        {"name": "long", "key": key_text(ONE.bytes + b"\0"), "reason": "length"},
        {"name": "empty", "key": "ed25519:", "reason": "length"},
        {"name": "without-padding", "key": text.rstrip("="), "reason": "base64"},
        {"name": "space", "key": text + " ", "reason": "base64"},
        {"name": "hex", "key": "ed25519:" + ONE.bytes.hex() + "!", "reason": "base64"},
    ]
    return {
        "accepted": [{"seed": k.seed.hex(), "key": k.text, "id": k.id} for k in (rfc, ONE, TWO, THREE)],
        "refused": refused,
    }


COMPONENT = b"\0asm\x0d\0\x01\0"
RELEASE = {
    "name": "acme/github-guard", "version": "1.4.2", "sequence": 17, "kind": "policy",
    "world": "toolgate:plugin/policy@0.1.0",
    "imports": ["toolgate:plugin/log@0.1.0", "toolgate:plugin/types@0.1.0"],
    "exports": ["toolgate:plugin/call-hook@0.1.0"],
    "capabilities": {
        "http": {"api": {"hosts": ["https://api.example.com"], "methods": ["get"], "max_response": 1048576}},
        "secrets": {"token": {"purpose": "bearer", "send_to": ["https://api.example.com"], "reveal": False}},
        "kv": {"cache": {"max_bytes": 1048576}}, "files": {"work": {"access": "read"}}},
    "decisions": ["ask", "deny"],
    "limits": {"memory_bytes": 33554432, "call_ms": 20, "init_ms": 200, "host_bytes": 1048576},
    "min_host": "0.1.0", "servers": [], "settings_hosts": ["/hosts"],
    "settings_schema": sha256(b"schema"), "readme": sha256(b"readme"), "sbom": None, "sources": sha256(b"sources"),
    "toolchain": "rustc 1.95.0", "previous": sha256(b"previous"), "published": "2026-11-29T12:00:00Z",
}


def statement(**changes):
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": RELEASE["name"], "digest": {"sha256": hashlib.sha256(COMPONENT).hexdigest()}}],
        "predicateType": "https://toolgate.dev/plugin-release/v1", "predicate": {**RELEASE, **changes},
    }


def bit_flips(value, path=()):
    """Every leaf of the statement with its lowest bit flipped, under the path to it."""
    if isinstance(value, dict):
        for name in value:
            yield from ((p, {**value, name: v}) for p, v in bit_flips(value[name], (*path, name)))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from ((p, value[:i] + [v] + value[i + 1:]) for p, v in bit_flips(element, (*path, str(i))))
    elif isinstance(value, str) and value:
        yield path, value[:-1] + chr(ord(value[-1]) ^ 1)
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield path, value ^ 1


def release_vectors():
    payload = canonical(statement()).encode()
    signed = lambda data, *keys, **kw: envelope(data, [signature(data, k, **kw) for k in keys or (ONE,)], **kw)
    sig = signature(payload, ONE)
    raw = base64.b64decode(sig["sig"])
    malleable = raw[:32] + (int.from_bytes(raw[32:], "little") + L).to_bytes(32, "little")
    rule = lambda *keys, minimum=1: {"keys": [k.text for k in keys], "minimum": minimum}
    two = rule(ONE, TWO, minimum=2)
    good = signed(payload)
    reverse = lambda text: text.replace("+", "-").replace("/", "_")

    accepted = [
        ("signed", good, rule(ONE), [ONE]),
        ("one-of-two", good, rule(ONE, TWO), [ONE]),
        ("two-of-two", signed(payload, ONE, TWO), two, [ONE, TWO]),
        ("two-of-three-and-a-stranger", signed(payload, THREE, Key(bytes(32)), ONE), rule(ONE, TWO, THREE, minimum=2),
         [ONE, THREE]),
        ("key-ids-swapped", envelope(payload, [{**signature(payload, ONE), "keyid": TWO.id},
                                               {**signature(payload, TWO), "keyid": ONE.id}]), two, [ONE, TWO]),
        ("key-id-missing", envelope(payload, [{"sig": sig["sig"]}]), rule(ONE), [ONE]),
        ("url-safe-base64", json.dumps({"payloadType": PAYLOAD_TYPE, "payload": reverse(b64(payload)).rstrip("="),
                                        "signatures": [{"sig": reverse(sig["sig"])}]}), rule(ONE), [ONE]),
        ("other-algorithm-beside", envelope(payload, [{"sig": b64(b"x" * 3309)}, sig]), rule(ONE), [ONE]),
        ("statement-with-space", signed(json.dumps(statement(), indent=1).encode()), rule(ONE), [ONE]),
    ]
    refused = []

    def refuse(name, reason, text, under=None):
        refused.append({"name": name, "reason": reason, "envelope": text, "rule": under or rule(ONE)})

    # Every bit flip of a leaf leaves a signature that is not over these bytes.
    for path, flipped in bit_flips(statement()):
        refuse("bit-flip-" + ".".join(path), "signature", envelope(canonical(flipped).encode(), [sig]))
    # Fields that this statement leaves out: those of a sealed guest with a bill of materials, and of an adapter.
    sealed = statement(sbom=sha256(b"sbom"), capabilities={
        "files": {"work": {"access": "read", "settings": "/roots"}}, "wasi": "sealed"})
    adapter = statement(kind="adapter", world="toolgate:plugin/adapter-plugin@0.1.0", decisions=[],
                        exports=["toolgate:plugin/adapter@0.1.0"], servers=["github"])
    named = {vector["name"] for vector in refused}
    for whole in (sealed, adapter):
        over = signature(canonical(whole).encode(), ONE)
        for path, flipped in bit_flips(whole):
            if (name := "bit-flip-" + ".".join(path)) not in named:
                refuse(name, "signature", envelope(canonical(flipped).encode(), [over]))
    for at in (0, 31, 32, 63):
        flipped = bytearray(raw)
        flipped[at] ^= 1
        refuse(f"bit-flip-signature-{at}", "signature", envelope(payload, [{"sig": b64(bytes(flipped))}]))
    refuse("bit-flip-payload-type", "payload-type", good.replace("in-toto+json", "in-toto+jsoo"))
    refuse("white-space-added", "signature", envelope(payload + b" ", [sig]))
    refuse("malleable-signature", "signature", envelope(payload, [{"sig": b64(malleable)}]))
    refuse("signed-as-another-type", "signature",
           envelope(payload, [signature(payload, ONE, payload_type="application/json")]))
    refuse("signed-without-encoding", "signature", envelope(payload, [{"sig": b64(ONE.secret.sign(payload))}]))
    # Keys and thresholds.
    refuse("another-key", "signature", signed(payload, TWO))
    refuse("another-key-under-the-right-id", "signature",
           envelope(payload, [{**signature(payload, TWO), "keyid": ONE.id}]))
    refuse("one-key-twice-toward-two", "signature", signed(payload, ONE, ONE), two)
    refuse("one-key-under-two-ids", "signature", envelope(payload, [sig, {**sig, "keyid": TWO.id}]), two)
    refuse("one-key-twice-in-the-rule", "rule", signed(payload, ONE, ONE), rule(ONE, ONE, minimum=2))
    refuse("rule-of-zero", "rule", good, rule(ONE, minimum=0))
    refuse("no-rule", "no-rule", good, {"keys": [], "minimum": 0})
    # The envelope.
    whole = json.loads(good)
    refuse("payload-type", "payload-type", signed(payload, payload_type="application/json"))
    refuse("no-signature", "no-signature", envelope(payload, []))
    refuse("seventeen-signatures", "too-many-signatures", envelope(payload, [sig] * 17))
    refuse("envelope-duplicate-key", "duplicate-key", good.replace("{", '{"payload":"",', 1))
    refuse("signature-duplicate-key", "duplicate-key", good.replace('"sig":', '"sig":"","sig":'))
    refuse("envelope-unknown-member", "malformed", json.dumps({**whole, "extra": 1}))
    refuse("signature-unknown-member", "malformed", envelope(payload, [{**sig, "cert": "x"}]))
    refuse("envelope-no-json", "malformed", good[:-3])
    refuse("envelope-is-a-list", "malformed", json.dumps([PAYLOAD_TYPE, b64(payload), [sig]]))
    refuse("signature-is-a-list", "malformed", envelope(payload, [[sig["sig"]]]))
    refuse("payload-no-base64", "base64", json.dumps({**whole, "payload": "!" + whole["payload"]}))
    refuse("signature-no-base64", "base64", envelope(payload, [{"sig": "?" + sig["sig"][1:]}]))
    refuse("payload-is-no-statement", "malformed", signed(b"[]"))
    # Statements that the right key signed and that still are none.
    sign = lambda value: signed(canonical(value).encode())
    subject = statement()["subject"][0]
    refuse("statement-duplicate-key", "duplicate-key",
           signed(payload.replace(b'"sequence":17', b'"sequence":17,"sequence":18')))
    refuse("capability-duplicate-key", "duplicate-key",
           signed(payload.replace(b'"cache":{', b'"cache":{"max_bytes":1},"cache":{')))
    refuse("statement-type", "statement-type", sign({**statement(), "_type": "https://in-toto.io/Statement/v2"}))
    refuse("predicate-type", "statement-type",
           sign({**statement(), "predicateType": "https://toolgate.dev/plugin-release/v2"}))
    refuse("statement-unknown-member", "malformed", sign({**statement(), "extra": 1}))
    refuse("release-unknown-member", "malformed", sign(statement(not_after=None)))
    refuse("limits-unknown-member", "malformed", sign(statement(limits={**RELEASE["limits"], "fuel": 1})))
    refuse("capability-unknown", "malformed", sign(statement(capabilities={"sockets": {}})))
    refuse("release-member-missing", "malformed",
           sign({**statement(), "predicate": {n: v for n, v in RELEASE.items() if n != "sequence"}}))
    refuse("limits-are-a-list", "malformed", sign(statement(limits=list(RELEASE["limits"].values()))))
    refuse("release-is-a-list", "malformed", sign({**statement(), "predicate": list(RELEASE.values())}))
    refuse("subject-is-a-list", "malformed", sign({**statement(), "subject": [list(subject.values())]}))
    refuse("capability-is-a-list", "malformed", sign(statement(capabilities={"kv": {"cache": [1]}})))
    refuse("no-subject", "subjects", sign({**statement(), "subject": []}))
    refuse("two-subjects", "subjects", sign({**statement(), "subject": [subject, subject]}))
    refuse("subject-of-another-name", "name", sign({**statement(), "subject": [{**subject, "name": "acme/other"}]}))
    refuse("subject-digest-in-capitals", "subject-digest",
           sign({**statement(), "subject": [{**subject, "digest": {"sha256": subject["digest"]["sha256"].upper()}}]}))
    refuse("subject-with-another-digest", "malformed",
           sign({**statement(), "subject": [{**subject, "digest": {**subject["digest"], "sha1": "x"}}]}))
    fields = {
        "name-without-namespace": {"name": "guard"}, "name-in-capitals": {"name": "Acme/guard"},
        "name-with-dots": {"name": "acme/../guard"}, "sequence-zero": {"sequence": 0},
        "world-without-version": {"world": "toolgate:plugin/policy"}, "imports-unsorted": {"imports": RELEASE["imports"][::-1]},
        "imports-twice": {"imports": RELEASE["imports"][:1] * 2}, "decisions-unknown": {"decisions": ["ask", "permit"]},
        "decisions-of-an-adapter": {"kind": "adapter"}, "servers-of-a-policy": {"servers": ["github"]},
        "settings-hosts-no-pointer": {"settings_hosts": ["hosts"]}, "toolchain-empty": {"toolchain": ""},
        "published-no-time": {"published": "yesterday"}, "published-no-day": {"published": "2026-02-29T12:00:00Z"},
        "published-elsewhere": {"published": "2026-11-29T12:00:00+01:00"},
    }
    for name, change in fields.items():
        value = statement(**change)
        value["subject"][0]["name"] = value["predicate"]["name"]
        refuse(name, "field", sign(value))
    for name, change in {"version": {"version": "1.4"}, "kind": {"kind": "source"}, "digest": {"readme": "md5:x"},
                         "sequence-as-text": {"sequence": "17"}, "sequence-with-a-point": {"sequence": 17.5}}.items():
        refuse(f"malformed-{name}", "malformed", sign(statement(**change)))

    return {
        "component": b64(COMPONENT), "seed": ONE.seed.hex(), "release": RELEASE, "statement": payload.decode(),
        "pae": b64(pae(PAYLOAD_TYPE, payload)),
        "accepted": [{"name": n, "envelope": e, "rule": r, "signers": sorted(k.id for k in s), "digest": sha256(e.encode())}
                     for n, e, r, s in accepted],
        "refused": refused,
    }


ABOUT = {
    "canonical": "`canonical` is the canonical JSON of `input`; `refused` inputs have none.",
    "definitions": "`normalised` is what is hashed behind the domain; all of `same` have one digest, all of `different` "
                   "another one each. Surfaces are lists of kind, name, digest.",
    "keys": "`accepted` keys with their seed and id; `refused` ones must not enter a rule.",
    "releases": "Each `envelope` is verified under its `rule`. `digest` is sha256 of the envelope's bytes. The first "
                "accepted one is exactly what signing `statement` with `seed` gives. A rule without keys means none.",
}

if __name__ == "__main__":
    for name, make in (("canonical", canonical_vectors), ("definitions", definition_vectors), ("keys", key_vectors),
                       ("releases", release_vectors)):
        with open(f"{name}.json", "w", encoding="ascii") as file:
            json.dump({"about": ABOUT[name], **make()}, file, indent=1)
            file.write("\n")
