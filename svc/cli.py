"""The operator's commands. They work beside a running server, on a connection of their own."""

import argparse
import asyncio
import contextlib
import getpass
import importlib.metadata
import os
import re
import runpy
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from svc import backup
from svc.auth import accounts, links
from svc.auth.accounts import Account
from svc.auth.emails import check_email
from svc.auth.passwords import Passwords
from svc.billing import payments, wallet
from svc.config import Config, from_environ
from svc.content import conversations, support
from svc.errors import ApiError, StartError
from svc.ids import random_base62, timestamp
from svc.money import dollars, micros_of
from svc.routes import service
from svc.schema import command_connection, connect, newest_schema, prepare

_BUNDLES = 20
_APP = str(Path(__file__).parent.parent / "app.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status: 0 done, 1 refused with one line on stderr, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(from_environ(os.environ), options)
    except (StartError, ApiError) as error:
        print(f"svc: {error}", file=sys.stderr)
        return 1
    except sqlite3.Error as error:
        print(f"svc: the database cannot be used: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="svc", description="Commands for the operator of the service.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("serve", help="start the service (as python app.py does)").set_defaults(run=_serve)
    commands.add_parser("openapi", help="print the interface document").set_defaults(run=_openapi)
    user = commands.add_parser("user", help="accounts").add_subparsers(required=True, metavar="ACTION")
    add = user.add_parser("add", help="create an account; the password is read from the terminal or from standard input")
    add.add_argument("email")
    add.add_argument("--name", help="the person's name")
    add.set_defaults(run=_add_user)
    user.add_parser("list", help="list the accounts").set_defaults(run=_list_users)
    delete = user.add_parser("delete", help="delete an account with everything personal")
    delete.add_argument("email")
    delete.set_defaults(run=_delete_user)
    link = user.add_parser("reset-link", help="print a link that sets a new password, once, within an hour")
    link.add_argument("email")
    link.set_defaults(run=_reset_link)
    for name, run, text in (
        ("credit", _credit, "add money to a wallet; 5 dollars or more make the account pro"),
        ("debit", _debit, "take money from a wallet, never below zero; also how a refund or a dispute is booked"),
    ):
        booking = commands.add_parser(name, help=text)
        booking.add_argument("email")
        booking.add_argument("dollars", help="such as 25 or 12.50, down to 0.000001")
        booking.add_argument("--note", help="the ledger's description of it, which the owner sees")
        booking.set_defaults(run=run)
    desk = commands.add_parser("support", help="live support").add_subparsers(required=True, metavar="ACTION")
    listing = desk.add_parser("list", help="list the active conversations, or show one with its messages")
    listing.add_argument("id", nargs="?", help="the conversation to show, sup_...")
    listing.set_defaults(run=_list_support)
    answer = desk.add_parser("reply", help="answer; the text is the argument, or is read from standard input")
    answer.add_argument("id")
    answer.add_argument("text", nargs="?")
    answer.set_defaults(run=_reply_support)
    end = desk.add_parser("close", help="close a conversation")
    end.add_argument("id")
    end.set_defaults(run=_close_support)
    copy = commands.add_parser("backup", help="write a backup, also while a server uses the data folder")
    copy.add_argument("target", metavar="FILE", help="a new file, a folder to put one in, or - for standard output")
    copy.add_argument("--keep", type=int, metavar="N", help="in a folder: remove all but the newest N backups")
    copy.set_defaults(run=_backup)
    back = commands.add_parser("restore", help="make the data folder, which must be new or empty, out of a backup")
    back.add_argument("archive", metavar="FILE", help="what 'svc backup' wrote, or - for standard input")
    back.set_defaults(run=_restore)
    commands.add_parser("check", help="prove the database: its integrity, the ledger against the balances").set_defaults(
        run=_check
    )
    return parser


def _serve(config: Config, options: argparse.Namespace) -> int:
    # app.py is above this floor: it is run, as the shell would run it, not imported.
    runpy.run_path(_APP, run_name="__main__")
    return 0


def _openapi(config: Config, options: argparse.Namespace) -> int:
    routes = runpy.run_path(_APP)["ROUTES"]
    sys.stdout.write(orjson.dumps(service.document(routes, config.base_url), option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0


def _database(config: Config) -> Path:
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return config.data_dir / "service.db"


def _add_user(config: Config, options: argparse.Namespace) -> int:
    email, name = check_email(options.email), accounts.check_name(options.name)
    given = _read_password()
    password = accounts.check_password(given or random_base62(20))
    passwords = Passwords(config.argon2_memory_kib, config.argon2_time_cost)
    password_hash = asyncio.run(passwords.hash(password))
    passwords.close()
    with command_connection(_database(config)) as tx:
        account = accounts.add_account(tx, email, name, password_hash, time.time())
    print(f"{account.id} {account.email}")
    if not given:
        print(f"password: {password}")
    return 0


def _read_password() -> str:
    """The password as typed twice, or the first line of standard input; empty means that one is to be made."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password (empty: make one): ")
    if first and first != getpass.getpass("Again: "):
        raise StartError("the two passwords differ")
    return first


def _list_users(config: Config, options: argparse.Namespace) -> int:
    with command_connection(_database(config)) as tx:
        for account in accounts.all_accounts(tx):
            print(account.id, account.email, account.tier, timestamp(account.created_at), sep="\t")
    return 0


def _delete_user(config: Config, options: argparse.Namespace) -> int:
    more = True
    while more:  # some bundles in each transaction, between which a running server writes
        with command_connection(_database(config)) as tx:
            account_id = _account(tx, options.email).id
            more = all(conversations.forget_some(tx, account_id) for _ in range(_BUNDLES))
            if not more:
                accounts.delete_account(tx, account_id)
    print("deleted")
    return 0


def _reset_link(config: Config, options: argparse.Namespace) -> int:
    with command_connection(_database(config)) as tx:
        account = _account(tx, options.email)
        token = links.new_link_token(proved=account.email_verified)
        added = links.add_link(tx, account.id, "reset", token, by_mail=False, now_seconds=time.time())
    if not added:
        raise StartError("this account has too many links that are still good; they end within an hour")
    print(f"{config.base_url}/password-reset#{token}")
    return 0


def _credit(config: Config, options: argparse.Namespace) -> int:
    micros = _micros(options.dollars)
    with command_connection(_database(config)) as tx:
        account_id = _account(tx, options.email).id
        wallet.credit(tx, account_id, micros, description=options.note or "Credit by the operator", now_seconds=time.time())
        _print_wallet(tx, account_id)
    return 0


def _debit(config: Config, options: argparse.Namespace) -> int:
    micros = _micros(options.dollars)
    with command_connection(_database(config)) as tx:
        account_id = _account(tx, options.email).id
        wallet.debit(tx, account_id, micros, description=options.note or "Debit by the operator", now_seconds=time.time())
        _print_wallet(tx, account_id)
    return 0


def _micros(text: str) -> int:
    micros = micros_of(text)
    if not micros:
        raise StartError("the amount must be dollars over 0 with at most 6 decimals, such as 25 or 12.50")
    return micros


def _print_wallet(tx: sqlite3.Connection, account_id: str) -> None:
    shown, account = wallet.balances(tx, account_id), accounts.account_by_id(tx, account_id)
    micros = shown["wallet_balance_micros"]
    print(f"balance {dollars(micros)} ({micros} micros), held {dollars(shown['held_micros'])}, tier {account and account.tier}")


def _list_support(config: Config, options: argparse.Namespace) -> int:
    with command_connection(_database(config)) as tx:
        if options.id is not None:
            whole = support.shown_whole(tx, _support_account(tx, options.id), options.id)
            print(whole["id"], whole["status"], whole["updated_at"], _for_terminal(whole["subject"] or ""), sep="\t")
            for message in whole["messages"]:
                print(f"{message['created_at']} {message['role']}:", _for_terminal(message["content"]))
            return 0
        for row in support.active_supports(tx):
            waits = "waits" if row["role"] == "user" else "answered" if row["role"] else "empty"
            print(row["id"], row["email"], waits, timestamp(row["updated_at"]), _for_terminal(row["subject"] or ""), sep="\t")
    return 0


def _reply_support(config: Config, options: argparse.Namespace) -> int:
    text = support.check_content(sys.stdin.read().strip() if options.text is None else options.text, "TEXT")
    with command_connection(_database(config)) as tx:
        support.add_message(tx, _support_account(tx, options.id), options.id, "operator", text, time.time())
    print("sent")
    return 0


def _close_support(config: Config, options: argparse.Namespace) -> int:
    with command_connection(_database(config)) as tx:
        support.close(tx, _support_account(tx, options.id), options.id, time.time())
    print("closed")
    return 0


def _support_account(tx: sqlite3.Connection, support_id: str) -> str:
    account_id = support.account_of(tx, support_id)
    if account_id is None:
        raise StartError("there is no support conversation of this id; 'svc support list' shows the active ones")
    return account_id


def _for_terminal(text: str) -> str:
    """A person's words, which move no cursor and begin no line of ours."""
    lines = text.splitlines()
    return "\n    ".join("".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines)


def _check(config: Config, options: argparse.Namespace) -> int:
    """One state of the database, read beside a running server without stopping its writes; every finding is a line."""
    path = config.data_dir / "service.db"
    if not path.exists():
        raise StartError(f"there is no database {path}")
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path, query_only=True)) as conn:
        conn.execute("BEGIN")
        findings, rows = _findings(conn), _sizes(conn)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else f"ok: {rows} add up")
    return 1 if findings else 0


def _findings(conn: sqlite3.Connection) -> list[str]:
    """What is wrong in a database, a line each: its pages, what rows refer to, the money."""
    findings = [f"integrity: {row[0]}" for row in conn.execute("PRAGMA integrity_check") if row[0] != "ok"]
    findings += [f"table {row[0]}, row {row[1]}: what it refers to is gone" for row in conn.execute("PRAGMA foreign_key_check")]
    return findings + wallet.verify(conn) + payments.verify(conn)


def _sizes(conn: sqlite3.Connection) -> str:
    wallets, entries = conn.execute("SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM ledger)").fetchone()
    return f"{wallets} wallets and {entries} ledger rows"


def _backup(config: Config, options: argparse.Namespace) -> int:
    now = timestamp(time.time())
    to_stdout, target = options.target == "-", Path(options.target)
    if options.keep is not None and (options.keep < 1 or to_stdout or not target.is_dir()):
        raise StartError("--keep takes a whole number from 1, and goes with a folder")
    if not to_stdout and target.is_dir():
        target = target / f"svc-{re.sub('[^0-9TZ]', '', now)}.tar"
    elif not to_stdout and target.exists():
        raise StartError(f"{target} exists; name a new file")
    with tempfile.TemporaryDirectory(prefix="svc-backup-") as folder:
        written = Path(folder) / "backup.tar" if to_stdout else target
        manifest = backup.make(config.data_dir, written, _findings, importlib.metadata.version("svc"), now, _show_progress)
        if to_stdout:
            with written.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
    if not to_stdout:
        print(f"{target}: {target.stat().st_size} bytes, version {manifest['version']}, verified")
    for path in backup.drop_older(target.parent, "svc-*.tar", options.keep) if options.keep else ():
        print(f"{path}: removed")
    return 0


def _show_progress(done_bytes: int, all_bytes: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done_bytes == all_bytes else ""
        print(f"\r{done_bytes * 100 // max(all_bytes, 1)} % of {all_bytes} bytes", end=end, file=sys.stderr, flush=True)


def _restore(config: Config, options: argparse.Namespace) -> int:
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if options.archive == "-" else Path(options.archive).open("rb") as file:
            manifest = backup.restore(file, config.data_dir, _findings)
    except OSError as error:
        raise StartError(f"cannot read {options.archive}: {error.strerror}") from None
    with contextlib.closing(connect(config.data_dir / backup.DATABASE, query_only=True)) as conn:
        print(f"{config.data_dir}: {_sizes(conn)} as of {manifest['created_at']} (version {manifest['version']}), verified")
    return 0


def _account(tx: sqlite3.Connection, email: str) -> Account:
    account = accounts.account_by_email(tx, email)
    if account is None:
        raise StartError("there is no account with this e-mail; 'svc user list' shows them")
    return account
