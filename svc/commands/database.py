"""Where the commands work: the database of the data folder, the accounts in it, and the server beside them."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from svc.auth import accounts
from svc.auth.accounts import Account
from svc.config import Config
from svc.errors import StartError
from svc.schema import check_version, existing, read_only
from svc.secrets import DATABASE, is_locked, served_address


def database(config: Config) -> Path:
    """The database's file. Raises StartError if there is none."""
    return existing(config.data_dir / DATABASE)


@contextlib.contextmanager
def reading(config: Config) -> Iterator[sqlite3.Connection]:
    """One state of the database, read without holding up a server and without changing the folder. Raises StartError."""
    path = config.data_dir / DATABASE
    with read_only(path) as conn:
        check_version(conn, path)
        yield conn


def account_named(conn: sqlite3.Connection, name: str) -> Account:
    """The account with this e-mail or id. Raises StartError."""
    account = accounts.account_by_email(conn, name) if "@" in name else accounts.account_by_id(conn, name)
    if account is None:
        raise StartError("there is no account with this e-mail or id; 'svc user list' shows them")
    return account


def served_base_url(config: Config) -> str:
    """Where people reach the service: as the server beside this command says, which alone knows its port where that is 0."""
    return (served_address(config.data_dir) if is_served(config) else None) or config.base_url


def is_served(config: Config) -> bool:
    """Whether a server holds the data folder now."""
    return is_locked(config.data_dir)
