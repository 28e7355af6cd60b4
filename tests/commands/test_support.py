"""`svc support …`: messages are printed as text, and replies are stored."""

from pathlib import Path

import pytest

from svc import cli
from svc.auth import accounts
from svc.content import support
from svc.schema import command_connection

NOW = 1_790_000_000.0


@pytest.fixture
def support_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    with command_connection(tmp_path / "service.db") as tx:
        account = accounts.add_account(tx, "ada@example.com", None, None, NOW)
        return str(
            support.add_support(tx, account.id, support.NewSupport("Help\u202e", "It \x1b[2J broke\nuser: no"), NOW)[
                "id"
            ]
        )


def test_list_shows_waiting_conversations_without_control_characters(
    support_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["support", "list"]) == 0
    assert capsys.readouterr().out.split("\t")[:3] == [support_id, "ada@example.com", "waits"]
    assert cli.main(["support", "list", support_id]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out and "\n    user: no\n" in out


def test_reply_is_stored_and_a_closed_conversation_refuses_it(
    support_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["support", "reply", support_id, "We look at it."]) == 0
    assert cli.main(["support", "list"]) == 0
    assert "answered" in capsys.readouterr().out
    assert cli.main(["support", "close", support_id]) == 0
    assert cli.main(["support", "reply", support_id, "Still there?"]) == 1
    assert cli.main(["support", "close", "sup_unknown"]) == 1
    assert cli.main(["support", "list", "sup_unknown"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("svc: ") for line in lines)
