"""Where the commands work: whose account is meant, and whether a server is there."""

import dataclasses
from pathlib import Path

import pytest

from svc.auth import accounts
from svc.commands.database import account_named, is_served, reading, served_base_url
from svc.config import Config
from svc.errors import StartError
from svc.schema import command_connection
from svc.secrets import DATABASE, open_folder, write_address


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "data").mkdir()
    return Config(data_dir=tmp_path / "data", base_url="https://svc.example")


def test_an_account_is_found_by_email_and_by_id_and_by_nothing_else(config: Config) -> None:
    with command_connection(config.data_dir / DATABASE) as tx:
        account = accounts.add_account(tx, "ada@example.com", "Ada", None, 1.0)
    with reading(config) as conn:
        assert account_named(conn, "ADA@example.com") == account_named(conn, account.id) == account
        for name in ("Ada", "bob@example.com", "user_x", "", "' OR 1=1 --"):
            with pytest.raises(StartError):
                account_named(conn, name)


def test_a_server_is_noticed_by_its_lock_and_looking_does_not_take_it(config: Config) -> None:
    assert not is_served(config)
    folder = open_folder(config.data_dir)
    assert is_served(config) and is_served(config)
    folder.close()
    assert not is_served(config)
    open_folder(config.data_dir).close()


def test_the_address_of_a_server_that_is_gone_counts_for_nothing(config: Config) -> None:
    write_address(config.data_dir, "https://127.0.0.1:40001")
    assert served_base_url(config) == "https://svc.example"
    folder = open_folder(config.data_dir)
    assert served_base_url(config) == "https://127.0.0.1:40001"
    folder.close()
    assert served_base_url(dataclasses.replace(config, data_dir=config.data_dir / "none")) == "https://svc.example"
