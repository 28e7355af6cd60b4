"""Edits of a JSON text in which everything that stays the same keeps its bytes.

text of `old`, and the wanted value `new` -> spliced() -> the text of `new`, in linear time

The text must have been parsed. Strings and containers are matched in slices, so that other threads never wait long.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from svc import json_text

_SLICE_BYTES = 64 * 1024
_SPACE = re.compile(rb"[ \t\r\n]*+")
_TO_VALUE = re.compile(rb"[ \t\r\n]*+:[ \t\r\n]*+")
_TO_ITEM = re.compile(rb"[ \t\r\n]*+,?[ \t\r\n]*+")
_ATOMS = rb'[^"\\{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LEVELS = 3  # of containers that one match passes
_INSIDE = rb"(?:%b)*+" % _ATOMS
for _ in range(_LEVELS):
    _INSIDE = rb"(?:%b|[{\[]%b[}\]])*+" % (_ATOMS, _INSIDE)
_INSIDE_CONTAINER = re.compile(b"(?s)" + _INSIDE)
_INSIDE_STRING = re.compile(rb'(?s)[^"\\]*+(?:\\.[^"\\]*+)*+')
_NUMBER = re.compile(rb"[^,}\] \t\r\n]++")  # or a word
_SIMPLE = re.compile(rb'[ \t\r\n]*+:[ \t\r\n]*+("[^"\\]*+"|[^"{\[,} \t\r\n]++)')
_DISGUISED = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")  # the beginnings of letters, which may be those of a name
_QUOTE = b'"'[0]

Edits = list[tuple[int, int, bytes]]  # the start and the end of what is replaced, in order


class Item(NamedTuple):
    """A member of an object, or an element of a list, whose `name` is its index."""

    name: Any
    start: int
    value_start: int
    end: int


def spliced(text: bytes, old: dict[str, Any], new: dict[str, Any]) -> bytes:
    """Return the JSON `text` of the object `old` as that of `new`. New members come first.

    Values in `new` of the type `bytes` are JSON. A shorter list lacks some elements of the old one. Of a repeated
    member that is changed or removed, the earlier ones are removed as well. What is equal in Python stays.
    """
    changed = [name for name in new if name not in old or old[name] != new[name]]
    if not changed and len(new) == len(old):
        return text
    if (simple := _simply_spliced(text, old, new, changed)) is not None:
        return simple
    edits: Edits = []
    _edit(text, text.index(b"{"), old, new, edits)
    parts, place = [], 0
    for start, end, written in edits:
        parts += [text[place:start], written]
        place = end
    return b"".join([*parts, text[place:]])


def _simply_spliced(text: bytes, old: dict[str, Any], new: dict[str, Any], changed: list[str]) -> bytes | None:
    """Do the same if members are only added, or have other texts and numbers, and if their places are certain."""
    added = None
    if len(new) != len(old):
        added = {name: new[name] for name in changed if name not in old}
        if len(new) - len(added) != len(old) or not old:
            return None
    for name in changed:
        if name in old:
            if (edited := with_only(text, name, new[name])) is None:
                return None
            text = edited
        elif added is None:  # another one is missing
            return None
    if added:
        start = text.index(b"{") + 1
        text = b"".join((text[:start], _written(added)[1:-1], b",", text[start:]))
    return text


def with_only(text: bytes, name: str, value: Any) -> bytes | None:
    """Return the JSON `text` with another `value` of a member with this name, in ASCII, which there is at any depth.

    Return None unless the name occurs once: then it certainly is that member's, and nothing else is read. Its old value
    must be a short text or a number.
    """
    quoted = b'"%b"' % name.encode()
    parts = text.split(quoted, 2)
    if len(parts) != 2 or parts[0].endswith(b"\\") or (found := _SIMPLE.match(parts[1])) is None:
        return None
    if text.find(b"\\u00") >= 0 and any(text.find(letter) >= 0 for letter in _DISGUISED):
        return None
    start, end = found.span(1)
    return b"".join((parts[0], quoted, parts[1][:start], _written(value), parts[1][end:]))


def _edit(text: bytes, start: int, old: Mapping[Any, Any], new: Mapping[Any, Any], edits: Edits) -> None:
    """Add the edits of the object, or of the list by its indices, at `start`."""
    items = [*items_of(text, start)]
    last = {item.name: item for item in items}
    changed = {name for name in last if name not in new or old[name] != new[name]}
    stays = [item.name not in changed or (item.name in new and item is last[item.name]) for item in items]
    if added := {name: value for name, value in new.items() if name not in last}:
        edits.append((start + 1, start + 1, _written(added)[1:-1] + b"," * any(stays)))
    begun = False  # whether an item before stays
    for place, item in enumerate(items):
        if not stays[place]:
            first = item.start if not begun else items[place - 1].end
            until_next = not begun and place + 1 < len(items)
            edits.append((first, items[place + 1].start if until_next else item.end, b""))
        elif item.name in changed:
            _edit_value(text, item, old[item.name], new[item.name], edits)
        begun = begun or stays[place]


def _edit_value(text: bytes, item: Item, old: Any, new: Any, edits: Edits) -> None:
    if type(old) is type(new) is dict:
        _edit(text, item.value_start, old, new, edits)
    elif type(old) is type(new) is list and (placed := _placed(old, new)) is not None:
        _edit(text, item.value_start, dict(enumerate(old)), placed, edits)
    else:
        edits.append((item.value_start, item.end, _written(new)))


def _placed(old: list[Any], new: list[Any]) -> dict[int, Any] | None:
    """Return the elements of `new` by their places in `old`, or None if those that differ cannot be placed."""
    if len(new) == len(old):
        return dict(enumerate(new))
    placed: dict[int, Any] = {}
    places = iter(range(len(old)))
    for value in new:
        place = next((place for place in places if old[place] == value), None)
        if place is None:
            return None
        placed[place] = value
    return placed


def _written(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    try:
        return orjson.dumps(value, default=orjson.Fragment)
    except TypeError:  # an integer of over 64 bits
        return json_text.dumps(value)


# --- places in a valid text


def items_of(text: bytes, start: int) -> Iterator[Item]:
    """Yield the members of the object, or the elements of the list, that begins at `start`."""
    named = text.startswith(b"{", start)
    place, index = _SPACE.match(text, start + 1).end(), 0  # type: ignore[union-attr]
    while not text.startswith((b"}", b"]"), place):
        name: Any = index
        value_start = place
        if named:
            name_end = _string_end(text, place)
            name = orjson.loads(text[place:name_end])
            value_start = _TO_VALUE.match(text, name_end).end()  # type: ignore[union-attr]
        end = _value_end(text, value_start)
        yield Item(name, place, value_start, end)
        place, index = _TO_ITEM.match(text, end).end(), index + 1  # type: ignore[union-attr]


def _value_end(text: bytes, start: int) -> int:
    if text[start] == _QUOTE:
        return _string_end(text, start)
    if not text.startswith((b"{", b"["), start):
        return _NUMBER.match(text, start).end()  # type: ignore[union-attr]
    place, depth = start + 1, 1
    while True:
        place = _INSIDE_CONTAINER.match(text, place, place + _SLICE_BYTES).end()  # type: ignore[union-attr]
        if text[place] == _QUOTE:
            place = _string_end(text, place)
        elif text.startswith((b"{", b"[", b"}", b"]"), place):  # and not at the end of a slice
            depth += 1 if text.startswith((b"{", b"["), place) else -1
            place += 1
            if not depth:
                return place


def _string_end(text: bytes, start: int) -> int:
    place = start + 1
    while text[place] != _QUOTE:
        place = _INSIDE_STRING.match(text, place, place + _SLICE_BYTES).end()  # type: ignore[union-attr]
    return place + 1
