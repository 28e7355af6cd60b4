"""What the exports of all applications become: chats, messages in a tree, and files.

A message without visible text, such as a tool's result, becomes a part of the next message of its answer.
"""

import hashlib
import heapq
import json
import math
import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

MOST_FILE_BYTES = 32 * 1024 * 1024
_ROW_BYTES = 512  # of a message and its details, as svc/quota.py counts them
_INLINE_CHARACTERS = 100_000
_TITLE_LENGTH = 80
_TIMES = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # nanoseconds, microseconds and milliseconds
_MOST_SECONDS = 4e9
_STARTS = {
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}
SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Unreadable(Exception):
    """The export cannot be read; the text is for the person."""


@dataclass
class Attachment:
    """A file of a message. `text`: the model received its content as text."""

    key: str
    name: str
    size: int
    read: Callable[[], bytes]
    content_type: str = ""
    text: bool = False
    created: float | None = None


@dataclass
class Said:
    """A message, or with `joins` a part of the answer that its parent belongs to. Without a `role` it is not shown."""

    id: str
    parent: str | None
    role: str
    text: str = ""
    created: float | None = None
    model: str | None = None
    reasoning: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)
    joins: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    def is_empty(self) -> bool:
        return not (self.text.strip() or self.reasoning or self.steps or self.files or self.details.get("error"))

    def join(self, later: "Said") -> None:
        self.created = self.created if self.text else later.created or self.created
        self.text = "\n\n".join(filter(None, (self.text, later.text)))
        self.reasoning = "\n\n".join(filter(None, (self.reasoning, later.reasoning)))
        self.steps += later.steps
        self.files += later.files
        self.model = later.model or self.model

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "parent": self.parent,
            "role": self.role,
            "content": self._content(),
            "created": self.created,
            "model": self.model,
            "reasoning": self.reasoning,
            "steps": _paired(self.steps),
            "details": self.details,
        }

    def _content(self) -> str:
        """Return the text, files and images in the format of svc/static/app/content.js."""
        fenced, linked = [], []
        for file in self.files:
            name = re.sub(r"[\[\]\n]", "", file.name)
            link = f"[{name}](/artifacts/{file.key}/content)"
            if file.text and file.size <= _INLINE_CHARACTERS:
                text = file.read().decode("utf-8", "replace")
                fence = "`" * max(3, 1 + max(map(len, re.findall("`{3,}", text)), default=0))
                ending = re.search(r"\.(\w{1,10})$", name)
                fenced.append(f"File: {link}\n{fence}{ending[1] if ending else ''}\n{text}\n{fence}")
            else:
                linked.append(f"!{link}" if file.content_type in SHOWN else link)
        return "\n\n".join(filter(None, (self.text.strip(), *fenced, *linked)))


@dataclass
class Chat:
    id: str
    title: str
    created: float | None
    updated: float | None
    messages: list[Said]
    pinned: bool = False
    archived: bool = False
    project: str | None = None
    current: str | None = None  # the message at the end of the branch that was shown


def records_of(chat: Chat) -> Iterator[tuple[str, Any]]:
    """Yield the chat, its files, then its messages, each after its parent."""
    said, now_at = _ordered(chat.messages)
    messages = [message.as_json() for message in said]
    files = {file.key: file for message in said for file in message.files}
    written = sum(
        len(f"{one['content']}{one['reasoning']}{one['steps']}".encode("utf-8", "replace")) for one in messages
    )
    made = [one["created"] for one in messages if one["created"] is not None]
    head = {
        "id": chat.id or digest(f"{chat.created} {chat.title} {messages[0]['content'] if messages else ''}"),
        "title": chat.title.strip() or next((one.text[:_TITLE_LENGTH] for one in said if one.text), ""),
        "created": chat.created if chat.created is not None else min(made, default=None),
        "updated": chat.updated if chat.updated is not None else max(made, default=None),
        "pinned": chat.pinned,
        "project": chat.project,
        "current": now_at.get(chat.current or "") or (said[-1].id if said else None),
        "ids": [one["id"] for one in messages],
        "bytes": written + _ROW_BYTES * (len(messages) + 1) + sum(file.size + _ROW_BYTES for file in files.values()),
        "artifacts": len(files),
    }
    yield "chat", head
    for file in files.values():
        yield "artifact", file
    for one in messages:
        yield "message", one


def _ordered(messages: list[Said]) -> tuple[list[Said], dict[str, str]]:
    """Return the visible messages, parents first, else by time, and the id of the visible message of each id."""
    nodes = {message.id: message for message in messages}
    if len(nodes) > 1 and all(message.parent is None for message in messages):  # an old export has one branch
        for before, message in pairwise(messages):
            message.parent = before.id
    children: dict[str | None, list[Said]] = {}
    for message in nodes.values():
        children.setdefault(message.parent if message.parent in nodes else None, []).append(message)
    places = {message_id: place for place, message_id in enumerate(nodes)}
    shown: list[Said] = []
    now_at: dict[str, str] = {}
    for message in _parents_first(nodes, children, places):
        parent = now_at.get(message.parent or "")
        above = nodes[parent] if parent else None
        alone = len(children.get(message.parent, ())) == 1
        if message.joins and above and above.joins and alone:
            above.join(message)
            now_at[message.id] = above.id
        elif not message.role or (message.is_empty() and not children.get(message.id)):
            if parent:
                now_at[message.id] = parent
        else:
            message.parent = parent
            now_at[message.id] = message.id
            shown.append(message)
    return _without_empty(shown, now_at), now_at


def _parents_first(
    nodes: dict[str, Said], children: dict[str | None, list[Said]], places: dict[str, int]
) -> Iterator[Said]:
    waiting: list[tuple[float, int, str]] = []
    left = dict(nodes)

    def add(messages: Iterable[Said], since: float) -> None:
        for message in messages:
            made = since if message.created is None else max(message.created, since)
            heapq.heappush(waiting, (made, places[message.id], message.id))

    add(children.get(None, ()), -math.inf)
    while left:
        if not waiting:  # the parents of all others form a circle
            add([next(iter(left.values()))], -math.inf)
        made, _, message_id = heapq.heappop(waiting)
        if message := left.pop(message_id, None):
            yield message
            add((child for child in children.get(message_id, ()) if child.id in left), made)


def _without_empty(shown: list[Said], now_at: dict[str, str]) -> list[Said]:
    """Return the messages that have something to show. The others' parents take their place."""
    above: dict[str, str | None] = {}
    kept = []
    for message in shown:
        message.parent = above.get(message.parent or "", message.parent)
        if message.is_empty():
            above[message.id] = message.parent
        else:
            kept.append(message)
    for old, new in list(now_at.items()):
        if new in above and (parent := above[new]):
            now_at[old] = parent
    return kept


# --- values of unknown type


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def count_of(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0


def time_of(value: Any) -> float | None:
    """Return a time in Unix seconds: of a number, also of milliseconds, or of a text in ISO 8601."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    divisor = next((divisor for least, divisor in _TIMES if value >= least), 1.0)
    seconds = value / divisor
    return seconds if 0 < seconds < _MOST_SECONDS else None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def file_of(source_id: str, name: str, content: bytes, content_type: str = "", *, text: bool = False) -> Attachment:
    kind = content_type or type_of(name, content[:16])
    return Attachment(f"art_{digest(source_id)}", name or "file", len(content), lambda: content, kind, text)


def type_of(name: str, start: bytes) -> str:
    """Return the media type of a file by its first bytes, else by its name."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    known = next((kind for begins, kind in _STARTS.items() if start.startswith(begins)), None)
    return known or mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"


# --- steps of tools


def tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call in the form in which it can be sent to any model: with JSON and a name of a function."""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except ValueError:
        is_object = False
    written = arguments if is_object else json.dumps({"input": arguments}, ensure_ascii=False)
    return {"tool_call": {"id": call_id, "name": _function(name), "arguments": written}}


def tool_result(call_id: str, name: str, result: str, ok: bool = True) -> dict[str, Any]:
    return {"tool_result": {"id": call_id, "name": _function(name), "ok": ok, "result": result}}


def _function(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"


def _paired(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps with a call before each result, because model servers refuse other results."""
    paired: list[dict[str, Any]] = []
    waiting: set[str] = set()
    for number, step in enumerate(steps):
        ((kind, part),) = step.items()
        if kind == "tool_call":
            waiting.add(part["id"])
        elif part["id"] not in waiting:
            part["id"] = f"{part['id']}-{number}"
            paired.append(tool_call(part["id"], part["name"], "{}"))
        else:
            waiting.remove(part["id"])
        paired.append(step)
    return paired
