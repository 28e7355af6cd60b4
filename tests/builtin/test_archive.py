"""Hostile and damaged archives."""

import pytest

from svc.builtin.archive import Broken
from svc.builtin.office import docx
from tests.support.cases import each
from tests.support.office_files import zipped

HOSTILE = {
    "entities": '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><w:document xmlns:w="w">&b;</w:document>',
    "depth": "<a>" * 100_000,
    "cut": "<w:document xmlns:w='w'><w:body>",
    "size": "<a>" + " " * 70_000_000,
}


@each("kind", list(HOSTILE))
def test_hostile_archive_is_broken(kind: str) -> None:
    with pytest.raises(Broken):
        docx(zipped({"word/document.xml": HOSTILE[kind]}))


@each("content", [b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 1_000])
def test_damaged_archive_is_broken(content: bytes) -> None:
    with pytest.raises(Broken):
        docx(content)
