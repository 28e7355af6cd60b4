"""The door of the command line: which commands there are, how they end, and the document that it prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from svc import cli
from tests.support.openapi import DOCUMENT
from tests.support.server import ROOT

COMMANDS = ("serve", "openapi", "user", "credit", "debit", "support", "backup", "restore", "check")


def svc(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "svc", *arguments], capture_output=True, text=True, cwd=ROOT, env=environ)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert [command for command in COMMANDS if f"\n    {command} " not in told] == []


@pytest.mark.parametrize("arguments", [[], ["fly"], ["credit"], ["user"], ["openapi", "more"]])
def test_wrong_usage_is_status_2_and_says_how_it_is_used(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and capsys.readouterr().err.startswith("usage: svc")


def test_a_wrong_setting_is_status_1_and_one_line(tmp_path: Path) -> None:
    answer = svc("openapi", SVC_PORT="no port", SVC_DATA_DIR=str(tmp_path))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("svc: SVC_PORT") and answer.stderr.count("\n") == 1


def test_the_document_is_printed_with_the_base_address_of_the_configuration(tmp_path: Path) -> None:
    answer = svc("openapi", SVC_BASE_URL="https://ai.example", SVC_DATA_DIR=str(tmp_path))
    assert json.loads(answer.stdout) == {**DOCUMENT, "servers": [{"url": "https://ai.example"}]}
    assert list(tmp_path.iterdir()) == []  # printing opens nothing


def test_a_reader_who_has_seen_enough_ends_it_without_a_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -m svc openapi | head -c 10"
    answer = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, env={"SVC_DATA_DIR": str(tmp_path)}
    )
    assert answer.stderr == ""
