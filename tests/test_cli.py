"""The door of the command line: wrong usage, one line for a refusal, and every command has a help."""

import pytest

from svc import cli

COMMANDS = ["serve", "openapi", "user", "credit", "debit", "support", "backup", "restore", "check"]


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["user"], ["user", "add"], ["credit", "ada@example.com"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and "usage: svc" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0 and f"svc {command}" in capsys.readouterr().out


def test_a_wrong_setting_is_one_line_and_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SVC_PORT", "no port")
    assert cli.main(["user", "list"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("svc: ") and captured.err.count("\n") == 1
