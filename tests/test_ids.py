"""svc/ids.py: ids that sort by time, tokens without a likelier character, timestamps to the millisecond."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.ids import BASE62, made_at, new_id, random_base62, timestamp

MILLIS = st.integers(0, 4_000_000_000_000)
CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def millis(made: str) -> int:
    """The time of an id, the first 48 of its 130 bits."""
    number = 0
    for character in made.partition("_")[2]:
        number = number * 32 + CROCKFORD.index(character)
    return number >> 82


def test_ids_sort_by_creation_with_any_clock() -> None:
    now = millis(new_id("key")) // 1000 + 1  # ahead of all that this process has made
    made = [new_id("key", seconds) for seconds in (now, now, now - 3_600, 0, now, now + 0.002)]
    assert made == sorted(made) and len(set(made)) == len(made)
    assert [millis(each) - now * 1000 for each in made] == [0, 0, 0, 0, 0, 2]


def test_ids_of_concurrent_threads_never_decrease() -> None:
    before = new_id("key")
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda _: [new_id("key", 0) for _ in range(2000)], range(4)))
    assert all(run == sorted(run) and run[0] > before for run in runs)
    assert len({made for run in runs for made in run}) == 8000


def test_id_is_its_prefix_and_26_characters_and_unique() -> None:
    ids = {new_id("user", 1_790_000_000.0) for _ in range(2000)}
    assert len(ids) == 2000
    assert all(re.fullmatch(r"user_[0-9a-hjkmnp-tv-z]{26}", made) for made in ids)


@given(MILLIS)
def test_id_shows_when_it_was_made(at: int) -> None:
    made = new_id("key", at / 1000)
    assert made_at(made, "key") == (millis(made) + 1) / 1000
    for wrong in (made[:-1], made + "0", made[:-1] + "u", made.upper(), f"x{made}", "key_", "", made + "\n"):
        assert made_at(wrong, "key") is None
    assert made_at(made, "user") is None


def test_random_base62_has_the_length_and_uniform_characters() -> None:
    assert [len(random_base62(length)) for length in (0, 1, 36, 43, 1000)] == [0, 1, 36, 43, 1000]
    counts = Counter(random_base62(124_000))
    assert set(counts) == set(BASE62)
    assert max(abs(number - 2000) for number in counts.values()) < 300  # nearly seven standard deviations


def test_random_base62_takes_one_read_of_the_random_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read for each character took 24 microseconds more, three times in an answer of Responses."""
    reads: list[int] = []
    monkeypatch.setattr("os.urandom", lambda size: reads.append(size) or bytes(range(size)))
    assert random_base62(62) == BASE62 and reads == [124]


@given(MILLIS)
def test_a_timestamp_shows_the_millisecond(millis: int) -> None:
    shown = timestamp(millis / 1000)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown)
    assert datetime.fromisoformat(shown) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


def test_timestamps_from_floats_keep_milliseconds() -> None:
    for millis in range(
        2_150_000_000_000, 2_150_000_005_000
    ):  # of a quarter of 2038's milliseconds the float is a little less
        assert timestamp(millis / 1000)[-4:-1] == f"{millis % 1000:03}"


def test_timestamps_truncate_to_milliseconds() -> None:
    assert timestamp(1.9999) == "1970-01-01T00:00:01.999Z"
    assert timestamp(1) == "1970-01-01T00:00:01.000Z"
