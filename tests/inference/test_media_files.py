"""Pictures and speech as files: their types and names."""

import pytest

from svc.inference.media_files import _stem
from svc.inference.pictures import picture_type


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert _stem(text).startswith(stem[:40]) and len(_stem(text)) <= 60
