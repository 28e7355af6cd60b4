"""The benchmarks in their short form: the figures come out, and make sense."""

from pathlib import Path

import pytest

from svc import cli
from svc.schema import command_connection
from tests import bench, bench_files, bench_wallet
from tests.conftest import Service
from tests.support import bench_fill
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


def test_filled_database_passes_svc_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    with command_connection(tmp_path / "service.db") as tx:
        bench_fill.fill(tx, 3, 2)
    assert cli.main(["check"]) == 0, capsys.readouterr().out
    assert "ok: 3 wallets and 5 ledger rows" in capsys.readouterr().out


async def test_benchmark_of_the_wallet_ends_with_correct_books(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # it makes its database there
    await bench_wallet.main(0.01)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "concurrency   1, 1 account  ",
        "concurrency  64, 64 accounts",
        "concurrency  64, 1 account  ",
    ]


@pytest.mark.slow
async def test_benchmark_of_files_of_projects_stays_within_its_targets(service: Service) -> None:
    figures = await bench_files.measure(service, 1, searches=20)
    assert [name for name, figure, target in figures if figure > target] == [], figures
