"""What the fixture lists."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

Json = Any


def pixel() -> str:
    """A PNG of one red pixel."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def silence() -> str:
    """A WAV file of two samples."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    data = struct.pack("<4sI", b"data", 2) + b"\x80\x80"
    return base64.b64encode(struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data).decode()


def elicitation(message: str, **properties: str) -> Json:
    """A question with a form of these members, all of them wanted."""
    schema = {
        "type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def tool(name: str, description: str, /, **properties: Json) -> Json:
    """A tool whose arguments are all wanted."""
    schema: Json = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = list(properties)
    return {"name": name, "description": description, "inputSchema": schema}


IMAGE: Json = {"type": "image", "data": pixel(), "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": silence(), "mimeType": "audio/wav"}
STRING: Json = {"type": "string"}

ROUNDS = (
    "elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "tampered_state",
    "capabilities",
)
TOOLS: list[Json] = [
    tool("test_simple_text", "Gives a text."),
    tool("test_image_content", "Gives an image."),
    tool("test_audio_content", "Gives a sound."),
    tool("test_embedded_resource", "Gives a resource."),
    tool("test_multiple_content_types", "Gives content of several kinds."),
    tool("test_tool_with_logging", "Logs while it works."),
    tool("test_logging_tool", "Logs only if it was asked to."),
    tool("test_tool_with_progress", "Reports progress."),
    tool("test_error_handling", "Fails."),
    tool("test_sampling", "Asks the client's model.", prompt=STRING),
    tool("test_elicitation", "Asks the person at the client.", message=STRING),
    tool("test_elicitation_sep1034_defaults", "Asks with a form that has defaults."),
    tool("test_elicitation_sep1330_enums", "Asks with a form of choices."),
    tool("test_reconnection", "Answers after a while."),
    tool("test_missing_capability", "Needs a client that can sample."),
    tool("test_streaming_elicitation", "Asks in a round."),
    tool("test_trigger_tool_change", "Changes the list of tools."),
    tool("test_trigger_prompt_change", "Changes the list of prompts."),
    tool("test_comes_and_goes", "Is there at first."),
    tool("test_custom_header", "Has an argument that is repeated as a header.",
         region={"type": "string", "x-mcp-header": "Region"}),
    {
        "name": "json_schema_2020_12_tool",
        "description": "Has a schema with keywords of JSON Schema 2020-12.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING},
            }},
            "properties": {
                "name": STRING, "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": STRING, "email": STRING,
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        },
    },
    tool("greet", "Says hello.", name=STRING),
    tool("slow_compute", "Makes a task that takes some seconds.", seconds={"type": "number"}, label=STRING),
    tool("failing_job", "Makes a task whose tool fails."),
    tool("protocol_error_job", "Makes a task that breaks."),
    tool("confirm_delete", "Makes a task that asks first.", filename=STRING),
    tool("multi_input", "Makes a task that asks twice at once."),
    tool("test_tool_with_task", "Asks, and then makes a task."),
    *(tool(f"test_input_required_result_{name}", f"Asks in rounds: {name}.") for name in ROUNDS),
]


def prompt(name: str, description: str, *arguments: str) -> Json:
    """A prompt whose arguments are all wanted."""
    wanted = [{"name": argument, "description": "An argument.", "required": True} for argument in arguments]
    return {"name": name, "description": description, "arguments": wanted}


PROMPTS: list[Json] = [
    prompt("test_simple_prompt", "A text."),
    prompt("test_prompt_with_arguments", "A text with two arguments.", "arg1", "arg2"),
    prompt("test_prompt_with_embedded_resource", "A resource.", "resourceUri"),
    prompt("test_prompt_with_image", "An image."),
    prompt("test_input_required_result_prompt", "Asks in a round."),
    prompt("test_comes_and_goes_too", "Is there at first."),
]

RESOURCES: list[Json] = [
    {"uri": "test://static-text", "name": "static text", "description": "A text.", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static binary", "description": "An image.", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "Can be watched.", "mimeType": "text/plain"},
]
TEMPLATES: list[Json] = [{
    "uriTemplate": "test://template/{id}/data", "name": "data by id", "description": "Data.",
    "mimeType": "application/json",
}]
