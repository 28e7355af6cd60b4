"""Images and speech through HTTP: who may ask, what is refused, and money under load."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc.billing import wallet
from svc.config import Config
from svc.inference.media_engines import MediaEngines
from tests.conftest import Clocks
from tests.support.cases import each
from tests.support.media_lab import (
    GENERATE,
    IMAGES,
    PRICE,
    SPEECH,
    WORST,
    Lab,
    media_lab,
    pictures,
    seconds,
)
from tests.support.model_media import PNG


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with media_lab(config, clocks, tmp_path) as lab:
        yield lab


WRONG: dict[str, list[tuple[dict[str, Any], int, str]]] = {
    IMAGES: [
        ({}, 400, "prompt"),
        ({"prompt": ""}, 400, "prompt"),
        ({"prompt": " \n"}, 400, "prompt"),
        ({"prompt": 5}, 400, "prompt"),
        ({"prompt": "a" * 32_001}, 413, "prompt"),
        ({"n": 0}, 400, "n"),
        ({"n": 11}, 400, "n"),
        ({"n": True}, 400, "n"),
        ({"n": "2"}, 400, "n"),
        ({"n": 1.5}, 400, "n"),
        ({"size": "63x64"}, 400, "size"),
        ({"size": "64x1025"}, 400, "size"),
        ({"size": "large"}, 400, "size"),
        ({"size": "64x64\n"}, 400, "size"),
        ({"size": 64}, 400, "size"),
        ({"size": 0}, 400, "size"),
        ({"size": []}, 400, "size"),
        ({"size": False}, 400, "size"),
        ({"size": ""}, 400, "size"),
        ({"size": "9999999x64"}, 400, "size"),
        ({"response_format": "png"}, 400, "response_format"),
        ({"response_format": ["url"]}, 400, "response_format"),
        ({"output_format": "webp"}, 400, "output_format"),
        ({"stream": True}, 400, "stream"),
        ({"model": "builtin/voice"}, 400, "model"),
        ({"model": "builtin/echo"}, 400, "model"),
        ({"model": "no/such"}, 404, "model"),
        ({"model": ["builtin/paint"]}, 400, "model"),
    ],
    GENERATE: [
        ({}, 400, "input"),
        ({"input": None}, 400, "input"),
        ({"input": "\x00\x07 "}, 400, "input"),
        ({"input": ["a"]}, 400, "input"),
        ({"input": "a" * 100_001}, 413, "input"),
        ({"tts_max_tokens": True}, 400, "tts_max_tokens"),
        ({"tts_max_tokens": 4096.5}, 400, "tts_max_tokens"),
        ({"tts_max_tokens": "4096"}, 400, "tts_max_tokens"),
        ({"voice": "nobody"}, 400, "voice"),
        ({"voice": 5}, 400, "voice"),
        ({"voice": ""}, 400, "voice"),
        ({"voice": False}, 400, "voice"),
        ({"voice": []}, 400, "voice"),
        ({"voice": {}}, 400, "voice.id"),
        ({"voice": {"id": 5}}, 400, "voice.id"),
        ({"format": "wma"}, 400, "format"),
        ({"format": 5}, 400, "format"),
        ({"speed": 0.2}, 400, "speed"),
        ({"speed": 4.1}, 400, "speed"),
        ({"speed": True}, 400, "speed"),
        ({"model": "builtin/paint"}, 400, "model"),
    ],
    SPEECH: [
        ({"input": "a" * 4_097}, 413, "input"),
        ({"stream_format": "ogg"}, 400, "stream_format"),
        ({"response_format": "wma"}, 400, "response_format"),
        ({"voice": {"id": "alloy"}, "speed": "fast"}, 400, "speed"),
        ({"model": "say/none"}, 404, "model"),
    ],
}


async def test_default_model_is_the_operators_first_of_the_kind(lab: Lab) -> None:
    assert pictures(await lab.post(IMAGES, prompt="hills")) == [PNG]
    assert seconds(await lab.post(GENERATE, input="hello")) == 2
    assert (await lab.post(SPEECH, input="hello")).headers["content-type"] == "audio/mpeg"
    run = {"goal": "Draw a lighthouse", "model": "builtin/assistant"}
    assert '"generate_image"' in (await lab.post("/v1/agents/run", **run)).text
    paths = ["images/generations", "audio/speech", "audio/speech", "images/generations"]
    assert [(seen.path, seen.model) for seen in lab.upstream.requests] == [(f"/v1/{path}", "ok") for path in paths]
    kinds = {
        model["id"]: model for model in (await lab.service.client.get("/v1/models", headers=lab.headers)).json()["data"]
    }
    assert (
        kinds["builtin/paint"]["pricing"] == {"micros_per_image": PRICE} and kinds["builtin/paint"]["kind"] == "image"
    )
    assert kinds["builtin/voice"]["pricing"] == {"micros_per_thousand_audio_tokens": 10_000}


@each("path", WRONG)
async def test_wrong_request_names_its_field(lab: Lab, path: str) -> None:
    poor = await lab.service.bearer()
    for body, status, param in WRONG[path]:
        if body and param not in ("prompt", "input"):
            built_in = "builtin/paint" if path == IMAGES else "builtin/voice"
            body = {"model": built_in, ("prompt" if path == IMAGES else "input"): "hi", **body}
        for headers in (lab.headers, poor):
            answer = await lab.service.client.post(path, json=body, headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (status, param), (body, answer.text)
            assert error["code"] == "PAYLOAD_TOO_LARGE" or status != 413
    assert await lab.spent() == 0


@each("path", [IMAGES, GENERATE, SPEECH])
async def test_token_and_valid_json_are_required(lab: Lab, path: str) -> None:
    client = lab.service.client
    assert (await client.post(path, json={"prompt": "a", "input": "a"})).status_code == 401
    for content, status in ((b"nonsense", 400), (b"[]", 400), (b'{"input": "\xff"}', 400), (b"[" * 300, 400)):
        answer = await client.post(path, content=content, headers={**lab.headers, "content-type": "application/json"})
        assert answer.status_code == status and answer.json()["error"]["code"] == "invalid_json"
    assert (await client.get(path, headers=lab.headers)).headers["allow"] == "POST"


async def test_media_take_no_chat_admission(lab: Lab) -> None:
    for _ in range(25):
        answer = await lab.post(GENERATE, input="hi", model="builtin/voice", voice="nobody")
        assert answer.status_code == 400 and "x-ratelimit-remaining-requests" not in answer.headers
    chat = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
    answer = await lab.service.client.post("/v1/chat/completions", json=chat, headers=lab.headers)
    assert answer.headers["x-ratelimit-remaining-requests"] == "19"


@each(
    ("path", "body", "worst", "affordable"),
    [
        (IMAGES, {"prompt": "hills", "model": "builtin/paint", "size": "64x64"}, PRICE, 7),
        (GENERATE, {"input": "hi", "model": "builtin/voice"}, WORST, 7),
        (SPEECH, {"input": "hi", "model": "say/slow-300ms", "response_format": "wav"}, 8_192, 7),
    ],
)
async def test_funds_for_7_pay_7_of_40_concurrent_requests(
    lab: Lab, path: str, body: dict[str, Any], worst: int, affordable: int
) -> None:
    """While they are under way each holds its worst case."""
    pools, db = lab.service.state["process_pools"], lab.service.state["db"]
    balance = (await lab.account())["wallet_balance_micros"]
    await db.write(
        wallet.book, lab.account_id, -(balance - affordable * worst - worst // 2), description="", now_seconds=1.0
    )
    # No process starts before everybody has asked for a hold.
    with contextlib.ExitStack() as turns:
        for pool in (pools["speech"], pools["pictures"]):
            for other in ("user_1", "user_2"):
                turns.callback(await pool._queue.take(other))
        asked = [asyncio.create_task(lab.post(path, **body)) for _ in range(40)]
        async with asyncio.timeout(10):
            while sum(task.done() for task in asked) < 40 - affordable:
                await asyncio.sleep(0.01)
    statuses = [(await task).status_code for task in asked]
    assert statuses.count(200) == affordable and statuses.count(402) == 40 - affordable
    assert (await lab.account())["wallet_balance_micros"] >= 0
    await lab.spent()


async def test_402_names_the_needed_amount_and_generates_nothing(lab: Lab) -> None:
    await lab.service.state["db"].write(
        wallet.book, lab.account_id, -(1_000_000 - 3 * PRICE), description="", now_seconds=1.0
    )
    answer = await lab.post(IMAGES, prompt="hills", model="builtin/paint", n=4)
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "insufficient_funds")
    assert f"{4 * PRICE} micros" in answer.json()["error"]["message"] and answer.headers["x-should-retry"] == "false"
    assert (await lab.post(GENERATE, input="hi", model="builtin/voice", tts_max_tokens=32_768)).status_code == 402
    assert (await lab.post(GENERATE, input="hi", model="builtin/voice", tts_max_tokens=4_096)).status_code == 200
    poor = await lab.service.bearer()
    for path, body in ((IMAGES, {"prompt": "a"}), (GENERATE, {"input": "a"}), (SPEECH, {"input": "a"})):
        assert (await lab.service.client.post(path, json=body, headers=poor)).status_code == 402


@each(
    ("path", "model"),
    [(IMAGES, "builtin/paint"), (IMAGES, "lab/ok"), (GENERATE, "builtin/voice"), (GENERATE, "say/ok")],
)
async def test_full_disk_is_503_and_free(lab: Lab, monkeypatch: pytest.MonkeyPatch, path: str, model: str) -> None:
    monkeypatch.setattr(MediaEngines, "spool", lambda media: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    answer = await lab.post(path, prompt="hills", input="hello", model=model, size="64x64")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
    assert await lab.spent() == 0


async def test_too_many_requests_are_503_and_free(lab: Lab) -> None:
    slots = lab.service.state["media"]._slots["image", False]
    slots._open.update({"user_1": 40, "user_2": 40, "user_3": 24, "user_4": 12, "user_5": 6, "user_6": 6})
    answer = await lab.post(IMAGES, prompt="hills", model="builtin/paint")
    slots._open.clear()
    assert (answer.status_code, answer.json()["error"]["code"], answer.headers["retry-after"]) == (
        503,
        "overloaded",
        "5",
    )
    assert await lab.spent() == 0
    assert (await lab.post(IMAGES, prompt="hills", model="builtin/paint", size="64x64")).status_code == 200
    assert not slots._open


async def test_own_provider_serves_images_and_speech_for_free(lab: Lab) -> None:
    provider = {
        "name": "mine",
        "base_url": lab.upstream.base_url,
        "api_key": "sk-users-own-secret",
        "models": ["ok", "status-401"],
    }
    assert (await lab.post("/user/providers", **provider)).status_code == 201
    answer = await lab.post(IMAGES, prompt="a cat", model="mine/ok", api_base="passed on")
    assert pictures(answer) == [PNG] and "x-service-cost-micros" not in answer.headers
    assert lab.upstream.requests[-1].headers["authorization"] == "Bearer sk-users-own-secret"
    assert lab.upstream.requests[-1].body["api_base"] == "passed on"
    assert seconds(await lab.post(GENERATE, input="hello", model="mine/ok")) == 2
    assert seconds(await lab.post(SPEECH, input="h" * 4_096, model="mine/ok", response_format="wav")) == 2
    refused = await lab.post(IMAGES, prompt="a cat", model="mine/status-401")
    assert refused.status_code == 401 and "mine" in refused.json()["error"]["message"] and await lab.spent() == 0


@pytest.mark.parametrize("path", [GENERATE, SPEECH])
async def test_own_provider_gets_at_most_4096_characters(lab: Lab, path: str) -> None:
    provider = {"name": "mine", "base_url": lab.upstream.base_url, "models": ["ok"]}
    assert (await lab.post("/user/providers", **provider)).status_code == 201
    answer = await lab.post(path, input="é" * 4_097, model="mine/ok")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert lab.upstream.requests == []
    assert (await lab.post(path, input="é" * 4_096, model="mine/ok")).status_code == 200
