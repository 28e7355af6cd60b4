"""Accounts as administrators see and change them: never with their content."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from svc import audit
from svc.auth import accounts, links, tokens
from svc.auth.emails import EMAIL
from svc.auth.links import Recipient
from svc.billing import wallet
from svc.errors import ApiError, invalid_value
from svc.groups import AUTO, Groups
from svc.ids import fields_as_json, made_at, new_id
from svc.months import month_of
from svc.shapes import ABSENT, Absent, boolean, integer, label, matching, nullable, one_of, record, text
from svc.tables import Page

LINK_SECONDS = 72 * 3600
STATUS = one_of("active", "suspended")
_ONLY = """
    AND (:q IS NULL OR instr(lower(email || ' ' || ifnull(name, '') || ' ' || accounts.id), lower(:q)))
    AND (:group IS NULL OR ifnull(group_name, '') = :group)
    AND (:status IS NULL OR (suspended_at IS NULL) = (:status = 'active'))
"""
_SELECT = """
    SELECT accounts.id, email, email_verified_at IS NOT NULL AS email_verified, name, tier, admin,
        group_name AS "group", group_chosen, iif(suspended_at IS NULL, 'active', 'suspended') AS status,
        accounts.created_at, last_seen_at, balance_micros,
        iif(wallets.month >= :month, month_spent_micros, 0) AS spent_month_micros,
        stored.bytes AS stored_bytes,
        (SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE account_id = accounts.id LIMIT 10000)) AS keys
    FROM accounts JOIN wallets ON wallets.account_id = accounts.id JOIN stored ON stored.account_id = accounts.id
    WHERE deleting_at IS NULL
"""
_FROM = _SELECT[_SELECT.index("FROM accounts") :]
# The orders of the list, each descending. The clock may have gone back, so that the newest month is a later one.
ORDERS = {
    "created": "accounts.rowid",
    "last_seen": "ifnull(last_seen_at, 0)",
    "spent": "iif(wallets.month >= :month, month_spent_micros, 0)",
    "stored_bytes": "stored.bytes",
}
_GROUP = nullable(text(63)).about(
    "A group of the catalog. Null: none. `auto`: the one that the verified address joins."
)


@record("CreateUserRequest", example={"email": "ada@example.com", "name": "Ada"})
class Invitation(NamedTuple):
    email: Annotated[str, EMAIL]
    name: Annotated[str | None, accounts.PERSON_NAME] = None
    group: Annotated[str | None, _GROUP] = AUTO


@record("ChangeUserRequest", "Missing fields do not change.", example={"status": "suspended"})
class AdminChanges(NamedTuple):
    name: Annotated[str | Absent | None, accounts.PERSON_NAME] = ABSENT
    admin: Annotated[bool | Absent, boolean] = ABSENT
    group: Annotated[str | Absent | None, _GROUP] = ABSENT
    status: Annotated[str | Absent, STATUS.about("A suspended account is refused everywhere. Nothing is deleted.")] = (
        ABSENT
    )


@record("BookingRequest", example={"amount_micros": 5_000_000, "note": "Course in November"})
class Booking(NamedTuple):
    amount_micros: Annotated[int, integer(1, wallet.MOST_MICROS).about("Micros of a US dollar, for both directions.")]
    note: Annotated[str | None, nullable(label(200)).about("The text of the ledger row, which the user sees.")] = None
    id: Annotated[
        str | None,
        nullable(matching(re.compile(r"[!-~]{1,100}"), "1 to 100 visible ASCII characters", 100)).about(
            "Of your choice. A repeated request with the same id is booked once for the account."
        ),
    ] = None


def user_page(
    conn: sqlite3.Connection,
    now_seconds: float,
    limit: int,
    after: str | None,
    only: Mapping[str, str | None],
    sort: str = "created",
) -> Page[dict[str, Any]]:
    """Return up to `limit` accounts after the id `after`, with what they spent in this month (UTC).

    `sort` is one of ORDERS; the newest account comes first among equals. `only` has `q`, a part of the address, the
    name or the id, `group`, "" for accounts without one, and `status`; None: any. Raises ApiError `invalid_value` if
    `after` is no account's id. The account may be deleted, if the list is sorted by creation.
    """
    values = {**only, "month": month_of(now_seconds), "after": after, "most": limit + 1}
    order, further = ORDERS[sort], ""
    if after is not None:
        place = conn.execute(
            f"SELECT accounts.rowid AS number, {order} AS value {_FROM} AND id = :after", values
        ).fetchone()
        if place is not None:
            values |= dict(place)
            further = f"AND ({order}, accounts.rowid) < (:value, :number)"
        elif sort == "created" and made_at(after, "user") is not None:
            further = "AND accounts.id < :after"
        else:
            raise invalid_value("after must be the id of an account.", "after")
    # The fields are read of the page only: sorting reads all accounts.
    chosen = f"SELECT accounts.rowid {_FROM} {_ONLY} {further} ORDER BY {order} DESC, accounts.rowid DESC LIMIT :most"
    query = f"{_SELECT} AND accounts.rowid IN ({chosen}) ORDER BY {order} DESC, accounts.rowid DESC"
    rows = conn.execute(query, values).fetchall()
    return Page([_as_json(row) for row in rows[:limit]], len(rows) > limit)


def all_users(conn: sqlite3.Connection, now_seconds: float, sort: str) -> Iterator[dict[str, Any]]:
    """Yield all accounts; `created` is the oldest first, the other ORDERS are descending."""
    order = "accounts.rowid" if sort == "created" else f"{ORDERS[sort]} DESC, accounts.rowid"
    for row in conn.execute(f"{_SELECT} ORDER BY {order}", {"month": month_of(now_seconds)}):
        yield _as_json(row)


def user(conn: sqlite3.Connection, account_id: str, now_seconds: float) -> dict[str, Any]:
    """Return an account with what it spent in this month (UTC). Raises ApiError `not_found`."""
    accounts.existing_account(conn, account_id)
    values = {"id": account_id, "month": month_of(now_seconds)}
    return _as_json(conn.execute(f"{_SELECT} AND accounts.id = :id", values).fetchone())


def _as_json(row: sqlite3.Row) -> dict[str, Any]:
    found = fields_as_json(dict(row), " ".join(row.keys()))
    return {**found, **{name: bool(row[name]) for name in ("email_verified", "admin", "group_chosen")}}


def invite(
    tx: sqlite3.Connection, actor: str, new: Invitation, groups: Groups | None, *, by_mail: bool, now_seconds: float
) -> tuple[str, Recipient]:
    """Store an account whose address counts as verified; return its id and a link to set its password.

    Raises ApiError `email_taken`, `invalid_value` for an unknown group.
    """
    account_id = accounts.add_account(tx, new.email, new.name, None, now_seconds).id
    accounts.verify_email(tx, account_id, now_seconds)
    accounts.set_group(tx, account_id, new.group, groups)
    audit.add(tx, now_seconds, actor, "user.invite", account_id, new._asdict())
    account = accounts.existing_account(tx, account_id)
    return account_id, _add_link(tx, account, by_mail, now_seconds, LINK_SECONDS)


def add_reset_link(
    tx: sqlite3.Connection, actor: str, account_id: str, *, by_mail: bool, now_seconds: float, seconds: int
) -> Recipient:
    """Store a link to set a password. Earlier ones end, so that many of them cannot prevent this one.

    Raises ApiError `not_found`, `rate_limit_exceeded`.
    """
    account = accounts.existing_account(tx, account_id)
    audit.add(tx, now_seconds, actor, "user.reset_link", account_id)
    links.end_links(tx, account_id, "reset")
    return _add_link(tx, account, by_mail, now_seconds, seconds)


def _add_link(
    tx: sqlite3.Connection, account: accounts.Account, by_mail: bool, now_seconds: float, seconds: int
) -> Recipient:
    link = links.add_link(tx, account, "reset", now_seconds, by_mail=by_mail, seconds=seconds)
    if link is None:
        raise ApiError("rate_limit_exceeded", "This account has too many valid links.", retry_after_seconds=3599)
    return link


def change_user(
    tx: sqlite3.Connection,
    actor: str,
    account_id: str,
    changes: Mapping[str, Any],
    groups: Groups | None,
    now_seconds: float,
) -> None:
    """Set `name`, `admin`, `group` and `status` of an account.

    Raises ApiError `not_found`, `invalid_value` for an unknown group, `last_admin` unless the operator does it.
    """
    account = accounts.existing_account(tx, account_id)
    group = account.group if account.group_chosen else AUTO
    before = {"name": account.name, "admin": account.admin, "group": group, "status": account.status}
    changes = {name: value for name, value in changes.items() if before[name] != value}
    if not changes:
        return
    if actor != audit.OPERATOR and (changes.get("admin") is False or changes.get("status") == "suspended"):
        accounts.check_admin_remains(tx, account_id)
    columns: dict[str, Any] = {name: changes[name] for name in ("name", "admin") if name in changes}
    if "status" in changes:
        columns["suspended_at"] = now_seconds if changes["status"] == "suspended" else None
    accounts.update_account(tx, account_id, columns)
    if "group" in changes:
        accounts.set_group(tx, account_id, changes["group"], groups)
    audit.add(tx, now_seconds, actor, "user.change", account_id, changes)


def set_admin_by_claim(tx: sqlite3.Connection, account_id: str, admin: bool, now_seconds: float) -> None:
    """Make the account an administrator or not, as its identity provider says. The last active one stays."""
    if accounts.existing_account(tx, account_id).admin == admin:
        return
    if not admin:
        try:
            accounts.check_admin_remains(tx, account_id)
        except ApiError:  # nobody could administer the service
            return
    accounts.update_account(tx, account_id, {"admin": admin})
    audit.add(tx, now_seconds, audit.OPERATOR, "user.change", account_id, {"admin": admin, "by": "admin_claims"})


def book(
    tx: sqlite3.Connection, actor: str, account_id: str, micros: int, booking: Booking, now_seconds: float
) -> tuple[dict[str, Any], bool]:
    """Add `micros` to the wallet, or take them if they are negative. Return the ledger row, and whether it is new.

    A second booking with the same id is not booked. Raises ApiError `not_found`, `insufficient_funds`, `invalid_value`
    (over the bound of a wallet), `booking_mismatch` for an id of another booking.
    """
    accounts.existing_account(tx, account_id)
    action = "credit" if micros > 0 else "debit"
    booking_id = booking.id or new_id("bkg", now_seconds)
    reference = f"admin:{account_id}:{booking_id}"
    if row := wallet.booked(tx, account_id, reference):
        if row["amount_micros"] != micros:
            raise ApiError("booking_mismatch", param="id")
        return row, False
    note = booking.note or f"{action.title()} by an administrator"
    wallet.book(tx, account_id, micros, description=note, reference=reference, now_seconds=now_seconds)
    audit.add(tx, now_seconds, actor, action, account_id, {"amount_micros": abs(micros), "id": booking_id})
    row = wallet.booked(tx, account_id, reference)
    assert row is not None
    return row, True


def key_page(
    conn: sqlite3.Connection, account_id: str, limit: int, after: str | None, now_seconds: float
) -> Page[dict[str, Any]]:
    """Return a page of the account's API keys, newest first. Raises ApiError `not_found`."""
    accounts.existing_account(conn, account_id)
    return tokens.TABLE.page(conn, account_id, limit, after).of(lambda row: tokens.as_json(row, now_seconds))


def delete_key(tx: sqlite3.Connection, actor: str, account_id: str, key_id: str, now_seconds: float) -> None:
    """Delete a key of the account. Raises ApiError `not_found`."""
    tokens.TABLE.delete(tx, account_id, key_id)
    audit.add(tx, now_seconds, actor, "user.delete_key", account_id, {"key": key_id})


def note_deletion_of_keys(tx: sqlite3.Connection, actor: str, account_id: str, now_seconds: float) -> None:
    """Note in the log that all keys of an account are deleted. Raises ApiError `not_found`."""
    audit.add(tx, now_seconds, actor, "user.delete_keys", accounts.existing_account(tx, account_id).id)
