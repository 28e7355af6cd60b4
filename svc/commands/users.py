"""`svc user …`: create, list and delete accounts, and print links that reset a password."""

import argparse
import asyncio
import contextlib
import getpass
import sys
import time
from typing import Any

from svc import audit
from svc.admin import users
from svc.auth import accounts
from svc.auth.emails import check_email
from svc.auth.passwords import Passwords
from svc.commands.database import ACCOUNT, account_named, argument, command, reading, served_settings, writing
from svc.config import Config
from svc.deletion.slices import delete_beside_server
from svc.errors import StartError
from svc.ids import random_base62
from svc.schema import command_connection
from svc.secrets import DATABASE, is_locked

_LINK_SECONDS = 3600


_SWITCH = argument("switch", choices=("on", "off"))


@command(
    "user add",
    "create an account; the password is read from the terminal or from standard input",
    argument("email"),
    argument("--name", help="the person's name"),
)
def _add(config: Config, options: argparse.Namespace) -> None:
    email, name = check_email(options.email), accounts.PERSON_NAME.check(options.name, "name")
    given = _read_password()
    password = accounts.PASSWORD.check(given or random_base62(20), "password")
    passwords = Passwords(config.argon2_memory_kib, config.argon2_time_cost)
    password_hash = asyncio.run(passwords.hash(password))
    passwords.close()
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with command_connection(config.data_dir / DATABASE) as tx:
        account = accounts.add_account(tx, email, name, password_hash, time.time(), local=_served(config).local_posture)
        accounts.verify_email(tx, account.id, time.time())
        audit.add(tx, time.time(), audit.OPERATOR, "user.add", account.id, {"name": name, "admin": account.admin})
    print(f"{account.id} {account.email}")
    if not given:
        print(f"password: {password}")


def _read_password() -> str:
    """Return the password as typed twice, or the first line of standard input; empty to generate one."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password (empty: generate one): ")
    if first and first != getpass.getpass("Again: "):
        raise StartError("the two passwords differ")
    return first


@command(
    "user list",
    "list the accounts: id, email, tier, date, status and group, stored bytes",
    argument("--sort", choices=tuple(users.ORDERS), default="created", help="what comes first; created: the oldest"),
)
def _list(config: Config, options: argparse.Namespace) -> None:
    with reading(config) as conn:
        found = list(users.all_users(conn, time.time(), options.sort))
    for account in found:
        marks = " ".join(filter(None, (account["status"], "administrator" * account["admin"], account["group"])))
        fields = (account[name] for name in ("id", "email", "tier", "created_at"))
        print(*fields, marks, account["stored_bytes"], sep="\t")


@command("user delete", "delete an account with everything personal; its open streams end within 2 seconds", ACCOUNT)
def _delete(config: Config, options: argparse.Namespace) -> None:
    with writing(config) as tx:
        account_id = account_named(tx, options.email).id
        delete_beside_server(tx, account_id, time.time(), served=is_locked(config.data_dir))
    print("deleted")


@command("user admin", "make an account an administrator, or an ordinary one again", ACCOUNT, _SWITCH)
def _set_admin(config: Config, options: argparse.Namespace) -> None:
    _change(config, options.email, {"admin": options.switch == "on"})


@command(
    "user suspend",
    "refuse all requests of an account, or accept them again; nothing is deleted",
    ACCOUNT,
    _SWITCH,
)
def _suspend(config: Config, options: argparse.Namespace) -> None:
    _change(config, options.email, {"status": "suspended" if options.switch == "on" else "active"})


def _change(config: Config, name: str, changes: dict[str, Any]) -> None:
    with writing(config) as tx:
        users.change_user(tx, audit.OPERATOR, account_named(tx, name).id, changes, None, time.time())
    print("changed")


@command("user reset-link", "print a link that sets a new password, once, within an hour", ACCOUNT)
def _reset_link(config: Config, options: argparse.Namespace) -> None:
    with writing(config) as tx:
        account_id = account_named(tx, options.email).id
        link = users.add_reset_link(
            tx, audit.OPERATOR, account_id, by_mail=False, now_seconds=time.time(), seconds=_LINK_SECONDS
        )
    print(f"{_served(config).base_url}/password-reset#{link.token}")


def _served(config: Config) -> Config:
    with contextlib.suppress(OSError, ValueError, StartError):
        return served_settings(config) or config
    return config
