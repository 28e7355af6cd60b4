"""The speaker: text in chunks, spoken by eSpeak NG up to the cap, into files of each format."""

import array
import os
import sys
import time
from pathlib import Path

import pytest

from svc.builtin import speak
from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice, engine
from tests.support.cases import each
from tests.support.voice import TEXT, program, samples, say


def test_resampling_keeps_the_wave() -> None:
    wave_in = array.array("h", [round(10_000 * ((index % 100) / 50 - 1)) for index in range(22_050)])
    wave_out = array.array("h", speak.resampled(wave_in.tobytes(), 22_050))
    assert len(wave_out) == 24_000
    assert all(abs(wave_out[160 * block] - wave_in[147 * block]) <= 1 for block in range(149))


async def test_limit_cuts_after_a_whole_word(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT * 40, most_seconds=11.25)
    assert spoken.truncated and 10 < spoken.seconds <= 11.25 and len(samples(sound)) == round(spoken.seconds * 22_050)
    # Not in the middle of a word: eSpeak ends with silence.
    assert sum(map(abs, samples(sound)[-1000:])) / 1000 < 60


@pytest.mark.slow
@each("text", ["a" * 5_000, "你好。" * 800, "1 " * 4_000, "9" * 3_000, "🙂" * 500, "., ! " * 2_000])
async def test_texts_without_words_or_spaces_end_at_the_limit(voice: Voice, text: str) -> None:
    spoken, sound = await say(voice, text, most_seconds=11.25)
    assert spoken.seconds <= 11.25 and len(sound) <= 44 + 11.25 * 22_050 * 2


async def test_control_characters_markup_and_phonemes_are_plain_text(voice: Voice) -> None:
    plain, _ = await say(voice, "hello there")
    controlled, _ = await say(voice, "\x00hello\x01\x07 there\x1b")
    assert abs(plain.seconds - controlled.seconds) < 0.5
    marked, _ = await say(voice, '<speak><break time="60s"/>hello</speak> [[h@l@U]]')
    assert 2 < marked.seconds < 30  # the tags are read out, and make no pause of a minute


async def test_raw_samples_have_the_rate_of_openai(voice: Voice) -> None:
    spoken, sound = await say(voice, TEXT, format="pcm")
    assert len(sound) / 2 / 24_000 == pytest.approx(spoken.seconds, abs=0.02)
    assert max(array.array("h", sound)) > 5_000


async def test_system_program_is_preferred_to_the_library(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
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
    voice = Voice(pool)
    await voice.named("xx")
    spoken, sound = await say(voice, "one two three four five", name="xx")
    assert spoken.seconds == pytest.approx(2.5, abs=0.01) and max(samples(sound)) == 9000
    cut, _ = await say(voice, "word " * 40, name="xx", most_seconds=11.25)
    assert cut.truncated and cut.seconds == pytest.approx(11.0, abs=0.01)


@each("text", ["." * 100_000, ". " * 50_000, "\n" * 100_000, "。" * 100_000, " " * 100_000, "?!" * 50_000])
def test_long_run_of_stops_is_split_in_linear_time_without_loss(text: str) -> None:
    began = time.thread_time()
    chunks = list(speak.chunks(text))
    assert time.thread_time() - began < 1 and "".join(chunks) == text and max(map(len, chunks)) <= 400


def test_a_text_is_split_between_sentences() -> None:
    assert list(speak.chunks("One. " * 100)) == ["One. " * 80, "One. " * 20]
    assert list(speak.chunks("今天。" * 200)) == ["今天。" * 133, "今天。" * 67]
