"""Transcriptions through HTTP: forms, model servers, money, and the built-in model."""

import asyncio
import io
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pytest

from svc.config import Config
from tests.conftest import Clocks, bearer, serving
from tests.support.cases import each
from tests.support.clients import hearing_folder, needed
from tests.support.late_imports import import_late
from tests.support.loop_clock import hastened
from tests.support.media_lab import Lab
from tests.support.model_media import described
from tests.support.model_server import ModelServer
from tests.support.money import rows, watch
from tests.support.sounds import CONTAINERS, encoded, tone
from tests.support.waiting import until

if TYPE_CHECKING:
    import openai

PATH = "/v1/audio/transcriptions"
MINUTE = 6_000  # micros
NAMES = (
    *("ok", "usage-seconds-1", "usage-seconds-0", "usage-seconds-9999", "odd-usage", "json-for-stream", "fail-once"),
    *("html-200", "error-200", "status-400", "status-401", "cut-head", "cut-after-3-chunks", "slow-300ms", "silent"),
)
TOKENS = ("tokens+usage-tokens-40", "tokens+usage-tokens-999999", "tokens")


def catalog(base_url: str) -> str:
    text = f'[[providers]]\nname = "ears"\nbase_url = "{base_url}"\napi_key = "sk-ears-of-the-operator"\ntimeout_seconds = 3\n'
    for name in NAMES:
        text += f'[[providers.models]]\nid = "{name}"\nkind = "transcription"\nmicros_per_audio_minute = {MINUTE}\n'
    for name in TOKENS:
        prices = "input_micros_per_million_tokens = 6_000_000\noutput_micros_per_million_tokens = 10_000_000\n"
        text += f'[[providers.models]]\nid = "{name}"\nkind = "transcription"\n{prices}'
    text += f'[[providers]]\nname = "patient"\nbase_url = "{base_url}"\ntimeout_seconds = 60\n'
    return text + '[[providers.models]]\nid = "free"\nkind = "transcription"\n'


class Ears(Lab):
    async def send(self, model: str | None, content: bytes | None = None, /, **fields: Any) -> httpx.Response:
        fields = fields if model is None else {"model": model, **fields}
        files = {"file": ("speech.wav", tone(2) if content is None else content)}
        return await self.service.client.post(PATH, files=files, data=fields, headers=self.headers)


@pytest.fixture
async def ears(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Ears]:
    async with ModelServer() as upstream:
        (tmp_path / "catalog.toml").write_text(catalog(upstream.base_url))
        async with serving(replace(config, catalog=tmp_path / "catalog.toml"), clocks) as service:
            signed_up = await service.sign_up()
            headers = bearer((await service.make_key(bearer(signed_up["access_token"])))["key"])
            watch(service.config.data_dir / "service.db")
            ears = Ears(service, upstream, signed_up["user"]["id"], headers)
            await ears.fund(1_000_000)
            yield ears


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/event-stream", answer.text
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1]]


def openai_client(ears: Ears) -> "openai.AsyncOpenAI":
    import_late("openai")
    import openai

    key = ears.headers["authorization"].removeprefix("Bearer ")
    base_url = f"{ears.service.config.base_url}/v1"
    return openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=ears.service.client)


def refused(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def test_model_is_listed_with_its_kind_and_price(ears: Ears) -> None:
    listed = (await ears.service.client.get("/v1/models", headers=ears.headers)).json()["data"]
    found = {model["id"]: (model["kind"], model["pricing"]) for model in listed}
    assert found["ears/ok"] == ("transcription", {"micros_per_audio_minute": MINUTE})
    assert found["builtin/whisper-tiny"] == ("transcription", {"micros_per_audio_minute": 0})


async def test_first_model_of_the_catalog_is_the_default(ears: Ears) -> None:
    assert (await ears.send(None)).json() == {"text": "Hello, world!"}
    assert ears.upstream.requests[-1].model == "ok"


async def test_file_and_fields_reach_the_model_server(ears: Ears) -> None:
    content = tone(2)
    answer = await ears.send(
        "ears/ok", content, language="en", prompt="Ada", temperature="0.2", x_extra="1", api_base="x"
    )
    text = "Hello, world!"
    assert answer.json() == {"text": text} and answer.headers["x-service-cost-micros"] == str(MINUTE * 2 // 60)
    seen = ears.upstream.requests[-1]
    fields = {"language": "en", "prompt": "Ada", "temperature": "0.2", "x_extra": "1", "response_format": "json"}
    assert seen.path == PATH and seen.body == {**fields, "model": "ok", "file": described(content)}
    assert seen.headers["authorization"] == "Bearer sk-ears-of-the-operator"
    with_words = {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]}
    answer = await ears.send("ears/ok", content, **with_words)
    assert answer.json() == {"text": text, "language": "english", "x_unknown": 1}
    seen = ears.upstream.requests[-1].body
    assert (seen["timestamp_granularities[]"], seen["response_format"]) == (["word", "segment"], "verbose_json")


async def test_transcript_that_a_shutdown_finds_whole_is_sent_and_paid(ears: Ears) -> None:
    db, held, go_on = ears.service.state["db"], threading.Event(), threading.Event()
    asking = asyncio.create_task(ears.send("ears/slow-300ms", stream="true"))
    await until(lambda: ears.upstream.requests)
    writing = asyncio.ensure_future(db.write(lambda tx: held.set() or go_on.wait(20)))
    await until(held.is_set)
    await until(lambda: db.waiting()[0])  # the settlement waits for the writer
    ears.service.state["drain"].begin()
    go_on.set()
    await writing
    *deltas, done = events(await asking)
    assert deltas and done == {"type": "transcript.text.done", "text": "Hello, world!"}
    database = ears.service.config.data_dir / "service.db"
    assert rows(database, "SELECT amount_micros FROM ledger WHERE kind = 'debit'") == [(-MINUTE * 2 // 60,)]


async def test_each_format_of_a_model_server_reaches_the_caller(ears: Ears) -> None:
    text = "Hello, world!"
    answer = await ears.send("ears/ok", response_format="text")
    assert (answer.text, answer.headers["content-type"]) == (f"{text}\n", "text/plain; charset=utf-8")
    answer = await ears.send("ears/ok", response_format="srt")
    assert answer.text == f"1\n00:00:00,000 --> 00:00:02,000\n{text}\n"
    for model in ("ok", "json-for-stream"):
        *deltas, done = events(await ears.send(f"ears/{model}", stream="true"))
        assert {one["type"] for one in deltas} == {"transcript.text.delta"} and done["type"] == "transcript.text.done"
        assert "".join(one["delta"] for one in deltas) == done["text"] == text
    assert len(deltas) == 1 and await ears.spent() == 4 * MINUTE * 2 // 60


TEXT, STREAM = {"response_format": "text"}, {"stream": "true"}


@each(
    ("model", "seconds", "cost", "formats"),
    [
        ("ok", 2.0, MINUTE * 2 // 60, [{}, TEXT, STREAM]),
        ("ok", 2.1, MINUTE * 3 // 60, [{}]),  # a started second is whole
        ("ok", 0.1, MINUTE // 60, [STREAM]),
        ("usage-seconds-1", 2, MINUTE // 60, [TEXT]),
        ("usage-seconds-0", 2, 0, [STREAM]),
        ("usage-seconds-9999", 2, MINUTE * 2 // 60, [{}, STREAM]),  # never above the hold
        ("odd-usage", 2, MINUTE * 2 // 60, [TEXT, STREAM]),
        ("tokens+usage-tokens-40", 2, 40 * 6 + 5 * 10, [{}, STREAM]),
        ("tokens+usage-tokens-999999", 2, 2 * 50 * 6 + 3 * 16 * 10, [TEXT]),  # the hold
    ],
)
async def test_cost_is_that_of_the_usage_or_of_the_measured_length(
    ears: Ears, model: str, seconds: float, cost: int, formats: list[dict[str, str]]
) -> None:
    before = await ears.spent()
    for fields in formats:
        assert (await ears.send(f"ears/{model}", tone(seconds), **fields)).status_code == 200
    assert await ears.spent() - before == len(formats) * cost


async def test_ledger_names_the_seconds(ears: Ears) -> None:
    await ears.send("ears/ok", tone(3))
    (row,) = (await ears.service.client.get("/billing/ledger?limit=1", headers=ears.headers)).json()["data"]
    assert (row["amount_micros"], row["description"]) == (-MINUTE * 3 // 60, "ears/ok: 3 s of audio")


async def test_length_is_that_of_the_decoded_audio_in_each_container(ears: Ears) -> None:
    for name in CONTAINERS:
        answer = await ears.send("ears/ok", encoded(tone(5), name))
        assert MINUTE * 5 // 60 <= int(answer.headers["x-service-cost-micros"]) <= MINUTE * 6 // 60, (name, answer.text)


async def test_header_that_lies_about_the_length_costs_the_same(ears: Ears) -> None:
    content = bytearray(encoded(tone(5), "flac"))
    content[21:26] = b"\xf0\x00\x00\x3e\x80"  # one second of samples
    answer = await ears.send("ears/ok", bytes(content))
    assert answer.headers["x-service-cost-micros"] == str(MINUTE * 5 // 60)


async def test_without_the_extra_usual_files_are_measured_and_the_built_in_model_is_unknown(
    ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.builtin.hearing.is_installed", lambda: False)
    for name in ("wav", "mp3", "ogg", "flac"):
        answer = await ears.send("ears/ok", encoded(tone(5), name))
        assert MINUTE * 5 // 60 <= int(answer.headers["x-service-cost-micros"]) <= MINUTE * 6 // 60, name
    for name in ("webm", "m4a"):
        assert refused(await ears.send("ears/ok", encoded(tone(5), name))) == (400, "invalid_value", "file")
        assert (await ears.send("patient/free", encoded(tone(5), name))).status_code == 200
    await ears.service.state["reload"]()
    assert refused(await ears.send("builtin/whisper-tiny")) == (404, "model_not_found", "model")


@each(
    ("fields", "expected"),
    [
        ({"response_format": "docx"}, (400, "invalid_value", "response_format")),
        ({"response_format": "srt", "stream": "true"}, (400, "unsupported_value", "response_format")),
        ({"stream": "perhaps"}, (400, "invalid_value", "stream")),
        ({"temperature": "hot"}, (400, "invalid_value", "temperature")),
        ({"temperature": "nan"}, (400, "invalid_value", "temperature")),
        ({"temperature": "1.1"}, (400, "invalid_value", "temperature")),
        ({"language": "12"}, (400, "invalid_value", "language")),
        ({"prompt": "a" * 32_001}, (400, "invalid_value", "prompt")),
        ({"prompt": "a" * 70_000}, (413, "PAYLOAD_TOO_LARGE", None)),
        ({"timestamp_granularities[]": "letter"}, (400, "invalid_value", "timestamp_granularities[0]")),
        ({"model": "builtin/echo"}, (400, "invalid_value", "model")),
        ({"model": "no/such"}, (404, "model_not_found", "model")),
    ],
)
async def test_wrong_field_is_named(ears: Ears, fields: dict[str, str], expected: tuple[int, str, str]) -> None:
    assert refused(await ears.send(None, **{"model": "ears/ok", **fields})) == expected
    assert ears.upstream.requests == [] and await ears.spent() == 0


def video_without_sound() -> bytes:
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as written:
        stream = written.add_stream("mpeg4", rate=24, width=64, height=64, pix_fmt="yuv420p")
        written.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        written.mux(stream.encode(None))
    return file.getvalue()


HOSTILE = [
    b"",
    b"#EXTM3U\nfile:///etc/passwd",
    b"ffconcat version 1.0\nfile /etc/passwd",
    b"RIFF\x00\x00\x00\x00WAVE",
    b"RIFF\xff\xff\xff\xffWAVEfmt " + bytes(200),
    b"\x00\x00\x00\x18ftypM4A " + bytes(2_000),
    b"\x1aE\xdf\xa3" + b"\xff" * 2_000,
    b"OggS" + bytes(500),
    b"ID3" + b"\x7f" * 500,
    b"<html>no audio</html>",
    bytes(100_000),
    encoded(tone(1), "flac")[:60],
    video_without_sound(),
    encoded(tone(1), "m4a")[:-2_000],
]


@each("content", HOSTILE)
async def test_hostile_file_is_a_clear_400(ears: Ears, content: bytes) -> None:
    await refused_as_a_file(ears, "ears/ok", content)


@pytest.mark.slow
@each("content", HOSTILE)
async def test_built_in_model_refuses_hostile_files(ears: Ears, content: bytes) -> None:
    await refused_as_a_file(ears, "builtin/whisper-tiny", content)


async def refused_as_a_file(ears: Ears, model: str, content: bytes) -> None:
    answer = await ears.send(model, content)
    assert refused(answer) == (400, "invalid_value", "file"), answer.text
    assert ears.upstream.requests == [] and await ears.spent() == 0


async def test_only_forms_with_one_file_are_accepted(ears: Ears) -> None:
    async def post(
        content: bytes, content_type: str = "multipart/form-data; boundary=b", **more: str
    ) -> httpx.Response:
        headers = {**ears.headers, "content-type": content_type, **more}
        return await ears.service.client.post(PATH, content=content, headers=headers)

    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    assert refused(await post(b"{}", "application/json")) == (415, "unsupported_media_type", None)
    assert refused(await post(b"", "multipart/form-data")) == (415, "unsupported_media_type", None)
    assert refused(await post(b"--b--", **{"content-encoding": "gzip"})) == (415, "unsupported_media_type", None)
    assert refused(await post(b"--b--")) == (400, "missing_field", "file")
    assert (
        refused(await post(b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--b--'))[1]
        == "missing_field"
    )
    assert refused(await post(b"")) == (400, "invalid_request", None)
    assert refused(await post(file)) == (400, "invalid_request", None)  # it ends in the middle
    assert refused(await post(file + file + b"--b--")) == (400, "invalid_value", "file")
    assert refused(await post(b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--")) == (
        400,
        "invalid_request",
        None,
    )
    assert refused(await post(b"--b\r\nX: " + b"y" * 5_000)) == (400, "invalid_request", None)
    many = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * 101
    assert refused(await post(many + b"--b--")) == (400, "invalid_request", None)
    wrong = b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n\xff\r\n' + file + b"--b--"
    assert refused(await post(wrong)) == (400, "invalid_value", "prompt")


async def test_file_of_25_mib_is_the_largest(ears: Ears) -> None:
    content = tone(60)
    content += bytes(25 * 1024 * 1024 - len(content))
    assert (await ears.send("patient/free", content)).status_code == 200
    assert ears.upstream.requests[-1].body["file"] == described(content)
    assert refused(await ears.send("patient/free", content + b"\0")) == (413, "PAYLOAD_TOO_LARGE", "file")
    assert list(ears.service.config.data_dir.glob("tmp*")) == []


async def test_token_and_funds_are_required(ears: Ears) -> None:
    files = {"file": ("a.wav", tone(60))}
    assert (await ears.service.client.post(PATH, files=files)).status_code == 401
    poor = await ears.service.bearer()
    answer = await ears.service.client.post(PATH, files=files, data={"model": "ears/ok"}, headers=poor)
    assert refused(answer)[:2] == (402, "insufficient_funds") and ears.upstream.requests == []


@each(
    ("model", "expected"),
    [
        ("html-200", (502, "upstream_invalid_response")),
        ("error-200", (502, "upstream_error")),
        ("status-401", (502, "upstream_error")),
        ("cut-head", (502, "upstream_unreachable")),
        ("silent", (504, "upstream_timeout")),
    ],
)
async def test_fault_of_the_model_server_costs_nothing(ears: Ears, model: str, expected: tuple[int, str]) -> None:
    for fields in ({}, {"stream": "true"}):
        sending = ears.send(f"ears/{model}", **fields)
        assert refused(await (hastened(sending) if model == "silent" else sending))[:2] == expected
    assert await ears.spent() == 0


async def test_cut_stream_ends_with_an_error_and_costs_nothing(ears: Ears) -> None:
    *deltas, last = events(await ears.send("ears/cut-after-3-chunks", stream="true"))
    assert [one["type"] for one in deltas] == ["transcript.text.delta"] * 3
    assert last["error"]["type"] == "upstream_error" and await ears.spent() == 0


async def test_failed_attempt_is_repeated_once(ears: Ears) -> None:
    assert (await ears.send("ears/fail-once")).status_code == 200
    assert len(ears.upstream.requests) == 2 and await ears.spent() == MINUTE * 2 // 60


async def test_repeat_with_the_same_key_and_form_is_answered_from_the_first(ears: Ears) -> None:
    ears.headers["idempotency-key"] = "once"
    first, again = await ears.send("ears/ok"), await ears.send("ears/ok")  # each has its own boundary
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again.headers["x-service-replayed"] == "true" and len(ears.upstream.requests) == 1
    assert refused(await ears.send("ears/ok", tone(3)))[:2] == (409, "idempotency_mismatch")
    ears.headers["idempotency-key"] = "stream"
    first, again = await ears.send("ears/ok", stream="true"), await ears.send("ears/ok", stream="true")
    assert events(first) == events(again) and again.headers["x-service-replayed"] == "true"
    assert await ears.spent() == 2 * MINUTE * 2 // 60


@pytest.mark.slow
async def test_built_in_model_answers_in_every_format(ears: Ears) -> None:
    sentence = "Please open the window before you start the engine."
    spoken = await ears.post("/v1/audio/generate", input=sentence, model="builtin/voice")
    create = openai_client(ears).audio.transcriptions.create
    asked: dict[str, Any] = {"file": ("speech.wav", spoken.content), "model": "builtin/whisper-tiny"}
    found = (await ears.send("builtin/whisper-tiny", spoken.content)).json()
    assert found == {"text": sentence, "usage": {"type": "duration", "seconds": found["usage"]["seconds"]}}
    *deltas, done = [one async for one in await create(**asked, stream=True)]
    assert {one.type for one in deltas} == {"transcript.text.delta"} and done.type == "transcript.text.done"
    assert "".join(one.delta for one in deltas).strip() == done.text == sentence
    fields = {"response_format": "verbose_json", "timestamp_granularities": ["word", "segment"], "language": "en"}
    detailed = (await create(**asked, **fields)).to_dict()
    assert (detailed["task"], detailed["language"], detailed["text"]) == ("transcribe", "en", sentence)
    assert [word["word"] for word in detailed["words"]] == sentence.split()
    times = [time for word in detailed["words"] for time in (word["start"], word["end"])]
    assert times == sorted(times) and times[0] >= 0 and times[-1] <= detailed["duration"] + 0.1
    assert [segment["id"] for segment in detailed["segments"]] == [*range(len(detailed["segments"]))]
    vtt = await create(**asked, response_format="vtt")
    assert vtt.startswith("WEBVTT\n\n00:00:0") and sentence in " ".join(vtt.split())
    import openai

    with pytest.raises(openai.BadRequestError, match="language must be one of") as refusal:
        await create(**asked, language="de")
    assert refused(refusal.value.response) == (400, "unsupported_value", "language")
    spoken_cost = int(spoken.headers["x-service-cost-micros"])
    assert await ears.spent() == spoken_cost  # it is free


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "sentence", "fields"),
    [
        ("es", "El libro está encima de la mesa de la cocina.", {}),  # the model recognizes it
        pytest.param(
            "de",
            "Der Zug nach Hamburg kommt heute eine Stunde später an.",
            {"language": "de"},
            marks=pytest.mark.soak,
        ),
    ],
    ids=["es", "de"],
)
async def test_folder_of_the_operator_hears_the_languages_of_its_model(
    config: Config, clocks: Clocks, language: str, sentence: str, fields: dict[str, str]
) -> None:
    async with serving(config, clocks, f"[hearing]\nfolder = '{needed(hearing_folder)}'\n") as service:
        signed_up = await service.sign_up()
        ears = Ears(service, ModelServer(), signed_up["user"]["id"], bearer(signed_up["access_token"]))
        await ears.fund(1_000_000)
        spoken = await ears.post("/v1/audio/generate", input=sentence, voice=language)
        detailed = {"response_format": "verbose_json", **fields}
        found = (await ears.send("builtin/whisper-tiny", spoken.content, **detailed)).json()
        assert found["language"] == language, found
        wanted, heard = ({*re.findall(r"\w+", text.lower())} for text in (sentence, found["text"]))
        assert len(wanted & heard) >= 0.6 * len(wanted), found["text"]
        answer = await ears.send("builtin/whisper-tiny", spoken.content, language="xx")
        assert refused(answer) == (400, "unsupported_value", "language")


async def test_openai_client_reads_every_format_and_the_stream(ears: Ears) -> None:
    create = openai_client(ears).audio.transcriptions.create
    asked: dict[str, Any] = {"file": ("speech.wav", tone(2)), "model": "ears/ok"}
    assert (await create(**asked)).text == "Hello, world!"
    assert "Hello, world!" in await create(**asked, response_format="text")
    assert "-->" in await create(**asked, response_format="srt")
    detailed = await create(**asked, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert detailed.text == "Hello, world!"
    events = [one async for one in await create(**asked, stream=True)]
    assert [one.type for one in events][-2:] == ["transcript.text.delta", "transcript.text.done"]
    assert events[-1].text == "Hello, world!"


async def test_own_model_server_is_asked_and_costs_nothing(ears: Ears) -> None:
    own = {"name": "own", "base_url": ears.upstream.base_url, "models": [{"id": "ok", "kind": "transcription"}]}
    assert (await ears.service.client.post("/user/providers", json=own, headers=ears.headers)).status_code == 201
    assert (await ears.send("own/ok", api_base="kept")).json() == {"text": "Hello, world!"}
    assert ears.upstream.requests[-1].body["api_base"] == "kept" and await ears.spent() == 0


@pytest.mark.slow
async def test_nothing_is_heard_in_silence(ears: Ears) -> None:
    assert (await ears.send("builtin/whisper-tiny", tone(0.2)[:44] + bytes(64_000))).json()["text"] == ""
