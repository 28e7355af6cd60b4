"""How many pictures and speeches may be under way, and whose."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from svc.errors import ApiError
from svc.inference.catalog import Model, Provider
from svc.inference.media_engines import MediaEngines, Slots, file_stem, picture_type
from tests.support.cases import each


def took(slots: Slots, account_id: str, held: contextlib.ExitStack) -> int:
    """How many slots an account gets when it wants them all; it keeps them."""
    for number in range(1_000):
        try:
            held.enter_context(slots.taken(account_id))
        except ApiError as error:
            assert error.code == "overloaded" and error.headers["retry-after"] == "5"
            return number
    raise AssertionError("no bound")


def test_few_accounts_cannot_use_all_slots() -> None:
    slots = Slots(most=128, most_of_one=40)
    with contextlib.ExitStack() as held:
        assert [took(slots, name, held) for name in "abcdef"] == [40, 40, 24, 12, 6, 3]
        with slots.taken("g"):
            pass


def test_slot_is_released_at_any_end_of_its_block() -> None:
    slots = Slots(most=2, most_of_one=1)
    for _ in range(3):
        with pytest.raises(RuntimeError), slots.taken("a"):
            raise RuntimeError
    with slots.taken("a"), slots.taken("b"), pytest.raises(ApiError), slots.taken("c"):
        pass


def test_own_providers_have_separate_limits() -> None:
    nothing: Any = None
    media = MediaEngines(nothing, nothing, nothing, nothing, Path())
    own = Model("mine/x", "x", Provider("mine", "http://x", byok=True), "image", {"micros_per_image": 0})
    operators = Model("lab/x", "x", Provider("lab", "http://x"), "image", {"micros_per_image": 5})
    built_in = Model("builtin/paint", "paint", None, "image", {"micros_per_image": 5})
    assert media.slots(own) is not media.slots(operators) is media.slots(built_in)
    assert media.parsing(own) is not media.parsing(operators) is media.parsing(built_in)


async def test_a_spool_is_a_file_without_a_name(tmp_path: Path) -> None:
    nothing: Any = None
    with MediaEngines(nothing, nothing, nothing, nothing, tmp_path).spool() as file:
        assert file.write(b"x" * 100_000) == 100_000 and not list(tmp_path.iterdir())
    with (
        pytest.raises(ApiError, match="storage"),
        MediaEngines(nothing, nothing, nothing, nothing, tmp_path / "gone").spool(),
    ):
        pass


async def test_large_spool_is_closed_in_a_thread(tmp_path: Path) -> None:
    nothing: Any = None
    piece = bytes(1024 * 1024)

    def filled(file: BinaryIO) -> BinaryIO:
        for _ in range(160):
            file.write(piece)
        return file

    def closing_seconds(close: Callable[[], None]) -> float:
        began = time.thread_time()
        close()
        return time.thread_time() - began

    held = contextlib.ExitStack()
    descriptor = filled(held.enter_context(MediaEngines(nothing, nothing, nothing, nothing, tmp_path).spool())).fileno()
    with tempfile.TemporaryFile(dir=tmp_path, buffering=0) as ordinary:
        assert closing_seconds(held.close) < closing_seconds(filled(ordinary).close) / 3
    with pytest.raises(OSError, match="Bad file descriptor"):
        async with asyncio.timeout(10):
            while os.fstat(descriptor):
                await asyncio.sleep(0.01)


@each(
    ("start", "content_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"GIF89a", "image/gif"),
        (b"<svg onload=alert(1)>", None),
        (b"", None),
    ],
)
def test_picture_type_is_recognized_by_its_bytes(start: bytes, content_type: str | None) -> None:
    assert picture_type(start) == content_type


@each(
    ("text", "stem"),
    [
        ("A café, at night!", "A-café-at-night"),
        ("../../etc/passwd", "etc-passwd"),
        ("\u202egpj.exe \0", "gpj-exe"),
        ("!!!", "untitled"),
        ("word " * 100, "word-" * 11 + "word"),
    ],
)
def test_file_name_comes_from_the_prompt(text: str, stem: str) -> None:
    assert file_stem(text).startswith(stem[:40]) and len(file_stem(text)) <= 60
