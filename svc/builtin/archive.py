"""ZIP archives of XML files, which office files and EPUB are. They are read within limits, because they may be hostile.

zipfile and expat are enough to read texts, comments, notes and cached values. The libraries for these formats also
write files: they have 20 MB, and their parser needs more memory for a hostile file.
"""

import io
import posixpath
import zipfile
from typing import NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

_MOST_MEMBERS = 10_000
_MEMBER_BYTES = 64 * 1024 * 1024
_DEPTH = 500


class Broken(Exception):
    """An archive is damaged, or too large when it is unpacked."""


class NoText(Exception):
    """A file has no text that can be read: an error code, and a message for its owner."""


class TextPage(NamedTuple):
    """The text of a page or a slide, with its number from 1, or of a file without pages (None)."""

    number: int | None
    text: str


class Archive:
    """A ZIP archive whose XML members are read within limits."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise Broken from error
        members = self._zip.infolist()[:_MOST_MEMBERS]
        if any(member.flag_bits & 1 for member in members):
            raise protected()
        # Some programs for Windows write backslashes.
        self._members = {member.filename.replace("\\", "/"): member for member in members}
        self.names = self._members.keys()
        self._left = _MEMBER_BYTES * 2

    def read(self, name: str) -> bytes:
        try:
            with self._zip.open(self._members[name]) as member:
                content = member.read(min(_MEMBER_BYTES, self._left) + 1)
        except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, OSError, EOFError) as error:
            raise Broken from error
        self._left -= len(content)
        if len(content) > _MEMBER_BYTES or self._left < 0:
            raise Broken
        return content

    def xml(self, name: str) -> ElementTree.Element:
        """Return the tree of a member. It may declare no entities, and has a limited depth. Raises Broken."""
        builder, depth = ElementTree.TreeBuilder(), 0
        parser = expat.ParserCreate(namespace_separator="}")

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > _DEPTH:
                raise Broken
            # Of `id` and `r:id` the second remains, which is a reference.
            names = sorted(attributes, key=lambda name: "}" in name)
            builder.start(_local(tag), {_local(name): attributes[name] for name in names})

        def end(tag: str) -> None:
            nonlocal depth
            depth -= 1
            builder.end(_local(tag))

        def refuse(*_: object) -> None:
            raise Broken

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = builder.data
        parser.EntityDeclHandler = refuse
        try:
            parser.Parse(self.read(name), True)
            return builder.close()
        except (expat.ExpatError, AssertionError, IndexError) as error:
            raise Broken from error

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the members to which a member of an Office file, or the file ("") refers: by id, kind and name."""
        folder, base = posixpath.split(name)
        rels = f"{folder}/_rels/{base}.rels".lstrip("/")
        found: dict[str, tuple[str, str]] = {}
        if rels in self.names:
            for one in self.xml(rels):
                target = one.get("Target", "")
                path = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                if path in self.names:
                    found[one.get("Id", "")] = (one.get("Type", "").rpartition("/")[2], path)
        return found


def protected() -> NoText:
    return NoText("no_text", "This file is protected by a password. Remove the password first.")


def _local(name: str) -> str:
    return name.rpartition("}")[2]
