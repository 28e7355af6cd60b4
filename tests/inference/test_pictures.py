"""A provider's answer to an image request, whatever it looks like: read into bytes, or one clear fault."""

import base64
import io
import json
import tempfile
from typing import Any

import orjson
import pytest

from svc.errors import UpstreamFault
from svc.inference.catalog import Provider
from svc.inference.image_call import Picture, pictures_in
from tests.support.cases import each
from tests.support.turns import waited_for_less_than_50_ms

BYTES = b"\xff\xd8\xff" + bytes(range(256)) * 2
PLAIN = base64.b64encode(BYTES).decode()


PROVIDER = Provider("lab", "http://lab/v1", "sk-the-operators-secret")


def read_answer(answer: bytes, most: int = 10) -> tuple[list[tuple[bytes, Picture]], dict[str, Any]]:
    """The pictures of an answer, each with its content, and the details."""
    with tempfile.TemporaryFile(buffering=0) as file:
        pictures, details = pictures_in(io.BytesIO(answer), PROVIDER, most, file)  # type: ignore[arg-type]  # a raw file
        return [(picture.content(file), picture) for picture in pictures], details  # type: ignore[arg-type]


def read(entry: Any, **fields: Any) -> tuple[list[tuple[bytes, Picture]], dict[str, Any]]:
    return read_answer(json.dumps({"data": [entry], **fields}).encode())


def contents(entry: Any) -> list[bytes]:
    return [content for content, _ in read(entry)[0]]


@each(
    "encoded",
    [
        PLAIN,
        PLAIN.rstrip("="),
        "\r\n".join(PLAIN[place : place + 76] for place in range(0, len(PLAIN), 76)),
        f" {PLAIN}\n",
        base64.urlsafe_b64encode(BYTES).decode(),
        f"data:image/png;base64,{PLAIN}",
    ],
)
def test_base64_in_any_usual_form_is_read(encoded: str) -> None:
    assert contents({"b64_json": encoded}) == [BYTES]
    escaped = (
        b'{"data": [{"b64_json": "%b"}]}' % encoded.replace("/", "\\/").replace("\r", "").replace("\n", "\\n").encode()
    )
    assert [content for content, _ in read_answer(escaped)[0]] == [BYTES]


@each(
    "entry",
    [
        {"b64_json": "@@@"},
        {"b64_json": "A"},
        {"b64_json": base64.b64encode(b"hello").decode()},
        {"url": f"data:image/png;base64,{base64.b64encode(b'<svg onload=alert(1)>').decode()}"},
        {"b64_json": "===="},
        {"b64_json": "é" * 8},
        {"b64_json": PLAIN + '"}, "injected": {"'},
        {"b64_json": ""},
        {"b64_json": 5},
        {"b64_json": None, "url": "ftp://x/y"},
        {"url": "http://" + "x" * 9_000},
        {},
        None,
        "text",
        [],
    ],
)
def test_entry_without_a_picture_is_a_fault(entry: Any) -> None:
    with pytest.raises(UpstreamFault) as fault:
        read(entry)
    assert fault.value.kind == "invalid" and "injected" not in str(fault.value)


@each("depth", [100, 300, 900, 5_000, 200_000])
def test_any_depth_is_read_or_one_fault(depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    data = b'{"data": [{"b64_json": "%b", "x\\u0020": %b}], "usage": {"input_tokens": 1, "input_tokens_details": %b}}'
    try:
        _, details = read_answer(data % (PLAIN.encode(), deep, deep))
    except UpstreamFault as fault:
        assert fault.kind == "invalid" and depth > 300
        return
    orjson.dumps(details)
    assert details["usage"] == {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1, "input_tokens_details": {}}


def test_url_of_a_picture_is_returned_as_such() -> None:
    ((_, picture),), _ = read({"url": "https://lab/a.png", "revised_prompt": "x"})
    assert picture == Picture(revised_prompt="x", url="https://lab/a.png")


def test_additional_pictures_are_not_read() -> None:
    data = json.dumps({"data": [{"b64_json": PLAIN}, {"b64_json": "@@@"}]}).encode()
    assert len(read_answer(data, most=1)[0]) == 1


@each(
    ("told", "kept"),
    [
        ({"size": "1x1", "quality": 5, "x_unknown": True}, {"size": "1x1"}),
        ({"size": "\ud83d", "output_format": "p" * 500}, {"size": "\ufffd", "output_format": "p" * 100}),
        ({"usage": {"input_tokens": -1, "total_tokens": 2.5}}, {}),
        ({"usage": {"input_tokens": 10**30, "x": 1}}, {}),
        ({"usage": [1]}, {}),
        (
            {"usage": {"input_tokens": 3, "output_tokens": 5, "input_tokens_details": {"text_tokens": 3, "odd": "x"}}},
            {
                "usage": {
                    "input_tokens": 3,
                    "output_tokens": 5,
                    "total_tokens": 8,
                    "input_tokens_details": {"text_tokens": 3},
                }
            },
        ),
    ],
)
def test_details_beside_the_pictures_are_checked(told: Any, kept: Any) -> None:
    assert read({"b64_json": PLAIN}, **told)[1] == kept


def test_the_key_of_the_provider_is_redacted() -> None:
    ((_, picture),), _ = read({"b64_json": PLAIN, "revised_prompt": "a sk-the-operators-secret cat"})
    assert picture.revised_prompt == "a *** cat"


def test_decoding_a_large_picture_does_not_block_threads() -> None:
    content = BYTES[:3] + bytes(range(256)) * (80 * 1024)  # 20 MiB
    answer = b'{"data":[{"b64_json":"%b"}]}' % base64.urlsafe_b64encode(content)
    ((found, _),), _ = waited_for_less_than_50_ms(lambda: read_answer(answer))
    assert found == content


@each("lines", ["", "\n", "\n" * 2, "\n" * 3, "\n" * 4, "\n" * 5])
def test_base64_decodes_the_same_around_the_end_of_a_slice(lines: str) -> None:
    """A slice has 256 Ki characters, so the line breaks before a text move what is around its end."""
    content = BYTES[:3] + bytes(3 * 64 * 1024 - 5)
    plain, longer = (base64.b64encode(content + bytes(more)).decode() for more in (0, 5))
    assert len(plain) == 256 * 1024 and plain.endswith("==")
    for encoded in (
        lines + plain,
        lines + plain.rstrip("="),
        f"{lines}{plain.rstrip('=')}\n==\n",
        f"data:image/jpeg;base64,{plain[:77]}\r\n{lines}{plain[77:]}",
    ):
        assert contents({"b64_json": encoded}) == [content]
    end = 256 * 1024 - len(lines)
    for encoded in (
        "=" + lines + plain,
        f"{lines}{longer[: end - 1]}={longer[end:]}",
        f"{lines}{longer[: end - 2]}=={longer[end:]}",
        f"{lines}{longer[: end - 1]}=={longer[end + 1 :]}",
        lines + plain + "A",
    ):
        with pytest.raises(UpstreamFault, match="no base64"):
            read({"b64_json": encoded})
