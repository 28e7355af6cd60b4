"""Images and speech through HTTP: the built-in models, providers of every honesty, checks and money."""

import asyncio
import base64
import contextlib
import io
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from svc.inference.studio import Studio
from tests.conftest import Service, bearer
from tests.support.model_media import PNG
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch

IMAGES, GENERATE, SPEECH = "/v1/images/generations", "/v1/audio/generate", "/v1/audio/speech"
IMAGE_MODELS = (
    *("ok", "fewer", "too-many", "none", "url-only", "data-url", "bad-picture", "huge", "no-response-format", "fail-once"),
    *("status-400", "status-401", "status-500", "refuse-429", "silent", "cut-head", "broken", "slow-300ms"),
)
SPEECH_MODELS = (
    *("ok", "seconds-20", "wav-for-all", "error-200", "html-200", "cut-after-3-chunks", "silent-after-3-chunks", "fail-once"),
    *("status-400", "status-401", "silent", "cut-head", "reset-after-2-chunks", "slow-300ms"),
)
PRICE = 20_000  # of builtin/paint, a picture
WORST = 40_960  # of builtin/voice, 4096 audio tokens


def catalog(base_url: str) -> str:
    def entry(name: str, kind: str, price: str, fallback: str = "") -> str:
        return f'[[providers.models]]\nid = "{name}"\nkind = "{kind}"\n{price}\n' + (
            f'fallback = "{fallback}"\n' if fallback else ""
        )

    images, speech = "micros_per_image = 1000", "micros_per_thousand_audio_tokens = 2000"
    text = f'[[providers]]\nname = "lab"\nbase_url = "{base_url}"\napi_key = "sk-the-operators-secret"\ntimeout_seconds = 0.5\n'
    text += "".join(entry(name, "image", images) for name in IMAGE_MODELS) + entry("status-503", "image", images, "lab/fewer")
    text += entry("status-502", "image", images, "builtin/paint") + entry(
        "status-504", "image", "micros_per_image = 30000", "builtin/paint"
    )
    text += f'[[providers]]\nname = "say"\nbase_url = "{base_url}"\ntimeout_seconds = 0.5\n'
    return (
        text
        + "".join(entry(name, "speech", speech) for name in SPEECH_MODELS)
        + entry("status-503", "speech", speech, "say/ok")
        + (entry("status-504", "speech", "micros_per_thousand_audio_tokens = 10000", "builtin/voice"))
    )


@dataclass
class Lab:
    """The service in front of `upstream`, and somebody with money."""

    service: Service
    upstream: ModelServer
    account_id: str
    headers: dict[str, str]

    async def fund(self, micros: int) -> None:
        await self.service.state["db"].write(wallet.credit, self.account_id, micros, description="", now_seconds=1.0)

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.service.client.post(path, json=body, headers=self.headers)

    async def account(self) -> dict[str, Any]:
        account: dict[str, Any] = (await self.service.client.get("/billing/account", headers=self.headers)).json()
        return account

    async def spent(self) -> int:
        """The debits so far; nothing may be held."""
        assert (await self.account())["held_micros"] == 0
        rows = (await self.service.client.get("/billing/ledger?limit=100", headers=self.headers)).json()["data"]
        assert_exact(self.service.config.data_dir / "service.db")
        return -sum(row["amount_micros"] for row in rows if row["kind"] == "debit")


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def config(config: Config, tmp_path: Path, upstream: ModelServer) -> Config:
    (tmp_path / "catalog.toml").write_text(catalog(upstream.base_url))
    return replace(config, catalog=tmp_path / "catalog.toml")


@pytest.fixture
async def lab(service: Service, upstream: ModelServer) -> Lab:
    signed_up = await service.sign_up()
    headers = bearer((await service.make_key(bearer(signed_up["access_token"])))["key"])
    watch(service.config.data_dir / "service.db")
    lab = Lab(service, upstream, signed_up["user"]["id"], headers)
    await lab.fund(1_000_000)
    return lab


def pictures(answer: httpx.Response) -> list[bytes]:
    assert answer.status_code == 200, answer.text
    return [base64.b64decode(entry["b64_json"], validate=True) for entry in answer.json()["data"]]


def seconds(answer: httpx.Response) -> float:
    """How long a WAV answer is; its header must say the same."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/wav" and int(answer.headers["content-length"]) == len(answer.content)
    with wave.open(io.BytesIO(answer.content)) as reader:
        length = reader.getnframes() / reader.getframerate()
    assert float(answer.headers["x-audio-seconds"]) == pytest.approx(length, abs=0.001)
    return length


def tokens(length_seconds: float) -> int:
    return -(-round(length_seconds * 4096 * 10**6) // (180 * 10**6))


# --- the built-in models


async def test_the_built_in_painter_answers_in_openais_shape(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a lighthouse", model="builtin/paint", size="96x64")
    body = answer.json()
    assert body["created"] == int(lab.service.clocks.now) and set(body["data"][0]) == {"b64_json"}
    assert (body["size"], body["output_format"]) == ("96x64", "png") and answer.headers["content-type"] == "application/json"
    (png,) = pictures(answer)
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[16:24] == (96).to_bytes(4, "big") + (64).to_bytes(4, "big")
    assert answer.headers["x-service-cost-micros"] == str(PRICE) and await lab.spent() == PRICE
    again = await lab.post(IMAGES, prompt="a lighthouse", model="builtin/paint", size="96x64", quality="hd", style=None, user="x")
    assert pictures(again) == [png]


async def test_n_pictures_differ_and_are_paid_one_by_one(lab: Lab) -> None:
    made = pictures(await lab.post(IMAGES, prompt="hills", model="builtin/paint", size="64x64", n=3))
    assert len(set(made)) == 3 and await lab.spent() == 3 * PRICE
    (row,) = (await lab.service.client.get("/billing/ledger?limit=1", headers=lab.headers)).json()["data"]
    assert row["description"] == "builtin/paint: 3 images" and row["model"] == "builtin/paint"
    (day,) = (await lab.service.client.get("/billing/usage", headers=lab.headers)).json()["data"]
    assert (day["model"], day["requests"], day["cost_micros"]) == ("builtin/paint", 1, 3 * PRICE)


async def test_a_url_is_that_of_an_artifact_and_needs_no_token_for_an_hour(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="A café, at night!", model="builtin/paint", size="64x64", n=2, response_format="url")
    urls = [entry["url"] for entry in answer.json()["data"]]
    assert len(set(urls)) == 2 and all(url.startswith(f"{lab.service.config.base_url}/artifacts/art_") for url in urls)
    listed = (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"]
    assert {entry["name"] for entry in listed} == {"A-café-at-night.png", "A-café-at-night-2.png"}
    assert {entry["content_url"] for entry in listed} == set(urls)
    for seconds_later, status in ((0, 200), (3_599, 200), (2, 401)):
        lab.service.clocks.advance(seconds_later)
        content = await lab.service.client.get(urls[1])
        assert content.status_code == status
        assert status == 401 or (content.headers["content-type"] == "image/png" and content.content.startswith(b"\x89PNG"))


async def test_without_a_model_the_catalogs_first_of_the_kind_answers(lab: Lab) -> None:
    assert pictures(await lab.post(IMAGES, prompt="hills", size="64x64"))[0].startswith(b"\x89PNG")
    assert seconds(await lab.post(GENERATE, input="hello")) > 0.3
    assert lab.upstream.requests == []
    kinds = {model["id"]: model for model in (await lab.service.client.get("/v1/models", headers=lab.headers)).json()["data"]}
    assert kinds["builtin/paint"]["pricing"] == {"micros_per_image": PRICE} and kinds["builtin/paint"]["kind"] == "image"
    assert kinds["builtin/voice"]["pricing"] == {"micros_per_thousand_audio_tokens": 10_000}


async def test_the_built_in_voice_is_paid_by_what_it_says(lab: Lab) -> None:
    answer = await lab.post(GENERATE, input="Hello there, this is a test.", model="builtin/voice")
    cost = -(-tokens(seconds(answer)) * 10_000 // 1_000)
    assert answer.headers["x-audio-truncated"] == "false" and answer.headers["x-service-cost-micros"] == str(cost)
    assert 100 < cost == await lab.spent()
    (row,) = (await lab.service.client.get("/billing/ledger?limit=1", headers=lab.headers)).json()["data"]
    assert row["output_tokens"] == tokens(seconds(answer))


@pytest.mark.parametrize(("asked", "cap_seconds"), [(256, 11.25), (1, 11.25), (-5, 11.25), (512, 22.5), (None, 180)])
async def test_the_output_is_cut_at_the_cap(lab: Lab, asked: int | None, cap_seconds: float) -> None:
    answer = await lab.post(GENERATE, input="Hello there. " * 400, tts_max_tokens=asked)
    assert cap_seconds - 3 < seconds(answer) <= cap_seconds and answer.headers["x-audio-truncated"] == "true"


async def test_the_largest_cap_is_24_minutes(lab: Lab) -> None:
    answer = await lab.post(GENERATE, input="Hello there. " * 400, tts_max_tokens=10**30)
    assert 180 < seconds(answer) < 1440 and answer.headers["x-audio-truncated"] == "false"


async def test_speech_without_a_format_is_wav_that_says_so_where_there_is_no_encoder(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    voice = lab.service.state["studio"].voice
    monkeypatch.setattr(voice, "_encoders", {"wav": None, "pcm": None})
    assert seconds(await lab.post(SPEECH, input="Hello", model="builtin/voice", voice="nova", instructions="x")) > 0.3
    pcm = await lab.post(SPEECH, input="Hello", model="builtin/voice", voice={"id": "nova"}, response_format="pcm", speed=2)
    assert pcm.headers["content-type"] == "audio/pcm" and len(pcm.content) > 5_000
    refused = await lab.post(SPEECH, input="Hello", model="builtin/voice", response_format="mp3")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "response_format")
    refused = await lab.post(GENERATE, input="Hello", model="builtin/voice", format="opus")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "format")


async def test_speech_as_events_carries_the_same_audio(lab: Lab) -> None:
    body = {"input": "Hello there", "model": "builtin/voice", "response_format": "wav"}
    plain = await lab.post(SPEECH, **body)
    answer = await lab.post(SPEECH, **body, stream_format="sse")
    assert answer.headers["content-type"] == "text/event-stream" and answer.headers["x-audio-seconds"]
    *deltas, done = (orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1])
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(delta["audio"]) for delta in deltas) == plain.content
    used = tokens(seconds(plain))
    assert seconds(await lab.post(GENERATE, input="Hello there", stream_format="sse")) > 0.4  # no field of that route
    assert done == {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": used, "total_tokens": used}}


# --- what is refused


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
        ({"voice": {}}, 400, "voice"),
        ({"voice": {"id": 5}}, 400, "voice"),
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


@pytest.mark.parametrize("path", WRONG)
async def test_a_wrong_request_names_its_field_whoever_pays(lab: Lab, path: str) -> None:
    poor = await lab.service.bearer()
    for body, status, param in WRONG[path]:
        if body and param not in ("prompt", "input"):
            body = {("prompt" if path == IMAGES else "input"): "hi", **body}
        for headers in (lab.headers, poor):
            answer = await lab.service.client.post(path, json=body, headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (status, param), (body, answer.text)
            assert error["code"] == "PAYLOAD_TOO_LARGE" or status != 413
    assert await lab.spent() == 0


@pytest.mark.parametrize("path", [IMAGES, GENERATE, SPEECH])
async def test_who_may_ask_and_how(lab: Lab, path: str) -> None:
    client = lab.service.client
    assert (await client.post(path, json={"prompt": "a", "input": "a"})).status_code == 401
    for content, status in ((b"nonsense", 400), (b"[]", 400), (b'{"input": "\xff"}', 400), (b"[" * 300, 400)):
        answer = await client.post(path, content=content, headers={**lab.headers, "content-type": "application/json"})
        assert answer.status_code == status and answer.json()["error"]["code"] == "invalid_json"
    assert (await client.get(path, headers=lab.headers)).headers["allow"] == "POST"


async def test_media_take_nothing_from_the_chat_bucket(lab: Lab) -> None:
    for _ in range(25):
        answer = await lab.post(GENERATE, input="hi", voice="nobody")
        assert answer.status_code == 400 and "x-ratelimit-remaining-requests" not in answer.headers
    chat = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
    answer = await lab.service.client.post("/v1/chat/completions", json=chat, headers=lab.headers)
    assert answer.headers["x-ratelimit-remaining-requests"] == "19"


# --- money


@pytest.mark.parametrize(
    ("path", "body", "worst", "affordable"),
    [
        (IMAGES, {"prompt": "hills", "model": "builtin/paint", "size": "64x64"}, PRICE, 7),
        (GENERATE, {"input": "hi", "model": "builtin/voice"}, WORST, 7),
        (SPEECH, {"input": "hi", "model": "say/slow-300ms", "response_format": "wav"}, 8_192, 7),
    ],
)
async def test_funds_for_7_serve_7_of_40_at_once(lab: Lab, path: str, body: dict[str, Any], worst: int, affordable: int) -> None:
    """While they are under way each holds its worst case."""
    studio, db = lab.service.state["studio"], lab.service.state["db"]
    balance = (await lab.account())["wallet_balance_micros"]
    await db.write(wallet.debit, lab.account_id, balance - affordable * worst - worst // 2, description="", now_seconds=1.0)
    # No workshop serves anybody before everybody has asked for a hold.
    async with contextlib.AsyncExitStack() as turns:
        for workshop in (studio.voice._workshop, studio.painter):
            for other in ("user_1", "user_2"):
                await turns.enter_async_context(workshop._turns.taken(other))
        asked = [asyncio.create_task(lab.post(path, **body)) for _ in range(40)]
        async with asyncio.timeout(10):
            while sum(task.done() for task in asked) < 40 - affordable:
                await asyncio.sleep(0.01)
    statuses = [(await task).status_code for task in asked]
    assert statuses.count(200) == affordable and statuses.count(402) == 40 - affordable
    assert (await lab.account())["wallet_balance_micros"] >= 0
    await lab.spent()


async def test_402_tells_what_is_needed_and_nothing_is_made(lab: Lab) -> None:
    await lab.service.state["db"].write(wallet.debit, lab.account_id, 1_000_000 - 3 * PRICE, description="", now_seconds=1.0)
    answer = await lab.post(IMAGES, prompt="hills", model="builtin/paint", n=4)
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "insufficient_funds")
    assert f"{4 * PRICE} micros" in answer.json()["error"]["message"] and answer.headers["x-should-retry"] == "false"
    assert (await lab.post(GENERATE, input="hi", tts_max_tokens=32_768)).status_code == 402
    assert (await lab.post(GENERATE, input="hi", tts_max_tokens=4_096)).status_code == 200
    poor = await lab.service.bearer()
    for path, body in ((IMAGES, {"prompt": "a"}), (GENERATE, {"input": "a"}), (SPEECH, {"input": "a"})):
        assert (await lab.service.client.post(path, json=body, headers=poor)).status_code == 402


async def test_what_fails_costs_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def die(order: Any, account_id: str) -> bytes:
        if order.get("variation") == 0:
            return PNG
        from svc.errors import UpstreamFault

        raise UpstreamFault("cut", "The helper process ended with status -9.")

    monkeypatch.setattr(lab.service.state["studio"].painter, "run", die)
    answer = await lab.post(IMAGES, prompt="hills", model="builtin/paint", n=2)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_error")
    assert await lab.spent() == 0
    assert (await lab.post(IMAGES, prompt="hills", model="builtin/paint")).status_code == 200
    assert await lab.spent() == PRICE


@pytest.mark.parametrize(
    ("path", "model"), [(IMAGES, "builtin/paint"), (IMAGES, "lab/ok"), (GENERATE, "builtin/voice"), (GENERATE, "say/ok")]
)
async def test_a_full_disk_is_503_and_costs_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch, path: str, model: str) -> None:
    monkeypatch.setattr(Studio, "spool", lambda studio: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    answer = await lab.post(path, prompt="hills", input="hello", model=model, size="64x64")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
    assert await lab.spent() == 0


async def test_beyond_the_bound_it_is_overloaded_and_costs_nothing(lab: Lab) -> None:
    slots = lab.service.state["studio"].shared.images
    slots._open.update({"user_1": 40, "user_2": 40, "user_3": 24, "user_4": 12, "user_5": 6, "user_6": 6})
    answer = await lab.post(IMAGES, prompt="hills", model="builtin/paint")
    slots._open.clear()
    assert (answer.status_code, answer.json()["error"]["code"], answer.headers["retry-after"]) == (503, "overloaded", "5")
    assert await lab.spent() == 0
    assert (await lab.post(IMAGES, prompt="hills", model="builtin/paint", size="64x64")).status_code == 200
    assert not slots._open


# --- providers


async def test_a_providers_pictures_come_repaired_and_are_asked_for_as_base64(lab: Lab) -> None:
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
    ("model", "count"),
    [("fewer", 1), ("too-many", 3), ("data-url", 3), ("no-response-format", 3), ("fail-once", 3), ("slow-300ms", 3)],
)
async def test_a_provider_is_paid_for_the_pictures_that_arrive(lab: Lab, model: str, count: int) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model=f"lab/{model}", n=3)
    assert pictures(answer) == [PNG] * count and await lab.spent() == 1_000 * count


@pytest.mark.parametrize(
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
async def test_an_image_providers_fault_is_one_clear_error(lab: Lab, model: str, status: int, code: str) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model=f"lab/{model}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert "secret" not in answer.text and "127.0.0.1" not in answer.text and await lab.spent() == 0


async def test_an_answer_that_is_too_long_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.inference.upstream_media._IMAGES_BYTES", 1024 * 1024)
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/huge")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    monkeypatch.setattr("svc.inference.upstream_media._BYTES_PER_SECOND", -100_000)
    assert (await lab.post(GENERATE, input="hello", model="say/ok")).status_code == 502
    assert await lab.spent() == 0


async def test_a_picture_that_is_none_becomes_no_artifact(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/bad-picture", response_format="url")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert await lab.spent() == 0 and (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"] == []


async def test_the_fallback_answers_at_its_own_price_and_may_be_built_in(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/status-503", n=2)
    assert pictures(answer) == [PNG] and await lab.spent() == 1_000
    assert [seen.model for seen in lab.upstream.requests] == ["status-503", "status-503", "fewer"]
    for asked, size in (("96x64", (96, 64)), ("2048x60", (1024, 64)), ("99999x99999", (1024, 1024))):
        answer = await lab.post(IMAGES, prompt="a cat", model="lab/status-504", size=asked)
        assert pictures(answer)[0][16:24] == size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
    assert await lab.spent() == 1_000 + 3 * PRICE


async def test_the_built_in_voice_stands_in_with_a_voice_and_a_format_of_its_own(lab: Lab) -> None:
    answer = await lab.post(SPEECH, input="hello", model="say/status-504", voice="af_bella", response_format="wma")
    assert 0.3 < seconds(answer) < 3 and await lab.spent() == -(-tokens(seconds(answer)) * 10)


async def test_a_providers_speech_is_cut_repaired_and_paid_by_its_length(lab: Lab) -> None:
    answer = await lab.post(
        GENERATE, input="hello", model="say/ok", speed=1.5, x_extra=1, base_url="http://evil", tts_max_tokens=300
    )
    assert seconds(answer) == 2 and answer.headers["x-audio-truncated"] == "false"
    assert answer.headers["x-service-cost-micros"] == str(-(-tokens(2) * 2)) and await lab.spent() == tokens(2) * 2
    seen = lab.upstream.requests[-1]
    wanted = {"model": "ok", "input": "hello", "voice": "alloy", "speed": 1.5, "x_extra": 1, "response_format": "wav"}
    assert seen.path == "/v1/audio/speech" and seen.body == wanted
    answer = await lab.post(GENERATE, input="hello", model="say/seconds-20", voice="ash", tts_max_tokens=256)
    assert 9 < seconds(answer) <= 11.25 and answer.headers["x-audio-truncated"] == "true"
    assert lab.upstream.requests[-1].body["voice"] == "ash"


async def test_a_providers_speech_route_gets_mp3_by_default_and_every_format(lab: Lab) -> None:
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


@pytest.mark.parametrize(
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
async def test_a_speech_providers_fault_is_one_clear_error(lab: Lab, model: str, status: int, code: str) -> None:
    answer = await lab.post(GENERATE, input="hello", model=f"say/{model}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert await lab.spent() == 0


async def test_speech_is_tried_once_more_and_then_its_fallback(lab: Lab) -> None:
    assert seconds(await lab.post(GENERATE, input="hello", model="say/fail-once")) == 2
    assert seconds(await lab.post(GENERATE, input="hello", model="say/status-503")) == 2
    assert [seen.model for seen in lab.upstream.requests] == ["fail-once", "fail-once", "status-503", "status-503", "ok"]
    assert await lab.spent() == 2 * tokens(2) * 2


async def test_a_long_text_goes_to_an_operators_provider_whole(lab: Lab) -> None:
    assert (await lab.post(GENERATE, input="hello " * 5_000, model="say/ok")).status_code == 200
    assert len(lab.upstream.requests[-1].body["input"]) == 30_000


# --- a user's own provider


async def test_a_users_own_provider_serves_images_and_speech_for_nothing(lab: Lab) -> None:
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
async def test_over_4096_characters_a_users_own_provider_is_sent_nothing(lab: Lab, path: str) -> None:
    provider = {"name": "mine", "base_url": lab.upstream.base_url, "models": ["ok"]}
    assert (await lab.post("/user/providers", **provider)).status_code == 201
    answer = await lab.post(path, input="é" * 4_097, model="mine/ok")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert lab.upstream.requests == []
    assert (await lab.post(path, input="é" * 4_096, model="mine/ok")).status_code == 200
