"""Word error rates: sentences of the built-in voice, and real recordings."""

import importlib.util
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.builtin.hearing import Hearing, Recognized
from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice
from tests.support.sounds import wav

pytestmark = pytest.mark.slow
MOST_ERRORS = 0.15
SENTENCES = """
    The train leaves at ten past seven. / Please open the window before you start the engine.
    She sells fresh bread in the small shop near the station. / We need three more chairs for the meeting tomorrow morning.
    Every child in the village knows the name of the old teacher. / The letter arrived a month after it was sent.
    The doctor told him to drink more water and to sleep longer. / I would like a cup of tea with milk and no sugar.
    My brother bought a new bicycle for his daughter last week. / Can you tell me how to get to the airport from here?
    It rained all night, so the river is very high today. / A good answer is short, clear and easy to remember.
    The museum is closed on Monday, but the garden stays open. / The price of coffee has doubled in the last five years.
    They painted the kitchen white and the door dark green. / Our team won the game by two points in the final minute.
    The company plans to build a second factory in the north. / Turn left at the church and walk to the end of the road.
    He lost his keys on the beach and found them the next day. / Nobody expected the concert to last more than three hours.
"""
RECORDINGS = {
    "beckett": "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.",
    "two_cities": """
        It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the
        epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness, it was
        the spring of hope, it was the winter of despair. We had everything before us, we had nothing before us, we were all
        going direct to heaven, we were all going direct the other way. In short, the period was so far like the present
        period, that some of its noisiest authorities insisted on its being received, for good or for evil, in the
        superlative degree of comparison only.
    """,
}


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9' ]", " ", " ".join(text.lower().split())).split()


def distance(said: list[str], found: list[str]) -> int:
    """Return how many words are missing, added or wrong (Levenshtein)."""
    row = [*range(len(found) + 1)]
    for number, word in enumerate(said, 1):
        above, row = row, [number]
        for place, other in enumerate(found, 1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (word != other)))
    return row[-1]


@pytest.fixture
async def ears() -> AsyncIterator[Hearing]:
    pool = ProcessPool("svc.builtin.hear", seconds=600)
    yield Hearing(pool, pool)
    await pool.close()


async def heard(ears: Hearing, content: bytes) -> str:
    options = {"language": "en", "prompt": None, "temperature": 0.0, "words": False}
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(content)
        found = [one async for one in ears.recognize(file, "wav", options, None, "a")]
    return "".join(one["text"] for one in found if not isinstance(one, Recognized))


@pytest.mark.parametrize("count", [6, pytest.param(20, marks=pytest.mark.soak)])
async def test_at_most_15_percent_of_the_words_of_the_built_in_voice_are_wrong(ears: Hearing, count: int) -> None:
    pool = ProcessPool("svc.builtin.speak")
    voice, samples = Voice(pool), b""
    sentences = [sentence.strip() for line in SENTENCES.strip().splitlines() for sentence in line.split("/")]
    assert len(sentences) == 20
    sentences = sentences[:count]
    for sentence in sentences:
        with tempfile.TemporaryFile(buffering=0) as file:
            await voice.speak(sentence, file, voice="alloy", speed=1.0, format="pcm", most_seconds=60.0, account_id="a")
            file.seek(0)
            samples += file.read() + bytes(24_000)  # half a second between them
    await pool.close()
    said = words(" ".join(sentences))
    errors = distance(said, words(await heard(ears, wav(samples, 24_000))))
    print(f"built-in voice: {errors} of {len(said)} words are wrong")
    assert errors <= MOST_ERRORS * len(said)


@pytest.mark.parametrize("name", ["beckett", pytest.param("two_cities", marks=pytest.mark.soak)])
async def test_at_most_15_percent_of_the_words_of_a_recording_are_wrong(ears: Hearing, name: str) -> None:
    spec = importlib.util.find_spec("moonshine_voice")
    assert spec is not None and spec.origin is not None
    said = words(RECORDINGS[name])
    found = words(await heard(ears, (Path(spec.origin).parent / "assets" / f"{name}.wav").read_bytes()))
    errors = distance(said, found)
    print(f"{name}: {errors} of {len(said)} words are wrong")
    assert errors <= MOST_ERRORS * len(said)
