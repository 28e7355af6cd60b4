"""`svc credit` and `svc debit`: manual bookings in a wallet."""

import argparse
import sqlite3
import time
from functools import partial
from typing import Any

from svc.billing import matching, wallet
from svc.commands.database import account_named, database
from svc.config import Config
from svc.errors import StartError
from svc.money import dollars, micros_of
from svc.schema import command_connection


def add_parsers(commands: Any) -> None:
    credit = commands.add_parser("credit", help="add money to a wallet; 5 dollars or more make the account pro")
    credit.add_argument("--payment", metavar="EVENT", help="credit a payment that 'svc payments' lists, once")
    credit.set_defaults(run=partial(_book, sign=1, default_note="Credit by the operator"))
    debit = commands.add_parser("debit", help="take money from a wallet, never below zero")
    text = "book a refund or a dispute: up to what the processor returned, never twice"
    debit.add_argument("--refund-of", metavar="CHECKOUT", help=text)
    debit.set_defaults(run=partial(_book, sign=-1, default_note="Debit by the operator"))
    for booking in (credit, debit):
        booking.add_argument("email", help="the email address or the id")
        booking.add_argument("dollars", help="such as 25 or 12.50, down to 0.000001")
        booking.add_argument("--note", help="the description in the ledger, which the owner sees")


def _book(config: Config, options: argparse.Namespace, sign: int, default_note: str) -> int:
    micros, now = micros_of(options.dollars), time.time()
    if not micros:
        raise StartError("the amount must be dollars over 0 with at most 6 decimals, such as 25 or 12.50")
    refunded, payment = getattr(options, "refund_of", None), getattr(options, "payment", None)
    with command_connection(database(config)) as tx:
        account_id = account_named(tx, options.email).id
        if refunded:
            matching.book_refund(tx, account_id, micros, refunded, options.note or f"Refund of {refunded}", now)
        elif payment:
            matching.book_payment(tx, account_id, micros, payment, options.note or "Added funds", now)
        else:
            wallet.book(tx, account_id, sign * micros, description=options.note or default_note, now_seconds=now)
        line = _wallet(tx, account_id)
    print(line)
    return 0


def _wallet(tx: sqlite3.Connection, account_id: str) -> str:
    found, tier = wallet.balances(tx, account_id), account_named(tx, account_id).tier
    micros = found["wallet_balance_micros"]
    return f"balance {dollars(micros)} ({micros} micros), held {dollars(found['held_micros'])}, tier {tier}"
