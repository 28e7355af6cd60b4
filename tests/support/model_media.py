"""What the tests' model server answers on its image and speech routes (tests/support/model_server.py lists the
commands).
"""

import base64
import json
import math
import struct
from collections.abc import Callable
from email import message_from_bytes
from hashlib import sha256
from typing import Any

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RATE = 24_000


def images(request: dict[str, Any], commands: frozenset[str], base_url: str) -> dict[str, Any]:
    count = request.get("n") or 1
    count = 1 if "fewer" in commands else count + 3 if "too-many" in commands else 0 if "none" in commands else count
    encoded = base64.b64encode(PNG + bytes(32 << 20 if "over-32-mib" in commands else 0)).decode()
    picture: dict[str, Any] = {"b64_json": encoded, "revised_prompt": f"A nicer {request.get('prompt')}"}
    if "url-only" in commands:
        picture = {"url": "http://127.0.0.1:9/secret.png"}
    if "data-url" in commands:
        picture = {"url": f"data:image/png;base64,{encoded}"}
    if "bad-picture" in commands:
        picture = {"b64_json": "@@@ not base64 @@@"}
    if "other-file" in commands:
        picture = {"b64_json": base64.b64encode(b"hello").decode()}
    if "own-url" in commands:
        picture = {"url": f"{base_url}/generated/picture.png"}
    if "in-lines" in commands:
        picture = {
            "b64_json": "\r\n".join(encoded[place : place + 20] for place in range(0, len(encoded), 20)).rstrip("=")
        }
    if "half-emoji" in commands:
        picture["revised_prompt"] = "A nicer \ud83d"
    usage: Any = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "input_tokens_details": {"text_tokens": 3}}
    for _ in range(600 if "deep" in commands else 0):
        usage = {"input_tokens_details": usage, "output_tokens": 5}
    lost = [{"url": f"{base_url}/generated/lost.png"}] if "last-lost" in commands else []
    return {
        "created": 1,
        "data": [picture] * (count - len(lost)) + lost,
        "usage": usage,
        "size": "1x1",
        "x_unknown": True,
    }


def refuses_response_format(request: dict[str, Any], commands: frozenset[str]) -> bytes | None:
    """OpenAI's newer models take no `response_format`."""
    if "no-response-format" in commands and "response_format" in request:
        return b'{"error": {"message": "Unknown parameter: \'response_format\'.", "param": "response_format", "code": null}}'
    return None


def speech(request: dict[str, Any], commands: frozenset[str], seconds: float) -> tuple[str, list[bytes]]:
    """Content type and body, in pieces of a tenth of a second, of an answer to a speech request."""
    form = request.get("response_format") or "mp3"
    form = "wav" if "wav-for-all" in commands else form
    if "error-200" in commands:
        return "application/json", [b'{"error": {"message": "the voice is hoarse", "code": 500}}']
    if "html-200" in commands:
        return "text/html", [b"<!doctype html><title>Welcome</title>"]
    count = round(seconds * 10)
    if form in ("wav", "pcm"):
        tenth = struct.pack(f"<{RATE // 10}h", *(round(9_000 * math.sin(n / 9)) for n in range(RATE // 10)))
        # As OpenAI does, which streams and does not know the length.
        head = (
            b"RIFF\xff\xff\xff\xffWAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE * 2, 2, 16)
            + b"data\xff\xff\xff\xff"
        )
        return f"audio/{form}", [*([head] if form == "wav" else []), *([tenth] * count)]
    if form == "mp3":
        frame = b"\xff\xf3\x84\xc4" + bytes(188)  # 24 ms
        return "audio/mpeg", [frame * 4] * round(seconds / 0.096)
    return f"audio/{form}", [b"fLaC" + bytes(2_000), *([bytes(2_000)] * count)]


def described(file: bytes) -> str:
    return f"This file has {len(file)} bytes, {sha256(file).hexdigest()[:8]}."


def form(content_type: str, body: bytes) -> dict[str, Any]:
    """Return the fields of a form, a list of those whose name ends in `[]`, and length and hash of the file."""
    fields: dict[str, Any] = {}
    for part in message_from_bytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body).get_payload():
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        value = described(content) if part.get_filename() else content.decode()
        fields[name] = [*fields.get(name, []), value] if name.endswith("[]") else value
    return fields


def transcription(
    request: dict[str, Any], commands: frozenset[str], given: Callable[[str], str | None]
) -> tuple[str, list[bytes]]:
    """Return the content type and the pieces of an answer to a transcription request."""
    text = "Hello, world!"
    usage: dict[str, Any] = {}
    if "html-200" in commands:
        return "text/html", [b"<!doctype html><title>Welcome</title>"]
    if "error-200" in commands:
        return "application/json", [b'{"error": {"message": "the model is deaf", "code": 500}}']
    if "odd-usage" in commands:
        usage = {"usage": {"type": "duration", "seconds": -3, "input_tokens": "many", "output_tokens": 1e300}}
    if (count := given(r"usage-seconds-([\d.]+)")) is not None:
        usage = {"usage": {"type": "duration", "seconds": float(count)}}
    if (count := given(r"usage-tokens-(\d+)")) is not None:
        usage = {"usage": {"type": "tokens", "input_tokens": int(count), "output_tokens": 5, "total_tokens": 0}}
    if request.get("stream") == "true" and "json-for-stream" not in commands:
        events = [{"type": "transcript.text.delta", "delta": part} for part in ("Hel", "lo", ", ", "wor", "ld!")]
        events.append({"type": "transcript.text.done", "text": text, **usage})
        return "text/event-stream", [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    if request["response_format"] == "srt":
        return "text/plain; charset=utf-8", [f"1\n00:00:00,000 --> 00:00:02,000\n{text}\n".encode()]
    more = {"language": "english", "x_unknown": 1} if request["response_format"] == "verbose_json" else {}
    return "application/json", [json.dumps({"text": text, **more, **usage}).encode()]
