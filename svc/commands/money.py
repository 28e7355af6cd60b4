"""`svc credit` and `svc debit`: what the operator books in a wallet by hand."""

import argparse
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from svc.billing import wallet
from svc.commands.database import account_named, database
from svc.config import Config
from svc.errors import StartError
from svc.money import dollars, micros_of
from svc.schema import command_connection


def add_parsers(commands: Any) -> None:
    for name, book, note, text in (
        ("credit", wallet.credit, "Credit by the operator", "add money to a wallet; 5 dollars or more make the account pro"),
        (
            "debit",
            wallet.debit,
            "Debit by the operator",
            "take money from a wallet, never below zero; also how a refund or a dispute is booked",
        ),
    ):
        booking = commands.add_parser(name, help=text)
        booking.add_argument("email", help="the e-mail, or the id")
        booking.add_argument("dollars", help="such as 25 or 12.50, down to 0.000001")
        booking.add_argument("--note", default=note, help="the ledger's description of it, which the owner sees")
        booking.set_defaults(run=partial(_book, book=book))


def _book(config: Config, options: argparse.Namespace, book: Callable[..., None]) -> int:
    micros = micros_of(options.dollars)
    if not micros:
        raise StartError("the amount must be dollars over 0 with at most 6 decimals, such as 25 or 12.50")
    with command_connection(database(config)) as tx:
        account_id = account_named(tx, options.email).id
        book(tx, account_id, micros, description=options.note, now_seconds=time.time())
        line = _wallet(tx, account_id)
    print(line)
    return 0


def _wallet(tx: sqlite3.Connection, account_id: str) -> str:
    found, tier = wallet.balances(tx, account_id), account_named(tx, account_id).tier
    micros = found["wallet_balance_micros"]
    return f"balance {dollars(micros)} ({micros} micros), held {dollars(found['held_micros'])}, tier {tier}"
