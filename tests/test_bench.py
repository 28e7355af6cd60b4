"""tests/bench.py in its short form: the figures come out, and make sense."""

from pathlib import Path

import pytest

from tests import bench
from tests.support.server import ROOT

NAMES = ["free", "stream-8", "run"]


@pytest.mark.slow
async def test_benchmark_prints_the_cost_of_a_request_and_an_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = await bench.measure_rows(NAMES, [ROOT], tmp_path, rows=10, rounds=1, share=0.02)
    assert list(took) == NAMES
    # Microseconds, wide enough for any machine: a server that answers without working, or works without end, is
    # outside.
    assert 30 < took["free"] < 20_000 and all(1 < took[name] < 5_000 for name in NAMES[1:])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(NAMES) and all("µs" in line for line in printed)
    for name, line in zip(NAMES, printed, strict=True):
        assert all(f"{kind} " in line for kind in bench.ROWS[name].yardsticks)
