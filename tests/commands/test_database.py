"""Commands find an account by its email address or its id."""

from pathlib import Path

import pytest

from svc.auth import accounts
from svc.commands.database import account_named, reading
from svc.config import Config
from svc.errors import StartError
from svc.schema import command_connection
from svc.secrets import DATABASE


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "data").mkdir()
    return Config(data_dir=tmp_path / "data", base_url="https://svc.example")


def test_account_is_found_only_by_email_or_id(config: Config) -> None:
    with command_connection(config.data_dir / DATABASE) as tx:
        account = accounts.add_account(tx, "ada@example.com", "Ada", None, 1.0)
    with reading(config) as conn:
        assert account_named(conn, "ADA@example.com") == account_named(conn, account.id) == account
        for name in ("Ada", "bob@example.com", "user_x", "", "' OR 1=1 --"):
            with pytest.raises(StartError):
                account_named(conn, name)
