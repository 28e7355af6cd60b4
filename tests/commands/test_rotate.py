"""The command line of `svc rotate-secrets`. tests/server/test_rotation.py tests what it does."""

from pathlib import Path

import pytest

from svc import cli


def test_folder_without_a_database_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    assert cli.main(["rotate-secrets"]) == 1
    assert "there is no database" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
