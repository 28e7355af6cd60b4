"""Speech as paid calls: its length, its cap, its formats, and what it costs."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from svc.config import Config
from tests.conftest import Clocks
from tests.support.cases import each
from tests.support.media_lab import GENERATE, SPEECH, Lab, media_lab, seconds, tokens


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with media_lab(config, clocks, tmp_path) as lab:
        yield lab


async def test_built_in_voice_is_charged_by_its_length(lab: Lab) -> None:
    answer = await lab.post(GENERATE, input="Hello there, this is a test.", model="builtin/voice")
    cost = -(-tokens(seconds(answer)) * 10_000 // 1_000)
    assert answer.headers["x-audio-truncated"] == "false" and answer.headers["x-service-cost-micros"] == str(cost)
    assert 100 < cost == await lab.spent()
    (row,) = (await lab.service.client.get("/billing/ledger?limit=1", headers=lab.headers)).json()["data"]
    assert row["output_tokens"] == tokens(seconds(answer))


@each(
    ("asked", "cap_seconds"),
    [(256, 11.25), (0, 11.25), (0.0, 11.25), (-0.0, 11.25), (-5, 11.25), (512, 22.5), (None, 180)],
)
async def test_the_output_is_cut_at_the_cap(lab: Lab, asked: float | None, cap_seconds: float) -> None:
    answer = await lab.post(GENERATE, input="Hello there. " * 400, model="builtin/voice", tts_max_tokens=asked)
    assert cap_seconds - 3 < seconds(answer) <= cap_seconds and answer.headers["x-audio-truncated"] == "true"


@pytest.mark.slow
async def test_the_largest_cap_is_24_minutes(lab: Lab) -> None:
    answer = await lab.post(GENERATE, input="Hello there. " * 400, model="builtin/voice", tts_max_tokens=10**30)
    assert 180 < seconds(answer) < 1440 and answer.headers["x-audio-truncated"] == "false"


async def test_speech_without_a_format_is_labelled_wav_without_an_encoder(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where the service looks for programs
    assert seconds(await lab.post(SPEECH, input="Hello", model="builtin/voice", voice="nova", instructions="x")) > 0.3
    pcm = await lab.post(
        SPEECH, input="Hello", model="builtin/voice", voice={"id": "nova"}, response_format="pcm", speed=2
    )
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
    assert (
        seconds(await lab.post(GENERATE, input="Hello there", model="builtin/voice", stream_format="sse")) > 0.4
    )  # no field of that route
    assert done == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 0, "output_tokens": used, "total_tokens": used},
    }


async def test_built_in_voice_replaces_a_provider_with_its_own_voice_and_format(lab: Lab) -> None:
    answer = await lab.post(SPEECH, input="hello", model="say/status-504", voice="af_bella", response_format="wma")
    assert 0.3 < seconds(answer) < 3 and await lab.spent() == -(-tokens(seconds(answer)) * 10)


async def test_providers_speech_is_cut_repaired_and_charged_by_length(lab: Lab) -> None:
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


async def test_speech_is_retried_once_then_falls_back(lab: Lab) -> None:
    assert seconds(await lab.post(GENERATE, input="hello", model="say/fail-once")) == 2
    assert seconds(await lab.post(GENERATE, input="hello", model="say/status-503")) == 2
    assert [seen.model for seen in lab.upstream.requests] == [
        "fail-once",
        "fail-once",
        "status-503",
        "status-503",
        "ok",
    ]
    assert await lab.spent() == 2 * tokens(2) * 2
