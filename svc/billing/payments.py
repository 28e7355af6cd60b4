"""Funding: a checkout of ours, a payment at the processor, and its event that credits the wallet exactly once.

POST /checkout -> add_checkout (on disk) -> open_session -> set_session -> 303 to the processor's page, where the person pays
the processor -> POST /billing/webhook -> deliver: signature -> receive: judge, credit, checkout, event in one transaction
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from svc.billing import matching, wallet
from svc.billing.stripe import PaymentEvent, Stripe, check_signature, read_event, session_event, sign
from svc.db import Database
from svc.errors import ApiError
from svc.ids import random_base62
from svc.money import micros_of

LEAST_MICROS, MOST_MICROS = 5_000_000, 10_000_000_000
MICROS_PER_CENT = 10_000
_FORGOTTEN_AT_ONCE = 20
_RETURNS = ("charge.refunded", "charge.dispute.created")  # as in schema.sql
_COLUMNS = "id, account_id, amount_micros, state, session_id"


class Checkout(NamedTuple):
    """A funding that somebody began; `account_id` is None once that account is deleted, `session_id` is the processor's and None
    until it has answered. `state`: `open`, `paid`, `failed` or `expired`."""

    id: str
    account_id: str | None
    amount_micros: int
    state: str
    session_id: str | None


class Receipt(NamedTuple):
    """What became of one delivery of an event; `reason` says why it credited nothing. `todo`, for a refund or a dispute: the
    command that books it, or why there is nothing to book."""

    event: PaymentEvent
    credited: bool
    reason: str | None
    checkout: Checkout | None = None
    todo: str | None = None

    @property
    def needs_operator(self) -> bool:
        """Whether money has moved that the wallet does not follow by itself."""
        uncredited = self.event.pays and not self.credited and self.reason not in matching.NOT_PAYMENTS
        return self.reason != "repeated" and (uncredited or self.event.type in _RETURNS)


@dataclass(frozen=True)
class Payments:
    """The processor in use. `mode`: `stripe`, `sandbox` (a page of ours plays it) or `none`; `secret` signs its events."""

    mode: str
    base_url: str
    secret: bytes | None = field(default=None, repr=False)
    stripe: Stripe | None = None

    async def open_session(self, checkout_id: str, amount_micros: int) -> tuple[str, str]:
        """The processor's id and page for a checkout of ours that is on disk. Raises ApiError `upstream_*`."""
        if self.stripe is None:
            session_id = "sandbox_" + random_base62(32)
            return session_id, f"{self.base_url}/checkout/sandbox/{session_id}"
        back = f"{self.base_url}/checkout"
        return await self.stripe.create_session(
            checkout_id, amount_micros // MICROS_PER_CENT, f"{back}/return?checkout={checkout_id}", back
        )

    async def deliver(self, db: Database, signatures: Sequence[str], body: bytes, now_seconds: float) -> Receipt:
        """Takes one event in; when this returns it is on disk with all it does.

        Raises ApiError `invalid_value` for a wrong signature, `invalid_json`, `storage_unavailable`: the processor repeats it.
        """
        check_signature(self.secret, signatures, body, now_seconds)
        return await db.write(receive, read_event(body), now_seconds, test_money=self.mode == "sandbox")

    def sandbox_event(self, checkout: Checkout, now_seconds: float) -> tuple[str, bytes]:
        """The signature and the body that the sandbox sends when somebody pays there."""
        cents = checkout.amount_micros // MICROS_PER_CENT
        body = session_event(checkout.session_id or "", checkout.id, cents, now_seconds)
        return sign(self.secret or b"", body, int(now_seconds)), body


def check_amount(text: str | None) -> int:
    """An amount in dollars from a form, in micros. Raises ApiError `invalid_value` outside of 5 to 10,000 or below a cent."""
    micros = micros_of((text or "").strip())
    if micros is None or not LEAST_MICROS <= micros <= MOST_MICROS or micros % MICROS_PER_CENT:
        raise ApiError(
            "invalid_value", "The amount must be 5.00 to 10000.00 US dollars in whole cents, such as 25 or 12.50.", param="amount"
        )
    return micros


def add_checkout(tx: sqlite3.Connection, account_id: str, checkout_id: str, amount_micros: int, now_seconds: float) -> None:
    """Opens a checkout. Raises ApiError `invalid_api_key` when the account is gone."""
    try:
        tx.execute(
            "INSERT INTO checkouts (id, account_id, amount_micros, created_at) VALUES (?, ?, ?, ?)",
            (checkout_id, account_id, amount_micros, now_seconds),
        )
    except sqlite3.IntegrityError:
        raise ApiError("invalid_api_key") from None
    _delete_abandoned(tx)


def detach_checkouts(tx: sqlite3.Connection, account_id: str) -> None:
    """Takes its checkouts from an account whose deletion has begun: a payment that still comes credits nobody."""
    tx.execute("UPDATE checkouts SET account_id = NULL WHERE account_id = ?", (account_id,))


def _delete_abandoned(tx: sqlite3.Connection) -> None:
    """Deletes some of the checkouts that nobody has paid for 30 days; the schema says which these are."""
    tx.execute(
        """
        DELETE FROM checkouts WHERE id IN (
            SELECT id FROM checkouts
            WHERE state <> 'paid' AND created_at <= (SELECT max(created_at) FROM checkouts) - 2592000
                AND NOT EXISTS (
                    SELECT 1 FROM payment_events WHERE checkout_id = checkouts.id AND type <> 'checkout.session.expired')
            ORDER BY created_at LIMIT ?)
        """,
        (_FORGOTTEN_AT_ONCE,),
    )


def set_session(tx: sqlite3.Connection, account_id: str, checkout_id: str, session_id: str) -> None:
    """Notes the processor's session of a checkout. Raises ApiError `upstream_invalid_response` for one that another has."""
    try:
        tx.execute("UPDATE checkouts SET session_id = ? WHERE account_id = ? AND id = ?", (session_id, account_id, checkout_id))
    except sqlite3.IntegrityError:
        raise ApiError(
            "upstream_invalid_response", "The payment processor's answer makes no sense. Nothing was charged."
        ) from None


def checkout_of(conn: sqlite3.Connection, account_id: str, checkout_id: str) -> Checkout | None:
    """A checkout of the account by its own id or by the processor's session."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM checkouts WHERE account_id = ? AND ? IN (id, session_id)",  # noqa: S608 - our own names
        (account_id, checkout_id),
    ).fetchone()
    return None if row is None else Checkout(**row)


def receive(tx: sqlite3.Connection, event: PaymentEvent, now_seconds: float, *, test_money: bool = False) -> Receipt:
    """Judges an event and keeps it; a payment is credited in the same transaction, once per checkout.

    Amount and account are our own row's; an event that says otherwise, or has been here before, credits nothing.
    """
    if tx.execute("SELECT 1 FROM payment_events WHERE id = ?", (event.id,)).fetchone():
        return Receipt(event, False, "repeated")
    checkout = _checkout_for(tx, event)
    reason = _objection(event, checkout)
    if reason is None and checkout is not None and checkout.account_id is not None:
        reason = _pay(tx, checkout, checkout.account_id, event, now_seconds, test_money)
    ended = {"checkout.session.expired": "expired", "checkout.session.async_payment_failed": "failed"}.get(event.type)
    if checkout is not None and event.session_id == checkout.session_id:
        if ended:
            tx.execute("UPDATE checkouts SET state = ? WHERE id = ? AND state = 'open'", (ended, checkout.id))
        if event.payment_intent:
            _name_payment(tx, checkout.id, event.payment_intent)
    cents = event.returned_cents if event.returned_cents is not None else event.amount_cents
    tx.execute(
        """
        INSERT INTO payment_events (
            id, type, session_id, checkout_id, credited, reason, received_at, amount_micros, currency, payment_intent
        )
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            event.id,
            event.type,
            event.session_id,
            checkout and checkout.id,
            reason is None,
            reason,
            now_seconds,
            None if cents is None else cents * MICROS_PER_CENT,
            event.currency,
            event.payment_intent,
        ),
    )
    return Receipt(event, reason is None, reason, checkout, matching.todo(tx, event.id))


def _checkout_for(conn: sqlite3.Connection, event: PaymentEvent) -> Checkout | None:
    """The checkout that an event is about: the one with its session, else the one it names, if that has no session yet; of a
    refund or a dispute the one with its payment, else the one that it names."""
    if event.returned_cents is not None or event.type in _RETURNS:
        row = conn.execute(
            f"""
            SELECT {_COLUMNS} FROM checkouts WHERE payment_intent = ? OR id = ? ORDER BY payment_intent IS NOT ? LIMIT 1
            """,  # noqa: S608 - our own names
            (event.payment_intent, event.checkout_id, event.payment_intent),
        ).fetchone()
        return None if row is None else Checkout(**row)
    row = conn.execute(
        f"""
        SELECT {_COLUMNS} FROM checkouts WHERE session_id = ? OR (id = ? AND session_id IS NULL)
        ORDER BY session_id IS NULL LIMIT 1
        """,  # noqa: S608 - our own names
        (event.session_id, event.checkout_id),
    ).fetchone()
    return None if row is None else Checkout(**row)


def _objection(event: PaymentEvent, checkout: Checkout | None) -> str | None:
    """Why an event credits nothing, None when it is a payment that fits our checkout."""
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


def _name_payment(tx: sqlite3.Connection, checkout_id: str, payment_intent: str) -> None:
    tx.execute("UPDATE checkouts SET payment_intent = ? WHERE id = ? AND payment_intent IS NULL", (payment_intent, checkout_id))


def _pay(
    tx: sqlite3.Connection, checkout: Checkout, account_id: str, event: PaymentEvent, now_seconds: float, test_money: bool
) -> str | None:
    """Credits a checkout and marks it paid; the objection if the wallet does not take it."""
    description = "Added funds (test money)" if test_money else "Added funds"
    try:
        wallet.credit(
            tx,
            account_id,
            checkout.amount_micros,
            description=description,
            reference=checkout.id,
            now_seconds=now_seconds,
        )
    except ApiError:
        return "wallet full"
    tx.execute(
        "UPDATE checkouts SET state = 'paid', paid_at = ?, session_id = ? WHERE id = ?",
        (now_seconds, event.session_id, checkout.id),
    )
    if event.payment_intent:
        _name_payment(tx, checkout.id, event.payment_intent)
    return None
