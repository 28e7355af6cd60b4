"""The folder of GGUF files, and what the head of a file says, whatever the file contains."""

import os
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from svc.inference.local.files import LocalSettings, context_length_in, scan


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def head(*pairs: tuple[str, int, bytes]) -> bytes:
    values = b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + values


ARCHITECTURE = ("general.architecture", 8, text("llama"))
TAGS = ("general.tags", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"))
SIZES = ("general.sizes", 9, struct.pack("<IQ", 4, 3) + b"\0" * 12)
LENGTH = ("llama.context_length", 4, struct.pack("<I", 4096))


def test_context_length_is_found_behind_values_of_every_kind() -> None:
    others = [(f"x.{kind}", kind, b"\0" * size) for kind, size in ((0, 1), (2, 2), (6, 4), (7, 1), (10, 8), (12, 8))]
    assert context_length_in(head(ARCHITECTURE, TAGS, SIZES, *others, LENGTH)) == 4096


def test_a_head_without_a_sensible_length_has_none() -> None:
    assert context_length_in(head(ARCHITECTURE)) is None
    assert context_length_in(head(("llama.context_length", 4, struct.pack("<I", 0)))) is None
    assert context_length_in(head(("llama.context_length", 6, struct.pack("<f", 4.0)))) is None


def test_hostile_heads_are_read_without_an_error() -> None:
    endless = ("x", 9, struct.pack("<IQ", 8, 2**63))
    nested = ("x", 9, struct.pack("<IQ", 9, 1) * 5_000)
    unknown = ("x", 99, b"")
    assert [context_length_in(head(one, LENGTH)) for one in (endless, nested, unknown)] == [None] * 3
    assert context_length_in(head(LENGTH)[:-1]) is None


@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_any_bytes_are_a_head(rest: bytes, count: int) -> None:
    context_length_in(b"GGUF" + struct.pack("<IQQ", 3, 0, count) + rest)


def test_folder_is_listed_by_its_rules(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.bin").write_bytes(b"GGUF")
    folder = tmp_path / "models"
    (folder / "sub").mkdir(parents=True)
    (folder / "folder.gguf").mkdir()
    for name in ("b.gguf", "A.GGUF", "c.gguf.txt", ".hidden.gguf", "sub/d.gguf", "twice.GGUF", "twice.gguf"):
        (folder / name).write_bytes(b"GGUF")
    (folder / "no.gguf").write_bytes(b"PK")
    (folder / "link.gguf").symlink_to(tmp_path / "elsewhere" / "linked.bin")
    (folder / "broken.gguf").symlink_to(tmp_path / "nowhere")
    found = scan(folder, {})
    assert list(found) == ["A.GGUF", "b.gguf", "link.gguf", "no.gguf", "twice.GGUF"]
    assert found["no.gguf"] is None
    assert [one.name for one in found.values() if one] == ["A", "b", "link", "twice"]
    assert scan(tmp_path / "none", {}) == {}


def test_only_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(head(LENGTH))
    known = scan(tmp_path, {})
    assert scan(tmp_path, known)["a.gguf"] is known["a.gguf"]
    path.write_bytes(head(("llama.context_length", 4, struct.pack("<I", 8192))))
    os.utime(path, ns=(1, 1))
    changed = scan(tmp_path, known)["a.gguf"]
    assert changed is not None and changed.context_length == 8192


def test_defaults_of_the_settings(tmp_path: Path) -> None:
    settings = LocalSettings()
    assert settings.folder_in(tmp_path) == tmp_path / "models"
    assert LocalSettings(folder=Path("/x")).folder_in(tmp_path) == Path("/x")
    assert settings.most_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    assert LocalSettings(memory_bytes=5).most_bytes == 5
