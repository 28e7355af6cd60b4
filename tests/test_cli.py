"""The command line: wrong usage, one line for a refusal, and help for every command."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from svc import cli
from svc.schema import newest_schema
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.server import ROOT

COMMANDS = ["serve", "openapi", "user", "credit", "debit", "support", "backup", "restore", "check"]


@each("arguments", [[], ["unknown"], ["user"], ["user", "add"], ["credit", "ada@example.com"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and "usage: svc" in capsys.readouterr().err


@each("command", COMMANDS)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0 and f"svc {command}" in capsys.readouterr().out


def test_wrong_setting_is_one_line_and_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SVC_PORT", "no port")
    assert cli.main(["user", "list"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("svc: ") and captured.err.count("\n") == 1


OTHER_USER = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", sys.executable]


@cache
def other_user_can_import() -> bool:
    return subprocess.run([*OTHER_USER, "-c", "import svc.cli"], cwd=ROOT, capture_output=True).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.needs("setpriv")
@each("command", ["check", "user list", "backup -", "doctor"])
def test_folder_of_another_user_is_one_line(command: str, tmp_path: Path) -> None:
    prepare(tmp_path / "service.db", *newest_schema())
    tmp_path.chmod(0o700)
    env = {**os.environ, "SVC_DATA_DIR": str(tmp_path), "SVC_DISCOVER": "0", "SVC_PORT": "0"}
    if not other_user_can_import():
        pytest.skip("another user may not read this Python or this checkout")
    done = subprocess.run(
        [*OTHER_USER, "-m", "svc", *command.split()], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "Permission denied" in done.stderr
