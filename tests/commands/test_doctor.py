"""`svc doctor` as a whole: a line for each finding, a status, a bounded time."""

import socket
from pathlib import Path

import pytest

from svc import cli
from svc.admin.health import Finding
from svc.commands import doctor


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DATA_DIR": str(tmp_path / "data"), "PORT": "0", "DISCOVER": "0"}.items():
        monkeypatch.setenv(f"SVC_{name}", value)


def test_status_is_0_without_faults_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert {line[:6].strip() for line in lines} <= {"ok", "look"} and last == f"nothing of {len(lines)} is wrong"
    assert list(tmp_path.iterdir()) == []


def test_status_is_1_with_a_fault_and_all_checks_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "catalog.toml").write_text('[[providers]]\nname = "Not a slug"\n')
    monkeypatch.setenv("SVC_CATALOG", str(tmp_path / "catalog.toml"))
    assert cli.main(["doctor"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("wrong ") for line in lines) == 1 and last == f"1 of {len(lines)} are wrong"
    assert any(line.startswith("ok    port: ") for line in lines)


def test_silent_server_costs_one_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        (tmp_path / "catalog.toml").write_text(
            "".join(f'[[providers]]\nname = "a{n}"\nbase_url = "{url}"\n' for n in range(3))
        )
        monkeypatch.setenv("SVC_CATALOG", str(tmp_path / "catalog.toml"))
        monkeypatch.setattr(doctor, "DEADLINE_SECONDS", 0.5)
        assert cli.main(["doctor"]) == 1
    silent_ones = [line for line in capsys.readouterr().out.splitlines() if "no answer within 0.5 seconds" in line]
    assert sum("provider a" in line for line in silent_ones) == 3  # others may take as long on a busy machine


def test_finding_is_one_line_that_begins_with_its_grade() -> None:
    assert doctor.line_of(Finding("ok", "disk", "there is room")) == "ok    disk: there is room"


def test_foreign_text_cannot_control_the_terminal() -> None:
    finding = Finding("wrong", "provider", "odd\n\x1b[2Jok    all is well")
    assert doctor.line_of(finding) == "wrong provider: odd\ufffd\ufffd[2Jok    all is well"
