"""`svc credit` and `svc debit`, manual bookings; `svc ledger`, `svc report` and `svc payments`, which read the books.

Nothing is printed while the database is read: a blocked pipe would delay the checkpoint of its log.
"""

import argparse
import asyncio
import contextlib
import itertools
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TextIO, cast

from svc import audit
from svc.billing import reconciliation, report, spending, wallet
from svc.billing.reconciliation import Mismatch
from svc.billing.report import Line
from svc.billing.stripe import Stripe
from svc.commands.database import ACCOUNT, account_named, argument, command, printable, reading, writing
from svc.config import Config
from svc.errors import ApiError, StartError
from svc.ids import timestamp
from svc.money import dollars, micros_of
from svc.outbound.client import Outbound
from svc.spreadsheet import write_csv

_PAGE_ROWS = 1_000
_SHOWN = 20
_ASKED_AT_ONCE = 8
_SPOOLED_BYTES = 1_000_000  # what is kept in memory


_BOOKING = (
    ACCOUNT,
    argument("dollars", help="such as 25 or 12.50, down to 0.000001"),
    argument("--note", help="the description in the ledger, which the owner sees"),
)
_CSV = argument("--csv", action="store_true", help="as CSV, amounts in micros (millionths of a dollar)")


@command(
    "credit",
    "add money to a wallet; 5 dollars or more make the account pro",
    *_BOOKING,
    argument("--payment", metavar="EVENT", help="credit a payment that 'svc payments' lists, once"),
)
def _credit(config: Config, options: argparse.Namespace) -> None:
    _book(config, options, "credit")


@command(
    "debit",
    "take money from a wallet, never below zero",
    *_BOOKING,
    argument(
        "--refund-of",
        metavar="CHECKOUT",
        help="book a refund or a dispute: up to what the processor returned, never twice",
    ),
)
def _debit(config: Config, options: argparse.Namespace) -> None:
    _book(config, options, "debit")


def _book(config: Config, options: argparse.Namespace, action: str) -> None:
    micros, now = micros_of(options.dollars), time.time()
    if not micros:
        raise StartError("the amount must be dollars over 0 with at most 6 decimals, such as 25 or 12.50")
    refunded, payment = getattr(options, "refund_of", None), getattr(options, "payment", None)
    with writing(config) as tx:
        account_id = account_named(tx, options.email).id
        if refunded:
            reconciliation.book_refund(tx, account_id, micros, refunded, options.note or f"Refund of {refunded}", now)
        elif payment:
            reconciliation.book_payment(tx, account_id, micros, payment, options.note or "Added funds", now)
        else:
            amount, note = micros if action == "credit" else -micros, f"{action.title()} by the operator"
            wallet.book(tx, account_id, amount, description=options.note or note, now_seconds=now)
        audit.add(tx, now, audit.OPERATOR, action, account_id, {"amount_micros": micros})
        found, tier = wallet.balances(tx, account_id), account_named(tx, account_id).tier
    balance = found["wallet_balance_micros"]
    print(f"balance {dollars(balance)} ({balance} micros), held {dollars(found['held_micros'])}, tier {tier}")


@command("ledger", "print an account's credits and debits, the oldest first", ACCOUNT, _CSV)
def _ledger(config: Config, options: argparse.Namespace) -> None:
    rows = _ledger_rows(config, options.email)
    if options.csv:
        names = "id amount_micros balance_after_micros model input_tokens output_tokens key_id description"
        columns = [*names.split(), "cached_input_tokens"]
        values = ((timestamp(row["created_at"]), *(row[c] for c in columns)) for row in rows)
        write_csv(sys.stdout, ["time", *columns], values)
        return
    for row in rows:
        amount, balance = dollars(row["amount_micros"]), dollars(row["balance_after_micros"])
        print(f"{timestamp(row['created_at'])} {amount:>16} {balance:>16}  {printable(row['description'])}")


def _ledger_rows(config: Config, name: str) -> Iterator[sqlite3.Row]:
    """Yield the rows of the account with this email address or id, the oldest first."""
    account_id, seq = None, 0
    while True:
        with reading(config) as conn:
            account_id = account_id or account_named(conn, name).id
            rows = wallet.ledger_after(conn, account_id, seq, _PAGE_ROWS)
        if not rows:
            return
        yield from rows
        seq = rows[-1]["seq"]


@command(
    "report",
    "print a month's income, spending by model and account, overruns, and what is owed",
    _CSV,
    argument("--month", metavar="YYYY-MM", help="in UTC; by default the current one"),
    argument("--by", metavar="KINDS", help=f"only the usage, also of free models: by {spending.BY.expected}"),
    argument("--from", dest="first", metavar="YYYY-MM-DD", help="with --by: the first day, instead of --month"),
    argument("--to", dest="last", metavar="YYYY-MM-DD", help="with --by: the last day; by default today"),
)
def _report(config: Config, options: argparse.Namespace) -> None:
    # The text is complete before it is printed. It is kept in a file, because it can be long.
    with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES, "w+", encoding="utf-8", newline="") as spooled:
        with reading(config) as conn:
            title, lines = _report_lines(conn, options)
            (_write_report_csv if options.csv else _write_report)(cast(TextIO, spooled), title, lines)
        spooled.seek(0)
        shutil.copyfileobj(spooled, sys.stdout)


def _report_lines(conn: sqlite3.Connection, options: argparse.Namespace) -> tuple[str, Iterator[Line]]:
    """Return the period of a report, as a title, and its lines. Raises StartError and ApiError for wrong options."""
    today = timestamp(time.time())[:10]
    month, is_range = options.month or today[:7], bool(options.first or options.last)
    if is_range and (options.month or not options.by):
        raise StartError("--from and --to need --by, and stand instead of --month")
    if not options.by:
        return month, report.lines(conn, *report.month_bounds(month))
    report.month_bounds(month)
    period = spending.period_of(options.first, options.last, today) if is_range else spending.month_period(month)
    title = f"{period.first} to {period.last}" if is_range else month
    return title, report.usage_lines(conn, period, spending.BY.check(options.by, "by").split(","))


def _write_report_csv(file: TextIO, title: str, lines: Iterator[Line]) -> None:
    columns = ["part", "name", "count", "input_tokens", "output_tokens", "micros", "cached_input_tokens"]
    write_csv(file, ["month", *columns], ([title, *(getattr(line, name) for name in columns)] for line in lines))


def _write_report(file: TextIO, title: str, lines: Iterator[Line]) -> None:
    print(f"{title}, in UTC", file=file)
    for part, own in itertools.groupby(lines, attrgetter("part")):
        shown, more = list[Line](), list[int]()
        for line in own:
            if len(shown) < _SHOWN:
                shown.append(line)
            else:
                more.append(line.micros)
        micros = dollars(sum(line.micros for line in shown) + sum(more))
        print(f"\n{part:44}{'count':>10}{'tokens in':>14}{'cached':>14}{'tokens out':>14}{micros:>18}", file=file)
        for line in shown:
            counts = f"{line.input_tokens:>14}{line.cached_input_tokens:>14}{line.output_tokens:>14}"
            tokens = counts if line.input_tokens or line.output_tokens else ""
            print(f"  {printable(line.name):42}{line.count:>10}{tokens:42}{dollars(line.micros):>18}", file=file)
        if more:
            print(f"  and {len(more)} more with {dollars(sum(more))}, see --csv", file=file)


@command(
    "payments",
    "list payments, refunds and disputes that the ledger does not follow; exit status 1 if there are any",
    _CSV,
)
def _payments(config: Config, options: argparse.Namespace) -> int:
    with reading(config) as conn:
        found = reconciliation.mismatches(conn, time.time())
        deleted, deleted_micros = reconciliation.returned_to_deleted(conn)
    if config.payment_mode == "stripe":
        found = asyncio.run(_with_states(config, found))
    if options.csv:
        columns = ["checkout", "session", "account", "amount_micros", "since", "what", "todo"]
        values = (
            (m.checkout_id, m.session_id, m.account_id, m.micros, timestamp(m.since), m.text, m.todo) for m in found
        )
        write_csv(sys.stdout, columns, values)
        return 1 if found else 0
    for one in found:
        subject = one.checkout_id or one.session_id or "-"
        print(f"{timestamp(one.since)} {subject} {dollars(one.micros)}: {printable(one.text)}")
        if one.todo:
            print(f"    {printable(one.todo)}")
    if deleted:
        returned = dollars(deleted_micros)
        print(f"{deleted} of deleted accounts with {returned} returned: nothing to book, 'svc report' counts them")
    print(f"{len(found)} do not match" if found else "every checkout and every event match")
    return 1 if found else 0


async def _with_states(config: Config, found: Sequence[Mismatch]) -> list[Mismatch]:
    """Ask Stripe about the checkouts without an event; leave out those that it says are unpaid."""
    async with contextlib.aclosing(Outbound()) as outbound:
        stripe = Stripe(outbound, config.stripe_api, config.stripe_secret_key or "")
        turns = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def ask(one: Mismatch) -> Mismatch | None:
            if not one.unheard or one.session_id is None:
                return one
            async with turns:
                try:
                    paid = await stripe.is_paid(one.session_id)
                except ApiError as error:
                    return one._replace(text=f"{one.text}, and Stripe cannot be asked ({error})", todo="")
            text = "Stripe has the money, but its event has not arrived"
            return one._replace(text=text, todo=reconciliation.RESEND) if paid else None

        return [one for one in await asyncio.gather(*map(ask, found)) if one is not None]
