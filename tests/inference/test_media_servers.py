"""Pictures and speech from model servers of every honesty."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from svc.config import Config
from tests.conftest import Clocks
from tests.support.cases import each
from tests.support.loop_clock import hastened
from tests.support.media_lab import GENERATE, IMAGES, SPEECH, Lab, media_lab, pictures, seconds
from tests.support.model_media import PNG
from tests.support.turns import free_loop


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with media_lab(config, clocks, tmp_path) as lab:
        yield lab


@contextlib.asynccontextmanager
async def answering(
    lab: Lab, content: bytes, content_type: str, status: int = 200, *, linked: bool = False
) -> AsyncIterator[list[bytes]]:
    """The heads of the requests to a server that gives this answer: the account's provider `own`.

    With `linked`, the answer to a POST request is the address of a picture, which the server answers with `content`.
    """
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        host = re.findall(rb"(?i)\r\nhost: (\S+)", head)[0].decode()
        link = orjson.dumps({"data": [{"url": f"http://{host}/picture.png"}]})
        found = link if linked and head.startswith(b"POST") else content
        told = f"content-type: {content_type}\r\n" if content_type else ""
        writer.write(f"HTTP/1.1 {status} OK\r\n{told}content-length: {len(found)}\r\n\r\n".encode() + found)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        await add_own(lab, server)
        yield heads


async def add_own(lab: Lab, server: asyncio.Server) -> None:
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    added = await lab.post("/user/providers", name="own", base_url=url, models=["x"], api_key="sk-0123456789abc")
    assert added.status_code == 201


async def test_pictures_are_requested_as_base64_and_repaired(lab: Lab) -> None:
    answer = await lab.post(
        IMAGES, prompt="a cat", model="lab/ok", n=2, size="1x1", quality="hd", x_extra=1, api_base="http://evil"
    )
    assert pictures(answer) == [PNG, PNG] and answer.headers["x-service-cost-micros"] == "2000"
    body = answer.json()
    assert set(body) == {"created", "data", "usage", "size"} and body["created"] == int(lab.service.clocks.now)
    assert body["data"][0]["revised_prompt"] == "A nicer a cat" and body["usage"]["total_tokens"] == 8
    seen = lab.upstream.requests[-1]
    assert seen.path == "/v1/images/generations" and seen.headers["authorization"] == "Bearer sk-the-operators-secret"
    wanted = {
        "prompt": "a cat",
        "model": "ok",
        "n": 2,
        "size": "1x1",
        "quality": "hd",
        "x_extra": 1,
        "response_format": "b64_json",
    }
    assert seen.body == wanted
    as_url = await lab.post(IMAGES, prompt="a cat", model="lab/ok", response_format="url")
    assert (await lab.service.client.get(as_url.json()["data"][0]["url"], headers=lab.headers)).content == PNG
    assert lab.upstream.requests[-1].body["response_format"] == "b64_json"


@pytest.mark.parametrize(
    ("message", "requests"),
    [
        ("Unknown parameter: 'response_format'.", 2),
        ("The prompt 'a response_format' breaks our rules.", 1),
        ("The prompt 'Unknown parameter: response_format' breaks our rules.", 1),
    ],
)
async def test_image_request_is_repeated_only_if_response_format_is_refused(
    lab: Lab, message: str, requests: int
) -> None:
    async with answering(lab, orjson.dumps({"error": {"message": message}}), "application/json", 400) as heads:
        assert (await lab.post(IMAGES, prompt="x", model="own/x")).status_code == 400
    assert len(heads) == requests


@each(
    ("model", "status", "code"),
    [
        ("none", 502, "upstream_invalid_response"),
        ("url-only", 502, "upstream_invalid_response"),
        ("status-400", 400, "on_command"),
        ("status-401", 502, "upstream_error"),
        ("status-500", 502, "upstream_error"),
        ("refuse-429", 503, "upstream_error"),
        ("silent", 504, "upstream_timeout"),
        ("cut-head", 502, "upstream_unreachable"),
        ("status-502", 502, "upstream_error"),  # its fallback is dearer
    ],
)
async def test_image_provider_fault_is_one_error(lab: Lab, model: str, status: int, code: str) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model=f"lab/{model}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert "secret" not in answer.text and "127.0.0.1" not in answer.text and await lab.spent() == 0


async def test_an_answer_that_is_too_long_is_refused(lab: Lab) -> None:
    for path, body in (
        (IMAGES, {"prompt": "a cat", "model": "lab/over-48-mib"}),
        (GENERATE, {"input": "hello", "model": "say/seconds-200", "format": "flac", "tts_max_tokens": 256}),
    ):
        answer = await lab.post(path, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert await lab.spent() == 0


async def test_speech_route_requests_mp3_by_default_and_every_format(lab: Lab) -> None:
    answer = await lab.post(SPEECH, input="hello", model="say/seconds-20", voice={"id": "mine"}, tts_max_tokens=256)
    assert answer.headers["content-type"] == "audio/mpeg" and answer.headers["x-audio-truncated"] == "true"
    assert float(answer.headers["x-audio-seconds"]) == pytest.approx(11.25, abs=0.024)
    seen = lab.upstream.requests[-1].body
    assert seen == {"model": "seconds-20", "input": "hello", "voice": {"id": "mine"}, "response_format": "mp3"}
    pcm = await lab.post(SPEECH, input="hello", model="say/ok", response_format="pcm")
    assert pcm.headers["content-type"] == "audio/pcm" and len(pcm.content) == 96_000
    flac = await lab.post(SPEECH, input="hello " * 30, model="say/ok", response_format="flac")
    assert flac.headers["content-type"] == "audio/flac" and flac.headers["x-audio-seconds"] == "12.000"
    other = await lab.post(SPEECH, input="hello", model="say/wav-for-all", response_format="mp3")
    assert seconds(other) == 2  # WAV is never labelled audio/mpeg


@each(
    ("model", "status", "code"),
    [
        ("error-200", 502, "upstream_error"),
        ("html-200", 502, "upstream_invalid_response"),
        ("cut-after-3-chunks", 502, "upstream_error"),
        ("reset-after-2-chunks", 502, "upstream_error"),
        ("silent-after-3-chunks", 504, "upstream_timeout"),
        ("silent", 504, "upstream_timeout"),
        ("cut-head", 502, "upstream_unreachable"),
        ("status-400", 400, "on_command"),
        ("status-401", 502, "upstream_error"),
    ],
)
async def test_speech_provider_fault_is_one_error(lab: Lab, model: str, status: int, code: str) -> None:
    answer = await lab.post(GENERATE, input="hello", model=f"say/{model}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert await lab.spent() == 0


async def test_long_text_is_sent_whole_to_an_operators_provider(lab: Lab) -> None:
    assert (await lab.post(GENERATE, input="hello " * 5_000, model="say/ok")).status_code == 200
    assert len(lab.upstream.requests[-1].body["input"]) == 30_000


@pytest.mark.parametrize(
    ("content_type", "content", "taken"),
    [
        ("image/png", PNG, True),
        ("", PNG, True),
        ("text/html", b"<html>", False),
        ("", b"<html>Sign in", False),
        ("", b"{}", False),
        ("image/png", b"hello", False),
    ],
)
async def test_page_instead_of_a_picture_is_refused(lab: Lab, content_type: str, content: bytes, taken: bool) -> None:
    async with answering(lab, content, content_type, linked=True):
        answer = await lab.post(IMAGES, prompt="x", model="own/x")
    if taken:
        assert pictures(answer) == [content]
    else:
        assert answer.status_code == 502 and "cannot be fetched" in answer.json()["error"]["message"]


async def test_large_media_body_does_not_block_the_event_loop(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    async with media_lab(config, clocks, tmp_path, timeout_seconds=30) as lab:
        headers = {**lab.headers, "content-type": "application/json"}
        for path, field, model in ((IMAGES, "prompt", "lab/ok"), (SPEECH, "input", "say/ok")):
            body = orjson.dumps({field: "hello", "model": model, "user": [{"a": {"b": 1}}] * 30_000})
            async with free_loop(0.04):
                answer = await lab.service.client.post(path, content=body, headers=headers)
            assert answer.status_code == 200 and len(lab.upstream.requests[-1].body["user"]) == 30_000


async def test_audio_of_many_small_frames_does_not_block_the_event_loop(lab: Lab) -> None:
    content = b"\xff\xf1\x40\x80\0\xff\xfc" * 60_000
    async with answering(lab, content, "audio/aac"), free_loop(0.04):
        answer = await lab.post(GENERATE, input="x", model="own/x", format="aac", tts_max_tokens=32_768)
    assert float(answer.headers["x-audio-seconds"]) == pytest.approx(640, rel=1e-3) and answer.content == content


@pytest.mark.parametrize(
    ("content_type", "format", "content", "told"),
    [
        ("audio/mpeg", "mp3", b'{"error":{"message":"no voice for key sk-0123456789abc"}}', "no voice for key ***"),
        ("application/octet-stream", "opus", b'\n {"detail":"overloaded"}', "no audio"),
        ("audio/wav", "wav", b"<html>Sign in first</html>", "no audio"),
        ("", "pcm", b'{"error":"no voice"}', "no voice"),
        ("audio/mpeg", "pcm", b'[{"error":"no voice"}]', "no voice"),
        ("audio/pcm", "pcm", b'{"' + bytes(range(256)) * 187 + b"12345678901234", 1.0),
        ("audio/pcm", "mp3", b"\x0b<w3\x0b\xc1\xfd27\xfd\x99[" * 9, 10.0),
    ],
)
async def test_error_labelled_audio_is_no_audio(
    lab: Lab, content_type: str, format: str, content: bytes, told: str | float
) -> None:
    async with answering(lab, content, content_type):
        answer = await lab.post(GENERATE, input="x" * 150, model="own/x", format=format)
    if isinstance(told, float):
        assert float(answer.headers["x-audio-seconds"]) == pytest.approx(told, abs=0.01) and answer.content == content
    else:
        assert (
            answer.status_code == 502 and told in answer.json()["error"]["message"] and "0123456789" not in answer.text
        )


async def test_slow_error_body_is_not_read_to_its_end(lab: Lab) -> None:
    left = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"error":"no voice"}')
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.5)
        left.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        await add_own(lab, server)
        answer = await hastened(lab.post(GENERATE, input="x", model="own/x"))
        assert answer.status_code == 502 and "no voice" in answer.json()["error"]["message"]
        await left.wait()
