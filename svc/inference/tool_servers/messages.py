"""The messages of MCP: JSON-RPC requests in their bytes, and what a server answers, however strange it is."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from svc.version import VERSION

# The stateless revision, and those with a handshake. The second one is proposed in it.
STATELESS = "2026-07-28"
PROPOSED = "2025-06-18"
HANDSHAKE = ("2025-03-26", PROPOSED, "2025-11-25")
UNSUPPORTED_REVISION = -32022
_METHOD_NOT_FOUND = -32601
_ABOUT_US = {"name": "svc", "version": VERSION}
_META = orjson.dumps(
    {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": _ABOUT_US,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
)
HELLO = orjson.dumps({"protocolVersion": PROPOSED, "capabilities": {}, "clientInfo": _ABOUT_US})[1:-1]
_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_HEADER_CHARACTERS = 4_000
_TOOLS = re.compile(r'"tools"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_MOST_SALVAGED = 1_000
_SHORTEST_SECRET = 8
_ERROR_CHARACTERS = 2_000


class ToolServerFault(Exception):
    """A tool server did not do what it was asked for. The text is for the caller, and holds no secret."""


class RpcError(Exception):
    """An error that the server answered, with its code."""

    def __init__(self, error: Any) -> None:
        error = error if isinstance(error, dict) else {}
        code, message, data = (error.get(name) for name in ("code", "message", "data"))
        self.code = code if isinstance(code, int) else 0
        super().__init__(message[:_ERROR_CHARACTERS] if isinstance(message, str) else "")
        supported = data.get("supported") if isinstance(data, dict) else None
        self.supported = [one for one in supported if isinstance(one, str)] if isinstance(supported, list) else []


def request(number: int, method: str, params: bytes, *, stateless: bool) -> bytes:
    """Return a request with these members of `params`, which are sent byte by byte."""
    members = b",".join(filter(None, (params, b'"_meta":' + _META if stateless else b"")))
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":{%b}}' % (number, orjson.dumps(method), members)


def notification(method: str) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "method": method})


def answer_to(message: Mapping[str, Any]) -> bytes:
    """Return the answer to a request of the server: only a ping is served."""
    about: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return orjson.dumps({**about, "result": {}})
    return orjson.dumps({**about, "error": {"code": _METHOD_NOT_FOUND, "message": "This client does not offer that."}})


def parsed(body: bytes, secrets: tuple[bytes, ...]) -> list[dict[str, Any]]:
    """Return the messages in `body`, without the `secrets` that the server may repeat. Raises ToolServerFault."""
    try:
        found = orjson.loads(body.removeprefix(b"\xef\xbb\xbf"))
        if secrets:  # an escaped one is in its plain form after this
            text = orjson.dumps(found)
            if any(secret in text for secret in secrets):
                for secret in secrets:
                    text = text.replace(secret, b"***")
                found = orjson.loads(text)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        raise ToolServerFault("its answer is not valid JSON") from None
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]


def secrets_of(headers: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return what must not be shown of the headers of requests, as it stands in JSON. The longest come first."""
    values = {part for value in headers.values() for part in (value, value.rpartition(" ")[2])}
    texts = (orjson.dumps(value)[1:-1] for value in values if len(value) >= _SHORTEST_SECRET)
    return tuple(sorted(texts, key=len, reverse=True))


def outcome(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of an answer. Raises RpcError, ToolServerFault."""
    if "error" in message:
        raise RpcError(message["error"])
    result = message.get("result")
    if not isinstance(result, dict):
        raise ToolServerFault("its answer has no result")
    if result.get("resultType", "complete") != "complete":
        raise ToolServerFault("it asks for further input, which is not supported here")
    return result


def salvaged(received: bytes) -> list[Any]:
    """Return the whole tools at the beginning of a list that was cut."""
    text, decoder = received.decode("utf-8", "replace"), json.JSONDecoder()
    found: list[Any] = []
    begin = _TOOLS.search(text)
    place = begin.end() if begin else len(text)
    while place < len(text) and len(found) < _MOST_SALVAGED:
        between = _BETWEEN.match(text, place)
        try:
            begins = between.end() if between else place
            _, place = decoder.raw_decode(text, begins)
            found.append(orjson.loads(text[begins:place]))
        except (ValueError, RecursionError):
            break
    return found


# --- headers that repeat a part of the body (revision 2026-07-28)


def routing_headers(method: str, name: str = "") -> dict[str, str]:
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
    return {**headers, "mcp-name": header_value(name)} if name else headers


def argument_headers(paths: Mapping[str, list[str]], arguments: Any) -> dict[str, str]:
    """Return the headers of those arguments that are given. Too long ones are left out: the server refuses the call."""
    found = {}
    for header, path in paths.items():
        value = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int | float) and len(text := header_value(str(value))) <= _HEADER_CHARACTERS:
            found[f"mcp-param-{header}"] = text
    return found


def header_value(value: str) -> str:
    if (_PLAIN.fullmatch(value) or not value) and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="
