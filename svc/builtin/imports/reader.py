"""Read an export in a helper process: files of users may be hostile.

a ZIP or JSON in a file -> each element of its lists, one at a time -> the module of its application
  -> lines {"chat": ...}, {"artifact": ...} with the content behind it, {"message": ...} behind the export in the file
"""

import codecs
import io
import json
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from svc.builtin.imports import chatgpt, claude, librechat, open_webui
from svc.builtin.imports.chats import MOST_FILE_BYTES, Attachment, Chat, Unreadable, records_of, text_of, type_of
from svc.builtin.imports.own import Own, Place

CPU_SECONDS = 600
MEMORY_BYTES = 1024 * 1024 * 1024
MOST_BYTES = 1024 * 1024 * 1024  # read from an archive, and written
_MIB = 1024 * 1024
_ELEMENT_CHARACTERS = 64 * _MIB
_DEPTH = 10_000
_NUMBER_DIGITS = 20
_MOST_LEVELS = 100
_CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json")
_NAMES = "conversation_asset_file_names.json"
_FILE_ID = re.compile(r"file[-_][A-Za-z0-9]+")
_LEFT_OUT = "Archived in the export."
_EMPTY = "It has no messages."
_BLANK = " \t\r\n,"
Read = Callable[[int], bytes]


class _File:
    """The export, which has `size` bytes, and behind it what is written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = self.start = self._end = os.fstat(descriptor).st_size
        self._unwritten = bytearray()

    def write(self, data: bytes) -> Place:
        place = (self._end + len(self._unwritten), len(data))
        if place[0] - self.size > MOST_BYTES:
            raise Unreadable("This export has over 1 GB of files and texts.")
        self._unwritten += data
        if len(self._unwritten) > _MIB:
            self.flush()
        return place

    def flush(self) -> None:
        rest = memoryview(bytes(self._unwritten))
        while rest:
            written = os.pwrite(self._descriptor, rest, self._end)
            self._end, rest = self._end + written, rest[written:]
        self._unwritten.clear()

    def read(self, start: int, length: int) -> bytes:
        if start + length > self._end:
            self.flush()
        return os.pread(self._descriptor, length, start)

    def begin(self) -> None:
        """Let the lines for the server begin here, behind lines that were put aside."""
        self.start = self._end + len(self._unwritten)


class _Archive:
    """A ZIP. Names are only names: nothing is extracted to a path."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(io.FileIO(descriptor, closefd=False)))
        except (zipfile.BadZipFile, OSError, ValueError):
            raise Unreadable("This ZIP file is damaged or incomplete. Download the export again.") from None
        infos = [info for info in self._zip.infolist() if not info.is_dir()]
        if any(info.flag_bits & 1 for info in infos):
            raise Unreadable("This ZIP file is protected by a password. Remove the password first.")
        self.infos = {info.filename: info for info in infos if not stat.S_ISLNK(info.external_attr >> 16)}
        self._left = MOST_BYTES
        ids = ((_FILE_ID.match(PurePosixPath(name).name), name) for name in self.infos)
        self._by_id = {found[0]: name for found, name in ids if found}
        self._names: dict[str, str] | None = None

    def read(self, name: str) -> Read:
        """Return a function that reads a file of the archive in parts."""
        file = self._zip.open(self.infos[name])

        def read(most: int) -> bytes:
            data = file.read(most)
            self._left -= len(data)
            if self._left < 0:
                raise Unreadable("The files in this ZIP have over 1 GB. It may be damaged on purpose.")
            return data

        return read

    def lines(self, name: str) -> Iterator[bytes]:
        if name in self.infos:
            read, rest = self.read(name), b""
            while data := read(_MIB):
                *whole, rest = (rest + data).split(b"\n")
                if len(rest) > _ELEMENT_CHARACTERS:
                    raise Unreadable(f"A line of {name} is too long.")
                yield from whole
            yield rest

    def file(self, name: str, shown_as: str = "") -> Attachment | None:
        info = self.infos.get(name)
        if info is None or info.file_size > MOST_FILE_BYTES:
            return None
        kind = type_of(shown_as or name, self.read(name)(16))
        return Attachment("", shown_as or PurePosixPath(name).name, info.file_size, lambda: self.read(name)(-1), kind)

    def by_id(self, file_id: str, shown_as: str) -> Attachment | None:
        """Return a file of ChatGPT's export by its id."""
        name = self._by_id.get(file_id)
        if name is None:
            return None
        if self._names is None:
            listed = json.loads(b"".join(self.lines(_NAMES)) or b"{}")
            self._names = listed if isinstance(listed, dict) else {}
        base = PurePosixPath(name).name
        known = text_of(self._names.get(base)) or base.removeprefix(file_id).lstrip("-_") or base
        file = self.file(name, shown_as or known)
        if file is not None:
            file.key = f"art_{file_id}"
        return file


def elements(read: Read) -> Iterator[Any]:
    """Yield the elements of a JSON list, or the only value of a file, one at a time."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    scan = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= _NUMBER_DIGITS else 0).raw_decode
    text, at, ended, listed = "", 0, False, False
    most = _MIB
    while True:
        while at < len(text) and (text[at] in _BLANK or (text[at] == "[" and not listed)):
            listed = listed or text[at] == "["
            at += 1
        if at < len(text) and not (listed and text[at] == "]"):
            try:
                value, end = scan(text, at)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated") or error.pos > len(text) - 16
                if ended or not unfinished:
                    raise
            else:
                yield value
                at, most = end, _MIB
                continue
        elif at < len(text) or ended:
            if listed and at == len(text):
                raise Unreadable("This file ends in the middle of a list. Download the export again.")
            return
        if len(text) - at > _ELEMENT_CHARACTERS:
            raise Unreadable("A conversation in this file has over 64 million characters, or the file is not JSON.")
        data = read(most)
        ended, most = not data, most * 2
        text, at = text[at:] + decode(data, ended), 0


def _converted(element: Any, find: chatgpt.Find) -> tuple[str, Any] | None:
    """Return the application of an element and what it is: a Chat, or a project with its files. None if unknown."""
    if not isinstance(element, dict):
        return None
    if isinstance(element.get("mapping"), dict):
        return "chatgpt", chatgpt.chat_of(element, find)
    if isinstance(element.get("chat_messages"), list):
        return "claude", claude.chat_of(element)
    if isinstance(element.get("docs"), list) and "uuid" in element:
        return "claude", claude.project_of(element)
    if isinstance(element.get("chat"), dict) or isinstance(element.get("history"), dict):
        return "open_webui", open_webui.chat_of(element)
    if "conversationId" in element and ("messages" in element or "messagesTree" in element):
        return "librechat", librechat.chat_of(element)
    return None


def _is_deep(value: Any) -> bool:
    """Return whether a value has over 100 levels, which the server would not store."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
    return bool(level)


class _Reader:
    def __init__(self, file: _File, archive: _Archive | None, read: Read) -> None:
        self._file, self._archive, self._read = file, archive, read
        self.source: str | None = None

    def run(self) -> None:
        archive = self._archive
        if archive is not None and "conversations.jsonl" in archive.infos:
            self.source = "svc"
            own = Own(archive.lines, archive.file, self._file.write, self._file.read)
            self._file.begin()
            for kind, record in own.records():
                self._write(kind, record)
            return
        for read in self._texts():
            for element in elements(read):
                self._take(element)
        if self.source is None:
            raise Unreadable(
                "This file is no export of ChatGPT, Claude, Open WebUI, LibreChat or this service. "
                "Send the ZIP file as it was downloaded, or its conversations.json."
            )

    def _texts(self) -> Iterator[Read]:
        """Yield the JSON files to read: projects come before their conversations."""
        if self._archive is None:
            yield self._read
            return
        names = [name for name in sorted(self._archive.infos) if name.endswith(".json")]
        told = [name for name in names if _CONVERSATIONS.fullmatch(PurePosixPath(name).name)]
        projects = [
            name for name in names if "projects" in PurePosixPath(name).parts[-2:] or name.endswith("projects.json")
        ]
        for name in [*projects, *(told or [name for name in names if name not in projects])]:
            yield self._archive.read(name)

    def _take(self, element: Any) -> None:
        if isinstance(element, dict):
            for wrapper in ("conversations", "chats", "data"):
                if isinstance(element.get(wrapper), list) and "mapping" not in element:
                    for inner in element[wrapper]:
                        self._take(inner)
                    return
        find = self._archive.by_id if self._archive else lambda file_id, name: None
        try:
            found = _converted(element, find)
            records = None if found is None else list(self._records(*found))
        except (Unreadable, MemoryError, OSError):
            raise
        except Exception:  # one that is broken does not stop the others
            title = next((text_of(element.get(key)) for key in ("title", "name") if element.get(key)), "")
            self._write("failed", {"title": title, "reason": "This conversation is damaged and cannot be read."})
            return
        for kind, record in records or ():
            self._write(kind, record)

    def _records(self, source: str, item: Any) -> Iterator[tuple[str, Any]]:
        self.source = self.source or source
        if not isinstance(item, Chat):
            head, files = item
            yield "project", head
            for file in files:
                yield "artifact", (file, {"project": head["id"]})
                yield "project_file", {"project": head["id"], "artifact": file.key}
        elif item.archived:
            yield "skipped", {"title": item.title, "reason": _LEFT_OUT}
        elif not any(message.role and not message.is_empty() for message in item.messages):
            yield "skipped", {"title": item.title, "reason": _EMPTY}
        else:
            yield from records_of(item)

    def _write(self, kind: str, record: Any) -> None:
        content = b""
        if kind == "artifact":
            file, more = record if isinstance(record, tuple) else (record, {})
            content = file.read()
            record = {"key": file.key, "name": file.name, "type": file.content_type, "size": len(content)}
            record |= {"created": file.created, **more}
        if _is_deep(record):
            raise Unreadable("This file is nested too deeply.")
        line = json.dumps({kind: record}, ensure_ascii=False)
        self._file.write(line.encode("utf-8", "replace") + b"\n")
        self._file.write(content)


def _read(descriptor: int) -> dict[str, Any]:
    file = _File(descriptor)
    begins = os.pread(descriptor, 4, 0)
    archive, reading = None, io.BufferedReader(io.FileIO(descriptor, closefd=False))
    if begins[:2] == b"PK":
        archive = _Archive(descriptor)
    reading.seek(0)
    reader = _Reader(file, archive, lambda most: reading.read(min(most, file.size - reading.tell())))
    found: dict[str, Any] = {}
    try:
        reader.run()
    except Unreadable as error:
        found["reason"] = str(error)
    except RecursionError:
        found["reason"] = "This file is nested too deeply."
    except MemoryError:
        found["reason"] = "Reading this file takes too much memory. Import it in parts."
    except UnicodeDecodeError:
        found["reason"] = "This file is not in UTF-8."
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError):
        found["reason"] = "This ZIP file is damaged or incomplete. Download the export again."
    except ValueError:  # also JSONDecodeError
        found["reason"] = "This file is not valid JSON. Download the export again."
    file.flush()
    return {**found, "source": reader.source, "start": file.start}


def answer(order: dict[str, Any]) -> bytes:
    sys.setrecursionlimit(_DEPTH)
    try:
        found = _read(order["file"])
    except Unreadable as error:
        found = {"reason": str(error), "source": None, "start": None}
    return json.dumps(found).encode()
