"""The built-in voice: real speech from eSpeak NG, in voices, languages and formats."""

import asyncio
import os
import struct
import sys
from pathlib import Path

import pytest

from svc.builtin.processes import ProcessPool
from svc.builtin.provider import offered
from svc.builtin.voice import VOICES, Spoken, Voice, engine
from svc.errors import ApiError, UpstreamFault
from tests.support.cases import each
from tests.support.voice import TEXT, program, samples, say

PROSE = (
    "The government announced on Tuesday that the new railway between the two largest cities will open next spring, "
    "three years later than planned. Passengers welcomed the decision, although several organisations criticised the "
    "increase in prices. "
) * 8


async def test_speech_is_a_wav_with_the_energy_of_speech(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT)
    heard = samples(sound)
    assert spoken == Spoken(len(heard) / 22_050, False, "audio/wav") and 4 < spoken.seconds < 12
    windows = [sum(map(abs, heard[start : start + 2205])) / 2205 for start in range(0, len(heard) - 2205, 2205)]
    assert max(windows) > 2_000 and sum(window > 300 for window in windows) > len(windows) * 0.6
    assert len({round(window, -2) for window in windows}) > 10


async def test_text_speed_and_voice_change_the_sound(voice: Voice) -> None:
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


@pytest.mark.slow
async def test_every_voice_that_openai_names_sounds_different(voice: Voice) -> None:
    heard = await asyncio.gather(
        *(say(voice, "Hello there", name=name) for name in (*VOICES, "en-gb", "de", "fr-fr+f2"))
    )
    assert all(spoken.seconds > 0.4 for spoken, _ in heard) and len({sound for _, sound in heard}) == len(heard)


@pytest.mark.slow
async def test_a_text_in_another_script_is_spoken_in_its_language(voice: Voice) -> None:
    for text, language in (
        ("Доброе утро, мир", "ru"),
        ("おはようございます", "ja"),
        ("Καλημέρα κόσμε", "el"),
        ("你好世界", "cmn"),
    ):
        (_, by_name), (_, by_language) = await asyncio.gather(say(voice, text), say(voice, text, name=language))
        assert by_name == by_language


@pytest.mark.slow
async def test_a_text_of_three_minutes_is_cut_at_three_minutes(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT * 100)
    assert spoken.truncated and 177 < spoken.seconds <= 180 and len(sound) == 44 + round(spoken.seconds * 22_050) * 2


async def test_unknown_voice_is_refused_and_languages_are_voices(voice: Voice) -> None:
    for name in (*VOICES, "de", "en-gb", "cmn", "fr-fr+f2"):
        assert await voice.named(name) == name
    for name in ("nobody", "", "de+x9", "../../etc/passwd", "en us", "de\n", "-w/tmp/x"):
        with pytest.raises(ApiError) as refused:
            await voice.named(name)
        assert refused.value.error["param"] == "voice"


async def test_voices_have_any_case_and_languages_short_codes(voice: Voice) -> None:
    meant = {
        "Alloy": "alloy",
        "en": "en-us",
        "EN-gb": "en-gb",
        "fr": "fr-fr",
        "fr-FR": "fr-fr",
        "zh": "cmn",
        "zh_CN": "cmn",
    }
    meant |= {"zh-HK": "yue", "pt-BR": "pt-br", "de-AT": "de", "En-GB+F2": "en-gb+f2"}
    assert {name: await voice.named(name) for name in meant} == meant


@pytest.mark.slow
@each("text", [PROSE, TEXT * 20])
async def test_three_minutes_of_ordinary_english_are_some_400_words(voice: Voice, text: str) -> None:
    spoken, _ = await say(voice, text, most_seconds=1_000)
    assert 115 < len(text.split()) / spoken.seconds * 60 < 145


async def test_an_installed_encoder_adds_its_format(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", 'printf ID3; exec od -v -An -tx1 -w1 "-N20"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    voice = Voice(pool)
    assert "mp3" in voice.encoders
    spoken, sound = await say(voice, TEXT, format="mp3")
    assert sound.startswith(b"ID3") and spoken.seconds > 4


async def test_flac_has_its_length_after_an_encoder_that_writes_to_a_pipe(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder that writes a head with no length, as `flac --stdout` does, and the samples behind it."""
    stream_info = bytes(10) + struct.pack(">Q", 22_050 << 44 | 15 << 36) + bytes(16)
    (tmp_path / "head").write_bytes(b"fLaC\x80\0\0\x22" + stream_info)
    program(tmp_path, "flac", f"cat {tmp_path}/head -")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    spoken, sound = await say(Voice(pool), TEXT, format="flac")
    (packed,) = struct.unpack_from(">Q", sound, 18)
    assert packed >> 36 == 22_050 << 8 | 15
    assert packed & (1 << 36) - 1 == (len(sound) - 42) // 2 == round(spoken.seconds * 22_050)


async def test_an_encoder_that_fails_is_one_clear_fault(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UpstreamFault, match="lame cannot encode"):
        await say(Voice(pool), TEXT, format="mp3")


async def test_without_espeak_the_model_is_not_offered(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "voice" in offered()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    assert engine() is None and "voice" not in offered() and "paint" in offered()
    with pytest.raises(ApiError, match="install espeak-ng"):
        await Voice(pool).named("de")
