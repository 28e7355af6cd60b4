"""Reasoning that only its own model server reads again: signed thinking of Messages, encrypted one of Responses.

A chat message carries it in `reasoning_details`, which is OpenRouter's field, as a list of seals: `format` says which
servers understand `data`. Callers of Messages and Responses get it in their own format's field.
"""

from collections.abc import Mapping
from typing import Any

FIELD = "reasoning_details"
MESSAGES, RESPONSES = "anthropic-claude-v1", "openai-responses-v1"
_TYPE = "reasoning.encrypted"

Seal = dict[str, Any]


def of_message(message: Mapping[str, Any], format: str) -> list[Seal]:
    """Return the seals of a chat message that servers of this `format` understand."""
    found = details if isinstance(details := message.get(FIELD), list) else []
    known = [one for one in found if isinstance(one, dict) and (one.get("type"), one.get("format")) == (_TYPE, format)]
    return [seal for seal in known if isinstance(seal.get("data"), str)]


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
    lists = {name: value for name in ("summary", "content") if isinstance(value := seal.get(name), list) and value}
    sealed = {"type": "reasoning", "id": str(seal.get("id") or ""), "encrypted_content": seal["data"]}
    return {"summary": [], **sealed, **lists}
