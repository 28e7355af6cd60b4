"""Forms with a file: any cut into chunks, hostile heads, and a hash that does not depend on the boundary."""

import io
import threading
from hashlib import sha256
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.server.forms import FormReader, boundary_of, read_form
from svc.server.idempotency import hashing_receive

BOUNDARY = b"--x-y"
contents = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"\r\n", b"--", b"--x-y", b"-", b"\r", b"a"]), max_size=12
).map(b"".join)


def part(name: str, content: bytes, is_file: bool = False) -> bytes:
    file_name = b'; filename="a.wav"' if is_file else b""
    head = b'\r\nContent-Disposition: form-data; name="%b"%b' % (name.encode(), file_name)
    return b"--" + BOUNDARY + head + b"\r\nContent-Type: x/y\r\n\r\n" + content + b"\r\n"


def read(body: bytes, cuts: list[int], most_bytes: int = 1_000) -> tuple[dict[str, list[str]], bytes, FormReader]:
    file = io.BytesIO()
    reader = FormReader(BOUNDARY, "file", file, most_bytes)
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        reader.feed(body[start:end])
    return reader.fields, file.getvalue(), reader


@given(contents, st.text(max_size=9), st.lists(st.integers(0, 500), max_size=8))
def test_any_file_in_any_chunks_arrives_whole(content: bytes, text: str, cuts: list[int]) -> None:
    delimiter = b"\r\n--" + BOUNDARY
    if delimiter in b"\r\n" + content + b"\r\n" or delimiter in b"\r\n" + text.encode() + b"\r\n":
        return
    body = (
        part("a[]", text.encode()) + part("file", content, True) + part("a[]", b"2") + b"--" + BOUNDARY + b"--\r\nend"
    )
    fields, file, reader = read(body, cuts)
    assert (fields, file, reader.ended) == ({"a[]": [text, "2"]}, content, True)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_any_other_bytes_are_refused_or_incomplete(body: bytes, cuts: list[int]) -> None:
    try:
        _, file, reader = read(b"--" + BOUNDARY + body, cuts)
    except ApiError as error:
        assert error.status in (400, 413)
    else:
        assert file == b"" or reader.has_file


def test_file_over_the_limit_is_refused_before_its_end() -> None:
    assert read(part("file", bytes(1_000), True) + b"--" + BOUNDARY, [])[1] == bytes(1_000)
    with pytest.raises(ApiError, match="over 1000 bytes") as refused:
        read(part("file", bytes(1_100), True), [])
    assert refused.value.status == 413


def test_files_of_other_fields_are_dropped() -> None:
    fields, file, _ = read(part("image", bytes(500_000), True) + part("file", b"x", True) + b"--" + BOUNDARY, [])
    assert (fields, file) == ({}, b"x")


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"multipart/form-data; boundary=abc", b"abc"),
        (b'Multipart/Form-Data; charset=utf-8; boundary="a b"', b"a b"),
        (b"multipart/form-data", b""),
        (b"multipart/mixed; boundary=abc", b""),
        (b"multipart/form-data; boundary=" + b"a" * 71, b""),
    ],
)
def test_boundary_is_that_of_the_content_type(content_type: bytes, expected: bytes) -> None:
    assert boundary_of(content_type) == expected


@given(st.binary(max_size=80), st.lists(st.integers(0, 200), max_size=6))
async def test_hash_of_a_form_does_not_depend_on_its_boundary_and_chunks(content: bytes, cuts: list[int]) -> None:
    async def digest(boundary: bytes, cuts: list[int]) -> bytes:
        body, found = b"--" + boundary + content + b"--" + boundary + b"--", [b""]
        places = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
        chunks = [body[start:end] for start, end in pairwise(places)]
        messages = iter([{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks])

        async def receive() -> Any:
            return next(messages, {"type": "http.request", "body": b"", "more_body": False})

        headers = {b"content-type": b"multipart/form-data; boundary=" + boundary}
        request: Any = SimpleNamespace(receive=receive, context=SimpleNamespace(headers=headers))
        read = hashing_receive(request, found.append)
        while (await read())["more_body"]:
            pass
        return found[-1]

    if b"0123" in content or b"abcdefgh" in content:
        return
    assert await digest(b"0123", []) == await digest(b"abcdefgh", cuts) == sha256(b"--" + content + b"----").digest()


class _Recording(io.BytesIO):
    """A file that records the threads that write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def write(self, content: Any) -> int:
        self.threads.add(threading.get_ident())
        return super().write(content)


async def test_writes_to_the_disk_never_hold_the_event_loop() -> None:
    body = part("file", b"x" * 1_000, is_file=True) + b"--" + BOUNDARY + b"--\r\n"
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(messages)

    headers = {b"content-type": b"multipart/form-data; boundary=" + BOUNDARY}
    request: Any = SimpleNamespace(receive=receive, context=SimpleNamespace(headers=headers))
    file = _Recording()
    await read_form(request, "file", file, 2_000)
    assert file.getvalue() == b"x" * 1_000 and threading.get_ident() not in file.threads
