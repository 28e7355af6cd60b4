"""The ordinary answer of a model server, one text and why it ended, of which there is nothing to repair."""

from typing import Any, NamedTuple

from svc.inference.normalize import OWN_FINISH_REASONS, PIECE_CHARACTERS


class PlainText(NamedTuple):
    """All that an ordinary answer says: its text, of so many bytes in UTF-8, and its finish reason as the caller sees it."""

    text: str
    size_bytes: int
    finish_reason: str


def plain_text(raw: dict[str, Any]) -> PlainText | None:
    """What `raw`, an answer that came whole, says in its only choice; None where that is more than one short text, or less."""
    choices = raw.get("choices")
    choice = choices[0] if type(choices) is list and len(choices) == 1 else None
    if type(choice) is not dict or choice.get("index") != 0 or type(message := choice.get("message")) is not dict:
        return None
    text, reason = message.get("content"), choice.get("finish_reason")
    if (
        type(text) is not str
        or not 0 < len(text) <= PIECE_CHARACTERS
        or type(reason) is not str
        or reason not in OWN_FINISH_REASONS
        or message.get("role") is None
        or [*message.values()].count(None) != len(message) - 2  # all but the role and the text
        or [*choice.values()].count(None) != len(choice) - 3
    ):
        return None
    try:
        size_bytes = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:  # there is half a character in it
        return None
    return PlainText(text, size_bytes, reason if reason in ("length", "content_filter") else "stop")
