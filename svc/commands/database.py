"""What the commands share: their declaration, the database of the data folder, and the accounts in it."""

import argparse
import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from svc.auth import accounts
from svc.auth.accounts import Account
from svc.config import Config, from_environ
from svc.errors import StartError
from svc.schema import command_connection, existing, read_only
from svc.secrets import DATABASE
from svc.server import status

Run = Callable[[Config, argparse.Namespace], int | None]  # it returns the exit status; None is 0
Argument = tuple[tuple[str, ...], dict[str, Any]]


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument of a command, as `add_argument` of argparse takes it."""
    return names, options


def command(name: str, text: str, *arguments: Argument) -> Callable[[Run], Run]:
    """Declare a function as the command `name`, two words for one of a group. `text` is its help."""

    def declare(run: Run) -> Run:
        run.declared = (name, text, arguments)  # type: ignore[attr-defined]
        return run

    return declare


ACCOUNT = argument("email", help="the email address or the id")


def database(config: Config) -> Path:
    """Return the database's file. Raises StartError if there is none."""
    return existing(config.data_dir / DATABASE)


def reading(config: Config) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    """Open a snapshot of the database; no server is delayed, and the folder is not changed. Raises StartError."""
    return read_only(config.data_dir / DATABASE)


def writing(config: Config) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    """Open a transaction on the database, also beside a running server. Raises StartError."""
    return command_connection(database(config))


def served_settings(config: Config) -> Config | None:
    """Return the settings of the server that runs on this data folder, with its port, or None.

    Raises OSError, ValueError, StartError.
    """
    answer = status.ask(config.data_dir, "settings")
    if answer is None:
        return None
    # The server may see the folder under another name, for instance in a container.
    return replace(from_environ(answer["environ"]), data_dir=config.data_dir.absolute(), base_url=answer["base_url"])


def account_named(conn: sqlite3.Connection, name: str) -> Account:
    """Return the account with this email address or id. Raises StartError."""
    account = accounts.account_by_email(conn, name) if "@" in name else accounts.account_by_id(conn, name)
    if account is None:
        raise StartError("there is no account with this email address or id; 'svc user list' lists them")
    return account


def printable(text: str) -> str:
    """Return a text for the terminal, without control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
