"""The memory of the real process under load; `python -m tests.soak_memory` prints it as it goes."""

from pathlib import Path

import pytest

from tests.soak_memory import KINDS, MOST_MB_AN_HOUR, mb_an_hour, measure, within_bounds


def test_slope_ignores_the_first_samples() -> None:
    warming = [(float(second), 50.0 + second) for second in range(100)]
    flat = [(float(second), 150.0 + second % 2) for second in range(100, 301)]
    assert abs(mb_an_hour(warming + flat)) < 0.5
    leaking = [(seconds, mb + seconds / 1800) for seconds, mb in warming + flat]
    assert 1.5 < mb_an_hour(leaking) < 2.5


@pytest.mark.slow
async def test_load_is_answered_in_bounded_memory(tmp_path: Path) -> None:
    samples, load = await measure(tmp_path, 2.0, lambda line: None)
    assert (
        load.statuses.pop(0, 0) < 3
        and set(load.statuses) <= {200, 201, 204, 400, 404}
        and load.statuses[200] > len(KINDS)
    ), load.statuses
    assert within_bounds(samples) and 10 < samples[-1].used_mb < samples[-1].held_mb


@pytest.mark.soak
@pytest.mark.timeout(2400)
async def test_memory_is_flat_over_30_minutes_of_load(tmp_path: Path) -> None:
    samples, load = await measure(tmp_path, 1800.0)
    used = [(sample.seconds, sample.used_mb) for sample in samples]
    assert mb_an_hour(used) < MOST_MB_AN_HOUR and within_bounds(samples), (used, load.statuses)
