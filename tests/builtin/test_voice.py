"""The built-in voice: real speech from eSpeak NG, in processes that are bounded and leave nothing behind (contract 9)."""

import array
import asyncio
import contextlib
import os
import signal
import stat
import sys
import tempfile
import time
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.builtin import speak
from svc.builtin.provider import offered
from svc.builtin.voice import VOICES, Spoken, Voice, engine
from svc.builtin.workshop import Workshop
from svc.errors import ApiError, UpstreamFault

TEXT = "The quick brown fox jumps over the lazy dog. She sells sea shells, and everyone agrees that it is so. "


@pytest.fixture
async def workshop() -> AsyncIterator[Workshop]:
    workshop = Workshop("svc.builtin.speak")
    yield workshop
    await workshop.close()


@pytest.fixture
def voice(workshop: Workshop) -> Voice:
    return Voice(workshop)


async def say(
    voice: Voice, text: str, *, name: str = "alloy", speed: float = 1.0, form: str = "wav", most_seconds: float = 180.0
) -> tuple[Spoken, bytes]:
    with tempfile.TemporaryFile() as file:
        spoken = await voice.speak(text, file, voice=name, speed=speed, form=form, most_seconds=most_seconds)
        file.seek(0)
        return spoken, file.read()


def samples(sound: bytes) -> "array.array[int]":
    with tempfile.TemporaryFile() as file:
        file.write(sound)
        file.seek(0)
        with wave.open(file, "rb") as reader:
            assert (reader.getnchannels(), reader.getsampwidth(), reader.getframerate()) == (1, 2, 22_050)
            return array.array("h", reader.readframes(reader.getnframes()))


async def test_it_speaks_a_wav_with_the_energy_of_speech(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT)
    heard = samples(sound)
    assert spoken == Spoken(len(heard) / 22_050, False) and 4 < spoken.seconds < 12
    windows = [sum(map(abs, heard[start : start + 2205])) / 2205 for start in range(0, len(heard) - 2205, 2205)]
    assert max(windows) > 2_000 and sum(window > 300 for window in windows) > len(windows) * 0.6
    assert len({round(window, -2) for window in windows}) > 10


async def test_more_text_speed_and_voice_change_what_is_heard(voice: Voice) -> None:
    (once, first), (thrice, _), (fast, _), (slow, _), (nova, other), (german, _) = await asyncio.gather(
        say(voice, TEXT),
        say(voice, TEXT * 3),
        say(voice, TEXT, speed=4),
        say(voice, TEXT, speed=0.25),
        say(voice, TEXT, name="nova"),
        say(voice, "Guten Morgen", name="de"),
    )
    assert 2.7 < thrice.seconds / once.seconds < 3.1
    assert 3 < once.seconds / fast.seconds < 5 and 3 < slow.seconds / once.seconds < 5
    assert first != other and nova.seconds > 3 and german.seconds > 0.4


async def test_every_voice_that_openai_names_sounds_different(voice: Voice) -> None:
    heard = await asyncio.gather(*(say(voice, "Hello there", name=name) for name in (*VOICES, "en-gb", "de", "fr-fr+f2")))
    assert all(spoken.seconds > 0.4 for spoken, _ in heard) and len({sound for _, sound in heard}) == len(heard)


async def test_a_text_in_another_script_is_spoken_in_its_language(voice: Voice) -> None:
    for text, language in (
        ("Доброе утро, мир", "ru"),
        ("おはようございます", "ja"),
        ("Καλημέρα κόσμε", "el"),
        ("你好世界", "cmn"),
    ):
        (_, by_name), (_, by_language) = await asyncio.gather(say(voice, text), say(voice, text, name=language))
        assert by_name == by_language


async def test_the_cap_cuts_after_a_whole_word(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT * 40, most_seconds=11.25)
    assert spoken.truncated and 10 < spoken.seconds <= 11.25 and len(samples(sound)) == round(spoken.seconds * 22_050)
    # Not in the middle of a word: eSpeak ends with silence.
    assert sum(map(abs, samples(sound)[-1000:])) / 1000 < 60


async def test_a_text_of_three_minutes_is_cut_at_three_minutes(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT * 100)
    assert spoken.truncated and 177 < spoken.seconds <= 180 and len(sound) == 44 + round(spoken.seconds * 22_050) * 2


@pytest.mark.parametrize("text", ["a" * 5_000, "你好。" * 800, "1 " * 4_000, "9" * 3_000, "🙂" * 500, "., ! " * 2_000])
async def test_texts_without_words_or_spaces_end_at_the_cap_too(voice: Voice, text: str) -> None:
    spoken, sound = await say(voice, text, most_seconds=11.25)
    assert spoken.seconds <= 11.25 and len(sound) <= 44 + 11.25 * 22_050 * 2


async def test_control_characters_markup_and_phonemes_are_no_commands(voice: Voice) -> None:
    plain, _ = await say(voice, "hello there")
    controlled, _ = await say(voice, "\x00hello\x01\x07 there\x1b")
    assert abs(plain.seconds - controlled.seconds) < 0.5
    marked, _ = await say(voice, '<speak><break time="60s"/>hello</speak> [[h@l@U]]')
    assert 2 < marked.seconds < 30  # the tags are read out, and make no pause of a minute


async def test_raw_samples_come_at_the_rate_that_openais_clients_expect(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT, form="pcm")
    assert len(sound) / 2 / 24_000 == pytest.approx(spoken.seconds, abs=0.02)
    assert max(array.array("h", sound)) > 5_000


def test_resampling_keeps_the_wave() -> None:
    wave_in = array.array("h", [round(10_000 * ((index % 100) / 50 - 1)) for index in range(22_050)])
    pieces = [wave_in[start : start + 997].tobytes() for start in range(0, len(wave_in), 997)]
    wave_out = array.array("h", b"".join(speak.resampled(iter(pieces), 22_050)))
    assert 24_000 <= len(wave_out) <= 24_200
    assert all(abs(wave_out[160 * block] - wave_in[147 * block]) <= 1 for block in range(149))


async def test_a_voice_that_there_is_not_is_refused_and_languages_are_voices(voice: Voice) -> None:
    for name in (*VOICES, "de", "en-gb", "cmn", "fr-fr+f2"):
        await voice.check(name)
    for name in ("nobody", "", "de+x9", "../../etc/passwd", "en us", "de\n", "-w/tmp/x"):
        with pytest.raises(ApiError) as refused:
            await voice.check(name)
        assert refused.value.error["param"] == "voice"


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


async def test_an_installed_encoder_adds_its_format(tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "lame", 'printf ID3; exec od -v -An -tx1 -w1 "-N20"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    voice = Voice(workshop)
    assert "mp3" in voice.formats
    spoken, sound = await say(voice, TEXT, form="mp3")
    assert sound.startswith(b"ID3") and spoken.seconds > 4


async def test_an_encoder_that_fails_is_one_clear_fault(
    tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UpstreamFault, match="lame cannot encode"):
        await say(Voice(workshop), TEXT, form="mp3")


async def test_the_systems_program_comes_before_the_library(
    tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that answers as espeak-ng does: half a second of a tone for each word."""
    player = """
import sys, struct, wave
if "--voices" in sys.argv:
    print("Pty Language Age/Gender VoiceName File Other"); print(" 5  xx  --/M  Test  xx"); sys.exit()
words = len(sys.stdin.read().split())
data = struct.pack("<2h", 9000, -9000) * 2756 * 2 * words
sys.stdout.buffer.write(b"RIFF" + bytes(20) + struct.pack("<I", 22050) + bytes(16) + data)
"""
    (tmp_path / "player.py").write_text(player)
    program(tmp_path, "espeak-ng", f'exec {sys.executable} -S {tmp_path}/player.py "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert engine() == {"program": str(tmp_path / "espeak-ng")}
    voice = Voice(workshop)
    await voice.check("xx")
    spoken, sound = await say(voice, "one two three four five", name="xx")
    assert spoken.seconds == pytest.approx(2.5, abs=0.01) and max(samples(sound)) == 9000
    cut, _ = await say(voice, "word " * 40, name="xx", most_seconds=11.25)
    assert cut.truncated and cut.seconds == pytest.approx(11.0, abs=0.01)


async def test_without_espeak_the_model_is_not_offered(
    tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "voice" in offered()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("svc.builtin.voice.find_spec", lambda name: None)
    assert engine() is None and "voice" not in offered() and "paint" in offered()
    with pytest.raises(ApiError, match="install espeak-ng"):
        await Voice(workshop).check("de")


# --- the processes


def children() -> set[int]:
    """The helper processes of this one, zombies left out."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(entry.name))
    return found


async def until_children(count: int, within_seconds: float = 5.0) -> set[int]:
    async with asyncio.timeout(within_seconds):
        while len(children()) != count:
            await asyncio.sleep(0.01)
    return children()


BUSY = {"prompt": "seven castles in the city at night, fireworks", "width": 1024, "height": 1024, "variation": 0}


async def test_only_two_run_at_once_the_rest_wait_and_beyond_that_it_is_overloaded() -> None:
    workshop = Workshop("svc.builtin.painter.paint", waiting=3)
    tasks = [asyncio.create_task(workshop.run(BUSY)) for _ in range(6)]
    await asyncio.sleep(0.05)
    with pytest.raises(ApiError) as refused:
        await tasks[5]
    assert refused.value.code == "overloaded" and refused.value.headers["retry-after"] == "5"
    seen = 0
    while not tasks[0].done():
        seen = max(seen, len(children()))
        await asyncio.sleep(0.02)
    assert seen == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until_children(0)
    await workshop.close()


async def test_a_process_that_dies_is_one_fault_and_the_next_order_works() -> None:
    workshop = Workshop("svc.builtin.painter.paint")
    task = asyncio.create_task(workshop.run(BUSY))
    for pid in await until_children(1):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(UpstreamFault) as fault:
        await task
    assert fault.value.kind == "cut"
    small = {**BUSY, "width": 64, "height": 64}
    assert (await workshop.run(small)).startswith(b"\x89PNG")
    with pytest.raises(UpstreamFault):
        await workshop.run({"no": "order"})
    await workshop.close()


async def test_cancelled_work_is_dropped_at_once_whether_it_runs_or_waits() -> None:
    workshop = Workshop("svc.builtin.painter.paint", at_once=1)
    running, waiting = asyncio.create_task(workshop.run(BUSY)), asyncio.create_task(workshop.run(BUSY))
    await until_children(1)
    for task in (waiting, running):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until_children(0, within_seconds=1)
    assert (await workshop.run({**BUSY, "width": 64, "height": 64})).startswith(b"\x89PNG")
    await workshop.close()


async def test_work_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    workshop = Workshop("svc.builtin.speak", seconds=1.0)
    began = time.monotonic()
    with pytest.raises(UpstreamFault) as fault:
        await say(Voice(workshop), TEXT, form="mp3")
    assert fault.value.kind == "timeout" and time.monotonic() - began < 5
    encoder = int((tmp_path / "pid").read_text())
    async with asyncio.timeout(5):
        while Path(f"/proc/{encoder}").exists() and "Z" not in Path(f"/proc/{encoder}/stat").read_text():
            await asyncio.sleep(0.02)
    await workshop.close()


async def test_close_ends_what_runs_and_refuses_the_rest() -> None:
    workshop = Workshop("svc.builtin.painter.paint", at_once=1)
    running, waiting = asyncio.create_task(workshop.run(BUSY)), asyncio.create_task(workshop.run(BUSY))
    await until_children(1)
    await workshop.close()
    assert children() == set()
    with pytest.raises(UpstreamFault):
        await running
    with pytest.raises(ApiError, match="shutting down"):
        await waiting


async def test_a_process_sees_nothing_of_the_environment_but_what_it_needs(
    tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", "env")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SVC_STRIPE_SECRET_KEY", "sk-the-operators-secret")
    monkeypatch.setenv("OLLAMA_KEY", "another-secret")
    _, environment = await say(Voice(workshop), "hi", form="mp3")
    assert b"PATH=" in environment and b"secret" not in environment
