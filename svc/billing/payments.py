"""Funding: a checkout of ours, a payment at the processor, and its event that credits the wallet exactly once.

POST /checkout -> add_checkout (on disk) -> open_session -> set_session -> 303 to the processor's page, where the person pays
the processor -> POST /billing/webhook -> deliver: signature -> receive: judge, credit, checkout, event in one transaction
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from svc.billing import wallet
from svc.billing.stripe import PaymentEvent, Stripe, check_signature, read_event, session_event, sign
from svc.db import Database
from svc.errors import ApiError
from svc.ids import random_base62
from svc.money import micros_of

LEAST_MICROS, MOST_MICROS = 5_000_000, 10_000_000_000
MICROS_PER_CENT = 10_000
_FORGOTTEN_AT_ONCE = 20
_TAKE_MONEY_BACK = ("charge.refunded", "charge.dispute.created")
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
    """What became of one delivery of an event; `reason` says why it credited nothing."""

    event: PaymentEvent
    credited: bool
    reason: str | None
    checkout: Checkout | None = None

    @property
    def next_command(self) -> str | None:
        """What the operator runs to book a refund or a dispute; None where nothing is to be booked here.

        Of the events that tell of one refund, `charge.refunded` is the one that always comes.
        """
        event, checkout = self.event, self.checkout
        if event.type not in _TAKE_MONEY_BACK or event.returned_cents is None or event.currency != "usd":
            return None
        if checkout is None or checkout.account_id is None or self.reason == "repeated":
            return None
        amount = f"{event.returned_cents // 100}.{event.returned_cents % 100:02}"
        return f'python -m svc debit {checkout.account_id} {amount} --note "{event.type} of {checkout.id}"'


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
    _forget_abandoned(tx)


def leave_checkouts(tx: sqlite3.Connection, account_id: str) -> None:
    """Takes its checkouts from an account whose deletion has begun: a payment that still comes credits nobody."""
    tx.execute("UPDATE checkouts SET account_id = NULL WHERE account_id = ?", (account_id,))


def _forget_abandoned(tx: sqlite3.Connection) -> None:
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
    tx.execute(
        """
        INSERT INTO payment_events (id, type, session_id, checkout_id, credited, reason, received_at, returned_micros)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            event.id,
            event.type,
            event.session_id,
            checkout and checkout.id,
            reason is None,
            reason,
            now_seconds,
            None if event.returned_cents is None else event.returned_cents * MICROS_PER_CENT,
        ),
    )
    return Receipt(event, reason is None, reason, checkout)


def _checkout_for(conn: sqlite3.Connection, event: PaymentEvent) -> Checkout | None:
    """The checkout that an event is about: the one with its session, else the one it names, if that has no session yet; of a
    refund or a dispute the one with its payment, else the one that it names."""
    if event.returned_cents is not None:
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


_RULES = {
    "checkout {0} is paid without its credit in the ledger": """
        SELECT checkouts.id FROM checkouts
        WHERE state = 'paid' AND NOT EXISTS (
            SELECT 1 FROM ledger WHERE reference = checkouts.id AND ledger.amount_micros = checkouts.amount_micros
                AND ledger.account_id IS checkouts.account_id)
    """,
    "checkout {0} has a credit in the ledger and is not paid": """
        SELECT checkouts.id FROM checkouts JOIN ledger ON ledger.reference = checkouts.id WHERE state <> 'paid'
    """,
    "checkout {0} is paid without an event of the processor": """
        SELECT id FROM checkouts
        WHERE state = 'paid' AND id NOT IN (SELECT checkout_id FROM payment_events WHERE credited)
    """,
    "event {0} credited a checkout that is not paid": """
        SELECT payment_events.id FROM payment_events LEFT JOIN checkouts ON checkouts.id = checkout_id
        WHERE credited AND state IS NOT 'paid'
    """,
}


RESEND = "Send the event again in Stripe's dashboard (Developers, Webhooks); it is credited once"
_UNHEARD_SECONDS = 25 * 3600  # a session of Stripe's ends after a day, and then says so


class Mismatch(NamedTuple):
    """A checkout and what the processor has said of it that do not fit; `since` is Unix seconds. `unheard`: it has said nothing,
    which for a checkout that was begun and left may be all there is to say."""

    text: str
    todo: str
    checkout_id: str | None
    session_id: str | None
    account_id: str | None
    micros: int
    since: float
    unheard: bool = False

    def told(self, text: str, todo: str = "") -> "Mismatch":
        """The same with what is known better now."""
        return self._replace(text=text, todo=todo)


_MISMATCHES = (
    """
    SELECT 'paid, and not credited: ' || reason AS text,
        'See the payment in the dashboard of the processor, then refund it there or book it with svc credit' AS todo,
        checkout_id, payment_events.session_id, account_id, ifnull(amount_micros, 0) AS micros, received_at AS since, 0 AS unheard
    FROM payment_events LEFT JOIN checkouts ON checkouts.id = checkout_id
    WHERE NOT credited
        AND reason IN ('unknown checkout', 'other checkout', 'account deleted', 'other currency', 'other amount', 'wallet full')
        AND NOT EXISTS (SELECT 1 FROM payment_events AS other WHERE other.checkout_id = checkouts.id AND other.credited)
    ORDER BY received_at
    """,
    # The command that the log gives for a refund or a dispute leaves its words in the ledger.
    """
    SELECT type || ' is not booked' AS text,
        printf('svc debit %s %.2f --note "%s of %s"', account_id, (returned - booked) / 1e6, type, id) AS todo,
        id AS checkout_id, session_id, account_id, returned - booked AS micros, since, 0 AS unheard
    FROM (
        SELECT type, checkouts.id, checkouts.session_id, checkouts.account_id, sum(returned_micros) AS returned,
            max(received_at) AS since, (
                SELECT ifnull(-sum(ledger.amount_micros), 0) FROM ledger
                WHERE ledger.account_id = checkouts.account_id AND description = type || ' of ' || checkouts.id
            ) AS booked
        FROM payment_events JOIN checkouts ON checkouts.id = checkout_id
        WHERE type IN ('charge.refunded', 'charge.dispute.created') AND returned_micros IS NOT NULL
            AND checkouts.account_id IS NOT NULL AND state = 'paid'
        GROUP BY type, checkouts.id
    ) WHERE returned > booked ORDER BY since
    """,
    """
    SELECT 'the processor has said nothing of it' AS text,
        'See that its webhook comes here, and whether it was paid' AS todo,
        id AS checkout_id, session_id, account_id, amount_micros AS micros, created_at AS since, 1 AS unheard
    FROM checkouts
    WHERE state = 'open' AND session_id IS NOT NULL AND session_id NOT LIKE 'sandbox\\_%' ESCAPE '\\' AND created_at < :heard_by
        AND NOT EXISTS (SELECT 1 FROM payment_events WHERE checkout_id = checkouts.id)
    ORDER BY created_at
    """,
)


def mismatches(conn: sqlite3.Connection, now_seconds: float) -> list[Mismatch]:
    """What does not fit between checkouts, events and ledger, also where the processor is in the right."""
    broken = [Mismatch(finding, "svc check proves the rest", None, None, None, 0, now_seconds) for finding in verify(conn)]
    values = {"heard_by": now_seconds - _UNHEARD_SECONDS}
    return broken + [
        Mismatch(**{**dict(row), "unheard": bool(row["unheard"])}) for query in _MISMATCHES for row in conn.execute(query, values)
    ]


def verify(conn: sqlite3.Connection) -> list[str]:
    """What is wrong between processor, checkouts and ledger, a line each; empty when every rule holds."""
    return [finding.format(*row) for finding, query in _RULES.items() for row in conn.execute(query)]
