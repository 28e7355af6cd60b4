"""Every attack in its short form: nobody else notices it. `python -m tests.attacks` plays the long forms and prints figures."""

from pathlib import Path

import pytest

from tests.attacks.lab import load, measure

ATTACKS = load()
# Twice to thrice what is measured on a machine that does nothing else.
MOST_STALL_MS = 150
MOST_WRITE_MS = 5000
MOST_MEMORY_MB = 400


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ATTACKS))
async def test_an_attack_stops_nobody_else(name: str, tmp_path: Path) -> None:
    found = await measure(ATTACKS[name], tmp_path, short=True)
    assert not found.over_time and found.failures == 0, found
    assert found.stall_ms < MOST_STALL_MS and found.write_ms < MOST_WRITE_MS and found.memory_mb < MOST_MEMORY_MB, found
    assert "500" not in found.statuses, found
