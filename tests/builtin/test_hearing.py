"""Speech recognition in helper processes: places, waits, weights, and a file that is too long."""

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from svc.builtin import hearing
from svc.builtin.hear import RefusedAudio, samples
from svc.builtin.hearing import Hearing, Recognized
from svc.builtin.processes import ProcessPool
from svc.errors import ApiError, UpstreamFault
from tests.support.cases import each
from tests.support.sounds import encoded, tone

OPTIONS: dict[str, Any] = {"language": None, "prompt": None, "temperature": 0.0, "words": False}


@pytest.fixture
async def ears() -> AsyncIterator[Hearing]:
    waiting = ProcessPool("svc.builtin.hear", seconds=100, wait_seconds=0.3, waits_for_others=True)
    pools = [waiting, ProcessPool("svc.builtin.hear")]
    yield Hearing(*pools)
    for pool in pools:
        await pool.close()


def stored(content: bytes) -> BinaryIO:
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    file.write(content)
    return file


async def heard(ears: Hearing, content: bytes, account_id: str = "a", folder: Path | None = None) -> Recognized:
    with stored(content) as file:
        *_, last = [one async for one in ears.recognize(file, "wav", OPTIONS, folder, account_id)]
    assert isinstance(last, Recognized)
    return last


async def test_length_is_that_of_the_samples(ears: Hearing) -> None:
    for name, container in (("wav", "wav"), ("m4a", "mov"), ("webm", "matroska")):
        with stored(encoded(tone(3), name)) as file:
            assert 3 <= await ears.seconds(file, container, "a") < 3.1


@each("container", ["wav", "mp3"])
def test_audio_over_its_limit_is_refused(container: str) -> None:
    sound = encoded(tone(3), container)
    with pytest.raises(RefusedAudio, match=r"longer than 0\.04 minutes") as refused:
        list(samples(io.BytesIO(sound), container, 2.4))
    assert refused.value.args[0] == "PAYLOAD_TOO_LARGE"


@pytest.mark.slow
async def test_audio_over_30_minutes_is_refused(ears: Hearing) -> None:
    minute = encoded(tone(60)[:44] + bytes(60 * 32_000), "mp3")
    with stored(minute * 31) as file, pytest.raises(ApiError, match="longer than 30 minutes") as refused:
        _ = [one async for one in ears.recognize(file, "mp3", OPTIONS, None, "a")]
    assert refused.value.status == 413


@pytest.mark.slow
async def test_weights_that_are_not_those_of_the_package_are_used_only_in_a_folder_of_the_operator(
    ears: Hearing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(UpstreamFault, match="not those of its package"):
        await heard(ears, tone(1))
    assert await heard(ears, tone(1), folder=hearing.weights()) == Recognized(1.0, "en")


@pytest.mark.slow
async def test_two_accounts_are_heard_at_once_and_a_third_call_waits_only_so_long(ears: Hearing) -> None:
    begun = [asyncio.create_task(heard(ears, tone(1), account_id)) for account_id in "ab"]
    while ears._pool.at_work() < 2:
        await asyncio.sleep(0.01)
    for account_id in "ac":  # an account has one place
        with pytest.raises(ApiError) as refused:
            await heard(ears, tone(1), account_id)
        assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded")
    for task in begun:
        assert (await task).seconds == 1
    assert (await heard(ears, tone(1), "c")).seconds == 1


async def test_work_that_takes_too_long_is_a_timeout() -> None:
    pool = ProcessPool("svc.builtin.hear", seconds=0.05)
    with pytest.raises(ApiError, match="Send a part of the audio") as refused:
        await heard(Hearing(pool, pool), tone(1))
    assert (refused.value.status, refused.value.code) == (504, "upstream_timeout")
    await pool.close()


async def test_file_that_cannot_be_measured_in_time_is_refused() -> None:
    pool = ProcessPool("svc.builtin.hear", seconds=0.05)
    with stored(tone(1)) as file, pytest.raises(ApiError) as refused:
        await Hearing(pool, pool).seconds(file, "wav", "a")
    assert (refused.value.status, refused.value.code) == (400, "invalid_value")
    await pool.close()


async def test_caller_that_leaves_ends_the_process(ears: Hearing) -> None:
    task = asyncio.create_task(heard(ears, tone(1)))
    while not ears._pool.at_work():
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert ears._pool.at_work() == 0


def test_helper_reads_only_the_container_of_the_first_bytes() -> None:
    for text in (b"#EXTM3U\nfile:///etc/passwd\n", b"ffconcat version 1.0\nfile /etc/passwd\n", tone(1)):
        with pytest.raises(RefusedAudio, match="damaged"):
            list(samples(io.BytesIO(text), "matroska", 10))
