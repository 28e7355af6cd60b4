"""The command line: wrong usage, one line for a refusal, and help for every command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from svc import cli
from svc.schema import newest_schema
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.interface_digest import COMMANDS
from tests.support.pages import REFERENCE
from tests.support.server import ROOT


@each("arguments", [[], ["unknown"], ["user"], ["user", "add"], ["credit", "ada@example.com"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and "usage: svc" in capsys.readouterr().err


@each("command", COMMANDS)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--help"])
    assert ended.value.code == 0 and f"svc {command}" in capsys.readouterr().out


def test_every_command_is_called_in_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    patterns = {name: '"' + name.replace(" ", '(?: |",\\s*")') + '[" ]' for name in COMMANDS}
    uncalled = [name for name, pattern in patterns.items() if not re.search(pattern, tests)]
    assert uncalled == [], "call these commands in tests/commands/"


def test_every_command_is_documented() -> None:
    table = REFERENCE.partition("## Commands")[2].partition("\n## ")[0]
    named = set(re.findall(r"`svc ([a-z-]+(?: [a-z-]+)?)", table))
    assert set(COMMANDS) ^ named == set(), "the table of commands of svc/OPERATING.md names each command"


def test_wrong_setting_is_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_PORT", "no port")
    assert cli.main(["user", "list"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("svc: ") and captured.err.count("\n") == 1


OTHER_USER = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", sys.executable]
COMMANDS_OF_A_FOLDER = """
import sys
try:
    import svc.cli
except ImportError:
    sys.exit(77)
for command in (["check"], ["user", "list"], ["backup", "-"], ["doctor"]):
    print(svc.cli.main(command))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.needs("setpriv")
def test_folder_of_another_user_is_one_line(tmp_path: Path) -> None:
    prepare(tmp_path / "service.db", *newest_schema())
    tmp_path.chmod(0o700)
    env = {**os.environ, "SVC_DATA_DIR": str(tmp_path), "SVC_DISCOVER": "0", "SVC_PORT": "0"}
    arguments = [*OTHER_USER, "-c", COMMANDS_OF_A_FOLDER]
    done = subprocess.run(arguments, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("another user may not read this Python or this checkout")
    assert done.stdout.split() == ["1"] * 4
    assert done.stderr.count("\n") == done.stderr.count("Permission denied") == 4
