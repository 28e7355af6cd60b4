"""Payments: a checkout, its session at the processor, and the event that credits the wallet exactly once.

POST /checkout -> add_checkout (on disk) -> open_session -> set_session -> 303 to the processor's page, where the person
pays the processor -> POST /billing/webhook -> deliver: signature -> receive: credit, checkout and event in one
transaction
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from svc.billing import reconciliation, wallet
from svc.billing.stripe import PaymentEvent, Stripe, check_signature, failed, read_event, session_event, sign
from svc.db import Database
from svc.errors import ApiError, invalid_value
from svc.ids import random_base62
from svc.money import MICROS_PER_DOLLAR, micros_of
from svc.tables import Table, refusals

# As in schema.sql: the amount of a checkout, and how long it stays unpaid.
LEAST_MICROS, MOST_MICROS = wallet.PRO_MICROS, 10_000_000_000
MICROS_PER_CENT = 10_000
UNPAID_SECONDS = 30 * 86400
_BOUNDS = " to ".join(f"{micros // MICROS_PER_DOLLAR}.00" for micros in (LEAST_MICROS, MOST_MICROS))
AMOUNT_RULE = f"{_BOUNDS} US dollars in whole cents"
_DELETED_AT_ONCE = 20
_ENDS = {"checkout.session.expired": "expired", "checkout.session.async_payment_failed": "failed"}
_EVENTS = Table("payment_events", dict, "event")
_RETURNS = ("charge.refunded", "charge.dispute.created")  # as in schema.sql


class Checkout(NamedTuple):
    """A payment that a person began. `state` is `open`, `paid`, `failed` or `expired`.

    `account_id` is None if the account is deleted, `session_id` until the processor answers.
    """

    id: str
    account_id: str | None
    amount_micros: int
    state: str
    session_id: str | None


class Receipt(NamedTuple):
    """The result of one delivery of an event; `reason` says why it credited nothing, or is None.

    `todo`, for a refund or a dispute, is the command that books it, or why there is nothing to book.
    """

    event: PaymentEvent
    reason: str | None
    checkout: Checkout | None = None
    todo: str | None = None

    @property
    def needs_operator(self) -> bool:
        """Whether the operator must book it: the wallet does not follow it automatically."""
        uncredited = self.event.pays and self.reason not in (None, *reconciliation.NOT_PAYMENTS)
        return self.reason != "repeated" and (uncredited or self.event.type in _RETURNS)


@dataclass
class Payments:
    """The processor: `mode` is `stripe`, `sandbox` (a page of this service) or `none`. `secret` signs its events."""

    mode: str
    base_url: str
    secret: bytes | None = field(default=None, repr=False)
    stripe: Stripe | None = None

    async def open_session(self, checkout_id: str, amount_micros: int) -> tuple[str, str]:
        """Return the processor's id and page for a stored checkout. Raises ApiError `upstream_*`."""
        if self.stripe is None:
            session_id = "sandbox_" + random_base62(32)
            return session_id, f"{self.base_url}/checkout/sandbox/{session_id}"
        page = f"{self.base_url}/checkout"
        cents = amount_micros // MICROS_PER_CENT
        return await self.stripe.create_session(checkout_id, cents, f"{page}/return?checkout={checkout_id}", page)

    async def deliver(self, db: Database, signatures: Sequence[str], body: bytes, now_seconds: float) -> Receipt:
        """Receive an event; when this returns, it is on disk with its credit.

        Raises ApiError `invalid_value` for a wrong signature, `invalid_json`, and `storage_unavailable`.
        """
        check_signature(self.secret, signatures, body, now_seconds)
        return await db.write(receive, read_event(body), now_seconds, test_money=self.mode == "sandbox")

    def sandbox_event(self, checkout: Checkout, now_seconds: float) -> tuple[str, bytes]:
        """Return the signature and the body that the sandbox sends when a person pays."""
        cents = checkout.amount_micros // MICROS_PER_CENT
        body = session_event(checkout.session_id or "", checkout.id, cents, now_seconds)
        return sign(self.secret or b"", body, int(now_seconds)), body


def check_amount(text: str | None) -> int:
    """Return the micros of an amount in dollars. Raises ApiError `invalid_value` unless it is AMOUNT_RULE."""
    micros = micros_of((text or "").strip())
    if micros is None or not LEAST_MICROS <= micros <= MOST_MICROS or micros % MICROS_PER_CENT:
        raise invalid_value(f"The amount must be {AMOUNT_RULE}, such as 25 or 12.50.", "amount")
    return micros


def add_checkout(
    tx: sqlite3.Connection, account_id: str, checkout_id: str, amount_micros: int, now_seconds: float
) -> None:
    """Store a checkout. Raises ApiError `invalid_api_key` if the account is deleted."""
    with refusals():
        statement = "INSERT INTO checkouts (id, account_id, amount_micros, created_at) VALUES (?, ?, ?, ?)"
        tx.execute(statement, (checkout_id, account_id, amount_micros, now_seconds))
    # Delete some checkouts that are unpaid after UNPAID_SECONDS.
    statement = """
        DELETE FROM checkouts WHERE id IN (
            SELECT id FROM checkouts
            WHERE state <> 'paid' AND created_at <= (SELECT max(created_at) FROM checkouts) - ?
                AND NOT EXISTS (
                    SELECT 1 FROM payment_events WHERE checkout_id = checkouts.id
                        AND type <> 'checkout.session.expired')
            ORDER BY created_at LIMIT ?)
    """
    tx.execute(statement, (UNPAID_SECONDS, _DELETED_AT_ONCE))


def detach_checkouts(tx: sqlite3.Connection, account_id: str) -> None:
    """Detach the checkouts from an account that is being deleted: a later payment credits no account."""
    tx.execute("UPDATE checkouts SET account_id = NULL WHERE account_id = ?", (account_id,))


def set_session(tx: sqlite3.Connection, account_id: str, checkout_id: str, session_id: str) -> None:
    """Store the processor's session. Raises ApiError `upstream_invalid_response` if another checkout has it."""
    statement = "UPDATE checkouts SET session_id = ? WHERE account_id = ? AND id = ?"
    invalid = failed("upstream_invalid_response", "'s answer is not valid")
    with refusals(UNIQUE=invalid, terms=invalid):
        tx.execute(statement, (session_id, account_id, checkout_id))


def checkout_of(conn: sqlite3.Connection, account_id: str, checkout_id: str) -> Checkout | None:
    """Return the account's checkout with this id, or with this session of the processor."""
    return _checkout(conn, "account_id = ? AND ? IN (id, session_id)", account_id, checkout_id)


def _checkout(conn: sqlite3.Connection, condition: str, *values: str | None) -> Checkout | None:
    query = f"SELECT id, account_id, amount_micros, state, session_id FROM checkouts WHERE {condition} LIMIT 1"
    row = conn.execute(query, values).fetchone()
    return None if row is None else Checkout(**row)


def receive(tx: sqlite3.Connection, event: PaymentEvent, now_seconds: float, *, test_money: bool = False) -> Receipt:
    """Store an event, and credit a payment in the same transaction, once per checkout.

    Amount and account are those of the checkout; an event that differs, or was received before, credits nothing.
    """
    if tx.execute("SELECT 1 FROM payment_events WHERE id = ?", (event.id,)).fetchone():
        return Receipt(event, "repeated")
    checkout = _checkout_for(tx, event)
    reason = _objection(event, checkout)
    if reason is None and checkout is not None:
        reason = _pay(tx, checkout, event, now_seconds, test_money)
    if checkout is not None and (reason is None or event.session_id == checkout.session_id):
        if ended := _ENDS.get(event.type):
            tx.execute("UPDATE checkouts SET state = ? WHERE id = ? AND state = 'open'", (ended, checkout.id))
        statement = "UPDATE checkouts SET payment_intent = ? WHERE id = ? AND payment_intent IS NULL AND ?1 NOT NULL"
        tx.execute(statement, (event.payment_intent, checkout.id))
    cents = event.returned_cents if event.returned_cents is not None else event.amount_cents
    columns = {
        "id": event.id,
        "type": event.type,
        "session_id": event.session_id,
        "checkout_id": checkout and checkout.id,
        "credited": reason is None,
        "reason": reason,
        "received_at": now_seconds,
        "amount_micros": None if cents is None else cents * MICROS_PER_CENT,
        "currency": event.currency,
        "payment_intent": event.payment_intent,
    }
    _EVENTS.insert(tx, columns)
    return Receipt(event, reason, checkout, reconciliation.todo(tx, event.id))


def _checkout_for(conn: sqlite3.Connection, event: PaymentEvent) -> Checkout | None:
    """Return the checkout of an event: by its session, else by the id that it names if that has no session yet.

    For a refund or a dispute: by its payment, else by the id that it names.
    """
    if event.returned_cents is not None or event.type in _RETURNS:
        payment = event.payment_intent
        condition = "payment_intent = ? OR id = ? ORDER BY payment_intent IS NOT ?"
        return _checkout(conn, condition, payment, event.checkout_id, payment)
    condition = "session_id = ? OR (id = ? AND session_id IS NULL) ORDER BY session_id IS NULL"
    return _checkout(conn, condition, event.session_id, event.checkout_id)


def _objection(event: PaymentEvent, checkout: Checkout | None) -> str | None:
    if not event.pays:
        return "unpaid" if event.type == "checkout.session.completed" else "no payment"
    if checkout is None or event.session_id is None:
        return "unknown checkout"
    if event.checkout_id not in (None, checkout.id):
        return "other checkout"
    if checkout.state == "paid":
        return "credited before"
    if checkout.account_id is None:
        return "account deleted"
    if event.currency != "usd":
        return "other currency"
    if event.amount_cents is None or event.amount_cents * MICROS_PER_CENT != checkout.amount_micros:
        return "other amount"
    return None


def _pay(
    tx: sqlite3.Connection, checkout: Checkout, event: PaymentEvent, now_seconds: float, test_money: bool
) -> str | None:
    """Credit a checkout and mark it as paid; return the objection if the wallet would be over its bound."""
    assert checkout.account_id is not None  # or there was an objection
    account_id, amount_micros = checkout.account_id, checkout.amount_micros
    text = "Added funds (test money)" if test_money else "Added funds"
    try:
        wallet.book(tx, account_id, amount_micros, description=text, reference=checkout.id, now_seconds=now_seconds)
    except ApiError:
        return "wallet full"
    statement = "UPDATE checkouts SET state = 'paid', paid_at = ?, session_id = ? WHERE id = ?"
    tx.execute(statement, (now_seconds, event.session_id, checkout.id))
    return None
