"""Reasoning that only its own model server reads again: signed thinking of Messages, encrypted one of Responses.

A chat message carries it in `reasoning_details`, which is OpenRouter's field, as a list of seals: `format` says which
servers understand `data`. Callers of Messages and Responses get it in their own format's field.
"""

import base64
import contextlib
from collections.abc import Mapping
from typing import Any

import orjson

FIELD = "reasoning_details"
MESSAGES, RESPONSES = "anthropic-claude-v1", "openai-responses-v1"
_TYPE = "reasoning.encrypted"
PREFIX = "svc1."
_TEXTS = {"summary": "summary_text", "content": "reasoning_text"}

Seal = dict[str, Any]


def known(details: Any) -> list[Seal]:
    """Return the seals of a list of `reasoning_details`, which may hold anything."""
    found = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    sealed = [one for one in found if one.get("type") == _TYPE and one.get("format") in (MESSAGES, RESPONSES)]
    return [seal for seal in sealed if isinstance(seal.get("data"), str)]


def of_message(message: Mapping[str, Any], format: str) -> list[Seal]:
    """Return the seals of a chat message that servers of this `format` understand."""
    return [seal for seal in known(message.get(FIELD)) if seal["format"] == format]


# --- callers of Messages and Responses


def for_server(api: str, part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a caller's block or item as a server of the same format gets it: as it came, or as this server has sealed
    it. Return None if another server has sealed it.
    """
    text = part.get("encrypted_content") if api == "responses" else part.get("signature") or part.get("data")
    if not (found := decoded(text)):
        return part
    own, made = (RESPONSES, reasoning_item) if api == "responses" else (MESSAGES, thinking_block)
    return made(found[0]) if found[0]["format"] == own else None


def of_callers_thinking(block: Mapping[str, Any]) -> list[Seal]:
    """Return the seal of a block in a caller's request: one of `encoded`, or a vendor's own."""
    return decoded(block.get("signature") or block.get("data")) or of_thinking(block)


def of_callers_item(item: Mapping[str, Any]) -> list[Seal]:
    """Return the seal of an item in a caller's request: one of `encoded`, or a vendor's own."""
    return decoded(item.get("encrypted_content")) or of_item(item)


def encoded(seal: Seal) -> str:
    """Return a seal as the one text for which the formats of callers have a field."""
    return PREFIX + base64.urlsafe_b64encode(orjson.dumps(seal)).decode()


def decoded(text: Any) -> list[Seal]:
    """Return the seal that `encoded` has made this text of, as a list, or nothing."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return []
    with contextlib.suppress(ValueError):
        return known([orjson.loads(base64.urlsafe_b64decode(text.removeprefix(PREFIX)))])
    return []


# --- Messages


def of_thinking(block: Mapping[str, Any]) -> list[Seal]:
    """Return the seal of a block of thinking, or of a redacted one, as a list. Without a signature there is none."""
    if block.get("type") == "redacted_thinking":
        data, text = block.get("data"), None
    else:
        data, text = block.get("signature"), block.get("thinking")
    if not isinstance(data, str) or not data:
        return []
    return [{"type": _TYPE, "data": data, "format": MESSAGES, **({"text": text} if isinstance(text, str) else {})}]


def thinking_block(seal: Seal) -> dict[str, Any]:
    if isinstance(text := seal.get("text"), str):
        return {"type": "thinking", "thinking": text, "signature": seal["data"]}
    return {"type": "redacted_thinking", "data": seal["data"]}


# --- Responses


def of_item(item: Mapping[str, Any]) -> list[Seal]:
    """Return the seal of an item of reasoning, as a list. Without encrypted content there is none."""
    if not isinstance(data := item.get("encrypted_content"), str) or not data:
        return []
    lists = {name: value for name in ("summary", "content") if isinstance(value := item.get(name), list)}
    return [{"type": _TYPE, "data": data, "format": RESPONSES, "id": str(item.get("id") or ""), **lists}]


def reasoning_item(seal: Seal) -> dict[str, Any]:
    found = {name: _texts(kind, seal.get(name)) for name, kind in _TEXTS.items()}
    lists = {name: parts for name, parts in found.items() if parts}
    sealed = {"type": "reasoning", "id": str(seal.get("id") or ""), "encrypted_content": seal["data"]}
    return {"summary": [], **sealed, **lists}


def _texts(kind: str, parts: Any) -> list[dict[str, Any]]:
    found = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [{"type": kind, "text": text} for text in found if isinstance(text, str)]
