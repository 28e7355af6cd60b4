"""Compare the processor's events with the checkouts and the ledger, and book what the operator decides.

A refund's ledger row has the reference `refund:PAYMENT:NUMBER`, a payment that was credited by hand `payment:EVENT`.
The view `refunds` in schema.sql adds them up, and triggers there refuse to book the same money twice.
"""

import shlex
import sqlite3
from typing import NamedTuple

from svc.billing import wallet
from svc.billing.invariants import broken_payments
from svc.errors import StartError
from svc.money import dollars
from svc.tables import refusals

NOT_PAYMENTS = ("unpaid", "no payment", "credited before")  # reasons of events that need no credit
RESEND = "Send the event again in Stripe's dashboard (Developers, Webhooks); it is credited once"
DELETED = "Nothing to book: the account is deleted, and its wallet with it. 'svc report' counts this refund"
# SQL: what was returned and is not booked; refunds that are not booked; payments that should have been credited.
_DUE = "min(returned_micros, paid_micros) - booked_micros"
_RETURNED = f"payment_id IN (SELECT ifnull(checkout_id, id) FROM payment_events WHERE returns) AND {_DUE} > 0"
_PAYS = f"NOT credited AND type LIKE 'checkout.session.%' AND reason NOT IN {NOT_PAYMENTS}"


# --- bookings by the operator


def book_refund(
    tx: sqlite3.Connection, account_id: str, micros: int, payment_id: str, note: str, now_seconds: float
) -> None:
    """Debit a refund or a dispute of a checkout, or of an event that names no checkout of ours.

    Raises StartError if this would book more than was paid or the same refund again, ApiError `insufficient_funds`.
    """
    prefix = f"refund:{payment_id}:"
    query = "SELECT count(*) + 1 FROM ledger WHERE reference > ? AND reference < ?"
    number = tx.execute(query, (prefix, f"refund:{payment_id};")).fetchone()[0]
    with refusals(refund_not_due=StartError(_why_refused(tx, account_id, payment_id))):
        wallet.book(tx, account_id, -micros, description=note, reference=f"{prefix}{number}", now_seconds=now_seconds)


def book_payment(
    tx: sqlite3.Connection, account_id: str, micros: int, event_id: str, note: str, now_seconds: float
) -> None:
    """Credit a payment that could not be credited automatically, once. Raises StartError, ApiError `invalid_value`."""
    again = StartError(f"the payment {event_id} is credited already")
    unknown = StartError(f"{event_id} is not an uncredited payment of this account; 'svc payments' lists those")
    with refusals(replaced=again, payment_not_credited=unknown):
        wallet.book(tx, account_id, micros, description=note, reference=f"payment:{event_id}", now_seconds=now_seconds)


def _why_refused(conn: sqlite3.Connection, account_id: str, payment_id: str) -> str:
    found = conn.execute("SELECT * FROM refunds WHERE payment_id = ?", (payment_id,)).fetchone()
    if found is None:
        return f"there is no payment or refund {payment_id}; 'svc payments' lists those that are not booked"
    if found["checkout_id"] and found["account_id"] is None:
        return DELETED
    if found["checkout_id"] and found["account_id"] != account_id:
        return f"{payment_id} is a payment of another account, {found['account_id']}"
    paid, returned, booked = (dollars(found[f"{name}_micros"]) for name in ("paid", "returned", "booked"))
    return (
        f"of {payment_id} {paid} was credited and {returned} was returned by the processor; {booked} of that is booked."
        " A further refund can be booked when the processor has reported it"
    )


# --- what the operator must book


def todo(conn: sqlite3.Connection, event_id: str) -> str | None:
    """Return the command that books a refund or a dispute, or why there is nothing to book; None for other events."""
    query = f"""
        SELECT payment_id, account_id, refunds.checkout_id, min(amount_micros, {_DUE}) AS due
        FROM payment_events JOIN refunds ON payment_id = ifnull(payment_events.checkout_id, payment_events.id)
        WHERE payment_events.id = ? AND returns AND currency = 'usd'
    """
    found = conn.execute(query, (event_id,)).fetchone()
    if found is None or not found["due"] or found["due"] < 0:
        return None
    if found["checkout_id"] and found["account_id"] is None:
        return DELETED
    return _debit(conn, found["account_id"], found["due"], found["payment_id"])


def _credit(account_id: str | None, due_micros: int, event_id: str) -> str:
    amount = _amount(due_micros) if due_micros > 0 else "DOLLARS"
    return f"svc credit {account_id or 'EMAIL'} {amount} --payment {shlex.quote(event_id)}"


def _debit(conn: sqlite3.Connection, account_id: str | None, due_micros: int, payment_id: str) -> str:
    """Return the command for `due_micros`, or for what the wallet has."""
    if account_id is not None:
        due_micros = min(due_micros, wallet.balances(conn, account_id)["available_micros"])
    if not due_micros:
        return "The wallet is empty. Book it when there is money in the wallet again"
    return f"svc debit {account_id or 'EMAIL'} {_amount(due_micros)} --refund-of {shlex.quote(payment_id)}"


def _amount(micros: int) -> str:
    return dollars(micros)[1:].replace(",", "")


class Mismatch(NamedTuple):
    """A payment that the ledger does not follow; `since` is Unix seconds.

    `unheard`: the processor has sent no event for the checkout, which is normal for an unpaid one.
    """

    text: str
    todo: str
    checkout_id: str | None
    session_id: str | None
    account_id: str | None
    micros: int
    since: float
    unheard: bool = False


# Each row has the fields of a Mismatch, or instead of `todo` what its command must credit or debit.
_MISMATCHES = (
    # Payments.
    f"""
    SELECT 'paid, and not credited: ' || reason || '; refund it at the processor, or credit it'
            || iif(currency IS 'usd', '', ' (the amount is in ' || ifnull(currency, 'no currency') || ')') AS text,
        checkout_id, session_id, account_id, due_micros AS micros, received_at AS since,
        id AS payment_id, iif(currency IS 'usd', due_micros, 0) AS credit_micros
    FROM (
        SELECT event.*, account_id, ifnull(event.amount_micros, 0) - (
            SELECT ifnull(sum(amount_micros), 0) FROM payment_events
            WHERE returns AND currency IS event.currency
                AND (checkout_id = event.checkout_id OR (checkout_id IS NULL AND payment_intent = event.payment_intent))
        ) AS due_micros
        FROM (SELECT * FROM payment_events WHERE {_PAYS}) AS event LEFT
        JOIN checkouts ON checkouts.id = event.checkout_id
        WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE reference = 'payment:' || event.id)
            AND NOT EXISTS (SELECT 1 FROM payment_events WHERE checkout_id = event.checkout_id AND credited)
    ) WHERE due_micros > 0 OR amount_micros IS NULL ORDER BY received_at
    """,
    # Refunds and disputes of checkouts.
    f"""
    SELECT 'not booked: ' || (
            SELECT group_concat(DISTINCT type) FROM payment_events WHERE checkout_id = payment_id AND returns) AS text,
        checkout_id, session_id, refunds.account_id, {_DUE} AS micros,
        (SELECT max(received_at) FROM payment_events WHERE checkout_id = payment_id) AS since,
        payment_id, {_DUE} AS debit_micros
    FROM refunds JOIN checkouts ON checkouts.id = payment_id
    WHERE refunds.account_id NOT NULL AND {_RETURNED} ORDER BY since
    """,
    # Those that have no amount in dollars, if nothing is booked for their checkout.
    """
    SELECT 'not booked: ' || type || ', not in dollars but in ' || ifnull(currency, 'no currency') AS text,
        printf('svc debit %s DOLLARS --refund-of %s', account_id, payment_id) AS todo,
        payment_id AS checkout_id, session_id, account_id, 0 AS micros, received_at AS since
    FROM payment_events JOIN refunds ON payment_id = payment_events.checkout_id
    WHERE returns AND (currency IS NOT 'usd' OR amount_micros IS NULL)
        AND account_id NOT NULL AND paid_micros > 0 AND booked_micros = 0
    ORDER BY received_at
    """,
    # Those of payments that are unknown, or were credited by hand.
    f"""
    SELECT 'not booked: ' || event.type || ' of an unknown payment (' || ifnull(event.payment_intent, 'no id') || ')'
        AS text,
        NULL AS checkout_id, event.session_id, ledger.account_id, event.amount_micros - booked_micros AS micros,
        event.received_at AS since, event.id AS payment_id, event.amount_micros - booked_micros AS debit_micros
    FROM payment_events AS event JOIN refunds ON payment_id = event.id
    LEFT JOIN (SELECT * FROM payment_events WHERE {_PAYS}) AS paid ON paid.payment_intent = event.payment_intent
    LEFT JOIN ledger ON reference = 'payment:' || paid.id
    WHERE debit_micros > 0 AND (paid.id IS NULL OR ledger.id NOT NULL) GROUP BY event.id ORDER BY event.received_at
    """,
    # Checkouts without an event. Stripe ends an unpaid session after a day, and sends an event then.
    """
    SELECT 'the processor has sent no event' AS text, 'Check that its webhook comes here, and whether it was paid'
        AS todo,
        id AS checkout_id, session_id, account_id, amount_micros AS micros, created_at AS since, 1 AS unheard
    FROM checkouts
    WHERE state = 'open' AND session_id NOT NULL AND session_id NOT LIKE 'sandbox\\_%' ESCAPE '\\'
        AND created_at < :now - 25 * 3600 AND NOT EXISTS (SELECT 1 FROM payment_events WHERE checkout_id = checkouts.id)
    ORDER BY created_at
    """,
)


def mismatches(conn: sqlite3.Connection, now_seconds: float) -> list[Mismatch]:
    """Return every payment, refund and dispute that the ledger does not follow, with what to do about it."""
    broken = broken_payments(conn)
    found = [Mismatch(finding, "Run 'svc check'", None, None, None, 0, now_seconds) for finding in broken]
    for query in _MISMATCHES:
        for row in conn.execute(query, {"now": now_seconds}).fetchall():
            fields = dict(row)
            payment_id = fields.pop("payment_id", None)
            if "credit_micros" in fields:
                fields["todo"] = _credit(row["account_id"], fields.pop("credit_micros"), payment_id)
            elif "debit_micros" in fields:
                fields["todo"] = _debit(conn, row["account_id"], fields.pop("debit_micros"), payment_id)
            found.append(Mismatch(**fields))
    return found


def returned_to_deleted(conn: sqlite3.Connection) -> tuple[int, int]:
    """Return how many payments of deleted accounts were refunded after the deletion, and their sum in micros."""
    query = f"""
        SELECT count(*), ifnull(sum({_DUE}), 0) FROM refunds WHERE {_RETURNED} AND checkout_id NOT NULL
            AND account_id IS NULL
    """
    number, micros = conn.execute(query).fetchone()
    return number, micros
