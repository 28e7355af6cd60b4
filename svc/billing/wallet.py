"""The wallet: holds, settlements, credits and debits, in whole micros of a US dollar.

hold (worst case) -> the paid call -> settle (at most the hold)
The rules are in schema.sql: triggers keep the balance, and the holds within it.
"""

import random
import sqlite3
from functools import partial
from typing import Any

from svc.auth import accounts, given
from svc.billing import limits
from svc.errors import ApiError
from svc.ids import new_id
from svc.money import dollars
from svc.months import end_of, month_of, spent_this_month
from svc.tables import Table, json_of, run_some

# As in schema.sql: the bound of a wallet, and the credit that makes an account pro.
MOST_MICROS, PRO_MICROS = 10**15, 5_000_000


# --- a paid call


def hold(
    tx: sqlite3.Connection,
    account_id: str,
    hold_id: str,
    amount_micros: int,
    now_seconds: float,
    key_id: str | None = None,
    month: str | None = None,
) -> None:
    """Reserve micros under a new `hold_id`, for a call with the API key `key_id` or a session.

    `month` is that of the clock, if it has not gone back. Raises ApiError `insufficient_funds`,
    `spending_limit_reached`, `invalid_api_key` (deleted).
    """
    if amount_micros > MOST_MICROS:
        raise _insufficient(tx, account_id, amount_micros)
    if amount_micros == 0:
        return
    month = month or month_of(now_seconds)
    try:
        statement = """
            INSERT INTO holds (id, account_id, amount_micros, created_at, key_id, month) VALUES (?, ?, ?, ?, ?, ?)
        """
        tx.execute(statement, (hold_id, account_id, amount_micros, now_seconds, key_id, month))
    except sqlite3.IntegrityError as error:
        rule = str(error)
        if "held_within_balance" in rule:
            raise _insufficient(tx, account_id, amount_micros) from None
        if "within_limit" in rule:
            raise limits.reached(limits.of_call(tx, account_id, key_id, month), amount_micros, month) from None
        if "FOREIGN KEY" in rule:
            raise ApiError("invalid_api_key") from None
        if "month_is_over" not in rule:
            raise
        month = limits.month_now(tx, account_id, now_seconds)
        hold(tx, account_id, hold_id, amount_micros, now_seconds, key_id, month)


def settle(
    tx: sqlite3.Connection,
    account_id: str,
    hold_id: str,
    cost_micros: int,
    *,
    model: str,
    input_tokens: int,
    output_tokens: int,
    request_id: str,
    key_id: str | None,
    description: str | None = None,
    cached_input_tokens: int = 0,
    now_seconds: float,
) -> int | None:
    """Release a hold and debit the cost, at most the hold. Return the micros charged, or None if it was settled before.

    The cost beyond the hold is the operator's loss, which the caller counts.
    """
    charged_micros = min(max(cost_micros, 0), MOST_MICROS)
    # Nearly every call costs at most its hold and ends in its month. RETURNING takes SQLite over half as long again.
    month = month_of(now_seconds)
    statement = "DELETE FROM holds WHERE account_id = ? AND id = ? AND amount_micros >= ? AND month = ?"
    ended = tx.execute(statement, (account_id, hold_id, charged_micros, month)).rowcount
    if not ended:
        statement = "DELETE FROM holds WHERE account_id = ? AND id = ? RETURNING amount_micros, month"
        row = tx.execute(statement, (account_id, hold_id)).fetchone()
        if row is None:
            return None
        charged_micros, month = min(charged_micros, row[0]), row[1]
    if charged_micros:
        cached = f" ({cached_input_tokens} cached)" if cached_input_tokens else ""
        text = description or f"{model}: {input_tokens} input{cached} and {output_tokens} output tokens"
        call = (model, input_tokens, output_tokens, request_id, key_id, cached_input_tokens, month)
        book(tx, account_id, -charged_micros, description=text, reference=hold_id, now_seconds=now_seconds, call=call)
    return charged_micros


def release_all(tx: sqlite3.Connection) -> int:
    """Release every hold at start: their requests ended with the process. Return their number."""
    return tx.execute("DELETE FROM holds").rowcount


# --- credits and debits


def book(
    tx: sqlite3.Connection,
    account_id: str,
    amount_micros: int,
    *,
    description: str,
    reference: str | None = None,
    now_seconds: float,
    call: tuple[str | None, int | None, int | None, str | None, str | None, int | None, str | None] = (None,) * 7,
) -> None:
    """Add `amount_micros`, or subtract them if they are negative. A `reference` is booked once.

    A credit of 5 dollars or more makes the account pro. `call` is the model, input tokens, output tokens, request id,
    key id, cached input tokens and month. Raises ApiError `invalid_value` if the wallet would be over its bound,
    and `insufficient_funds` if less is available. Raises sqlite3.IntegrityError for a reference that was booked before
    or a deleted account.
    """
    kind = "credit" if amount_micros > 0 else "debit"
    led_id = new_id("led", now_seconds, random.randbytes)
    row = (led_id, account_id, kind, amount_micros, description, reference, now_seconds, *call)
    try:
        statement = """
            INSERT INTO ledger (id, account_id, kind, amount_micros, description, reference, created_at,
                model, input_tokens, output_tokens, request_id, key_id, cached_input_tokens, month,
                balance_after_micros)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
                (SELECT balance_micros FROM wallets WHERE account_id = ?2) + ?4)
        """
        tx.execute(statement, row)
    except sqlite3.IntegrityError as error:
        if "in_bounds" not in str(error) and "held_within_balance" not in str(error):
            raise
        if amount_micros < 0:
            raise _insufficient(tx, account_id, -amount_micros) from None
        raise ApiError("invalid_value", f"A wallet holds at most {dollars(MOST_MICROS)}.") from None


def booked(conn: sqlite3.Connection, account_id: str, reference: str) -> dict[str, Any] | None:
    """Return the account's ledger row with this reference, or None."""
    # The plus sign keeps SQLite from reading all rows of the account.
    query = "SELECT * FROM ledger WHERE +account_id = ? AND reference = ?"
    row = conn.execute(query, (account_id, reference)).fetchone()
    return None if row is None else LEDGER.make(row)


def _insufficient(conn: sqlite3.Connection, account_id: str, needed_micros: int) -> ApiError:
    found = balances(conn, account_id)
    balance_micros, held_micros = found["wallet_balance_micros"], found["held_micros"]
    return ApiError(
        "insufficient_funds",
        f"This needs {dollars(needed_micros)} ({needed_micros} micros). The wallet has {dollars(balance_micros)} "
        f"({balance_micros} micros), of which {dollars(held_micros)} ({held_micros} micros) is reserved for running "
        "requests.",
    )


# --- allowances


def allowance_due(
    conn: sqlite3.Connection, account_id: str, allowance_micros: int, now_seconds: float
) -> tuple[str, int] | None:
    """Return the month and the micros that the next hold credits, which may be 0, or None if it has nothing to note.

    The first hold of a month fills the wallet up to the allowance. After a raise, a later one adds the difference. What
    former owners of the address and the identities were given in the month counts.
    """
    found = accounts.allowance_of(conn, account_id)
    if found is None:
        return None
    last_month, given_micros = found
    month = max(month_of(now_seconds), last_month)  # the clock may have gone back
    if month == last_month and allowance_micros <= given_micros:
        return None
    balance_micros = balances(conn, account_id)["wallet_balance_micros"]
    had_micros = given_micros if month == last_month else balance_micros
    due_micros = allowance_micros - max(had_micros, given.given_before(conn, account_id, month))
    return month, max(0, min(due_micros, MOST_MICROS - balance_micros))


def top_up(tx: sqlite3.Connection, account_id: str, allowance_micros: int, now_seconds: float) -> None:
    """Credit what is due of the allowance. The schema makes a second credit for it impossible."""
    due = allowance_due(tx, account_id, allowance_micros, now_seconds)
    if due is None:
        return
    month, due_micros = due
    accounts.set_allowance(tx, account_id, month, allowance_micros)
    if due_micros:
        reference = f"allowance:{account_id}:{month}"
        # The plus sign keeps SQLite from reading all rows of the account.
        query = "SELECT count(*) FROM ledger WHERE +account_id = ? AND reference >= ? AND reference < ?"
        if times := tx.execute(query, (account_id, reference, f"{reference};")).fetchone()[0]:
            reference += f":{times + 1}"
        book(tx, account_id, due_micros, description=f"Allowance {month}", reference=reference, now_seconds=now_seconds)


def allowance(conn: sqlite3.Connection, account_id: str, allowance_micros: int, now_seconds: float) -> dict[str, Any]:
    """Return the allowance's part of `GET /billing/account`."""
    due = allowance_due(conn, account_id, allowance_micros, now_seconds)
    return {
        "allowance_micros": allowance_micros,
        "allowance_due_micros": due[1] if due else 0,
        "allowance_renews_at": end_of(month_of(now_seconds)) if allowance_micros else None,
    }


# --- deletion of an account


def close(tx: sqlite3.Connection, account_id: str) -> None:
    """Delete the wallet of an account that is being deleted, and its holds: running calls are not charged."""
    tx.execute("DELETE FROM wallets WHERE account_id = ?", (account_id,))


_DROP_THE_PERSON = """
    UPDATE ledger SET account_id = NULL, description = '', request_id = NULL, key_id = NULL
    WHERE seq IN (SELECT seq FROM ledger WHERE account_id = ?1 ORDER BY seq LIMIT ?2)
"""
delete_some = partial(run_some, _DROP_THE_PERSON)


# --- reading


def balances(conn: sqlite3.Connection, account_id: str) -> dict[str, int]:
    """Return the wallet's part of `GET /billing/account`; a deleted account has 0."""
    query = """
        SELECT balance_micros, (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = ?1)
        FROM wallets WHERE account_id = ?1
    """
    balance_micros, held_micros = conn.execute(query, (account_id,)).fetchone() or (0, 0)
    return {
        "wallet_balance_micros": balance_micros,
        "held_micros": held_micros,
        "available_micros": balance_micros - held_micros,
    }


def spendable_micros(conn: sqlite3.Connection, account_id: str, key_id: str | None, now_seconds: float) -> int:
    """Return what the next call can cost at most, by the wallet and the limits. It is negative beyond a limit."""
    month = limits.month_now(conn, account_id, now_seconds)
    left = [limit.left_micros for limit in limits.of_call(conn, account_id, key_id, month)]
    return min([balances(conn, account_id)["available_micros"], *left])


def limit_of_account(conn: sqlite3.Connection, account_id: str, now_seconds: float) -> dict[str, int | None]:
    """Return the limit's part of `GET /user/settings`; a deleted account has none."""
    query = "SELECT monthly_limit_micros, month, month_spent_micros FROM wallets WHERE account_id = ?"
    row = conn.execute(query, (account_id,)).fetchone()
    return {
        "monthly_limit_micros": row and row["monthly_limit_micros"],
        "spent_this_month_micros": spent_this_month(row, now_seconds) if row else 0,
    }


def set_limit(tx: sqlite3.Connection, account_id: str, limit_micros: int | None) -> None:
    tx.execute("UPDATE wallets SET monthly_limit_micros = ? WHERE account_id = ?", (limit_micros, account_id))


def held_in_all(conn: sqlite3.Connection) -> dict[str, int]:
    query = "SELECT count(*) AS holds, ifnull(sum(amount_micros), 0) AS held_micros FROM holds"
    return dict(conn.execute(query).fetchone())


def sums(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the number and the sum of all holds and of all wallets. It reads all wallets."""
    query = "SELECT count(*) AS wallets, ifnull(sum(balance_micros), 0) AS balance_micros FROM wallets"
    return held_in_all(conn) | dict(conn.execute(query).fetchone())


def ledger_of_request(conn: sqlite3.Connection, request_id: str) -> list[sqlite3.Row]:
    """Return the rows of a request of any account. It reads the whole ledger: 0.3 s for a million rows."""
    return conn.execute("SELECT * FROM ledger WHERE request_id = ? ORDER BY seq", (request_id,)).fetchall()


def ledger_after(conn: sqlite3.Connection, account_id: str, seq: int, limit: int) -> list[sqlite3.Row]:
    query = "SELECT * FROM ledger WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return conn.execute(query, (account_id, seq, limit)).fetchall()


_BOOKED = "id kind amount_micros balance_after_micros description reference"
_CALL = "model input_tokens cached_input_tokens output_tokens request_id key_id"
LEDGER = Table("ledger", json_of(f"{_BOOKED} {_CALL} created_at"), "ledger row", "led", order=("seq",))
