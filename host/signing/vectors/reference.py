"""A second implementation of the formats of `toolgate-signing`.

It shares nothing with the Rust one but the description in `host/signing/src`, so that a mistake in
either shows: `make.py` writes vectors with this one, and the Rust tests replay them. Needs Python
3.11 and the package `cryptography`.
"""

import base64
import hashlib
import json
import re
from decimal import Decimal, InvalidOperation, getcontext

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

getcontext().prec = 1000  # enough to compare every number in the vectors exactly
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
PAYLOAD_TYPE = "application/vnd.in-toto+json"


# Canonical JSON -------------------------------------------------------------------------------

class Number:
    def __init__(self, text):
        self.text = text


def ecmascript(x):
    sign, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    point, count = exponent + len(digits), len(digits)
    if count <= point <= 21:
        body = digits + "0" * (point - count)
    elif 0 < point <= 21:
        body = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        fraction = "." + digits[1:] if count > 1 else ""
        body = f"{digits[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return ("-" if sign else "") + body


def number(text):
    if not re.search("[.eE]", text):
        return "0" if text == "-0" else text
    if not re.search("[1-9]", re.split("[eE]", text)[0]):
        return "0"
    try:
        value, x = Decimal(text), float(text)
    except InvalidOperation:  # an exponent beyond all counting
        return text
    if x in (0.0, float("inf"), float("-inf")):
        return text
    fraction = value != value.to_integral_value() if abs(value) < 10**40 else False
    held = Decimal(repr(x)) == value or fraction and significant(value) <= 17 and 2.0**-1022 <= abs(x) < 2.0**53
    return ecmascript(x) if held else text


def significant(value):
    return len("".join(map(str, value.as_tuple().digits)).strip("0"))


def utf16(text):
    return text.encode("utf-16-be", "surrogatepass")


def string(text):
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def canonical(value):
    if isinstance(value, Number):
        return number(value.text)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (int, float)):
        return number(json.dumps(value))
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    members = sorted(value.items(), key=lambda member: utf16(member[0]))
    return "{" + ",".join(f"{string(name)}:{canonical(member)}" for name, member in members) + "}"


def read(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


# Definitions ----------------------------------------------------------------------------------

SCHEMAS = """additionalItems additionalProperties allOf anyOf contains contentSchema else if items not
    oneOf prefixItems propertyNames then unevaluatedItems unevaluatedProperties""".split()
MAPS = "$defs definitions dependencies dependentSchemas patternProperties properties".split()


def schema(value):
    if not isinstance(value, dict):
        return value
    result = {}
    for keyword, member in value.items():
        if keyword in ("required", "type") and isinstance(member, list) and all(isinstance(e, str) for e in member):
            member = sorted(set(member), key=utf16)
        elif keyword in SCHEMAS:
            member = [schema(e) for e in member] if isinstance(member, list) else schema(member)
        elif keyword in MAPS and isinstance(member, dict):
            member = {name: schema(named) for name, named in member.items()}
        result[keyword] = member
    return result


def normalised(kind, value):
    if kind == "instructions":
        return canonical(value)
    value = dict(value)
    meta = value.pop("_meta", None)
    if isinstance(meta, dict) and "ui" in meta:
        value["_meta"] = {"ui": meta["ui"]}
    if kind == "tool":
        value |= {name: schema(value[name]) for name in ("inputSchema", "outputSchema") if name in value}
    return canonical(value)


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def definition_digest(kind, text):
    return sha256(f"toolgate definition v1\n{kind}\n{normalised(kind, read(text))}".encode())


def surface_digest(definitions):
    lines = sorted(f"{kind} {string(name)} {digest}\n".encode() for kind, name, digest in definitions)
    return sha256(b"toolgate surface v1\n" + b"".join(lines))


# Keys and envelopes ---------------------------------------------------------------------------

class Key:
    def __init__(self, seed):
        self.seed = seed
        self.secret = Ed25519PrivateKey.from_private_bytes(seed)
        self.bytes = self.secret.public_key().public_bytes_raw()
        self.text = key_text(self.bytes)
        self.id = hashlib.sha256(b"toolgate key v1\n\x01" + self.bytes).hexdigest()


def key_text(data):
    return "ed25519:" + base64.b64encode(data).decode()


def pae(payload_type, payload):
    return f"DSSEv1 {len(payload_type.encode())} {payload_type} {len(payload)} ".encode() + payload


def b64(data):
    return base64.b64encode(data).decode()


def signature(payload, key, payload_type=PAYLOAD_TYPE):
    return {"keyid": key.id, "sig": b64(key.secret.sign(pae(payload_type, payload)))}


def envelope(payload, signatures, payload_type=PAYLOAD_TYPE):
    # The order of members and the line feed are those of `sign_payload`, so that its bytes can be compared.
    fields = {"payloadType": payload_type, "payload": b64(payload), "signatures": signatures}
    return json.dumps(fields, separators=(",", ":")) + "\n"
