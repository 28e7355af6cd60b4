"""The rules of the money, judged by the rows and not by the triggers. Each function returns a line for each finding."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from svc.billing.wallet import PRO_MICROS
from svc.money import MICROS_PER_DOLLAR

_PRO_DOLLARS = PRO_MICROS // MICROS_PER_DOLLAR
_OF_LEDGER = {
    "wallet {0}: the balance is {1} micros, its ledger adds up to {2}": """
        SELECT wallets.account_id, balance_micros, ifnull(sum(amount_micros), 0) AS total
        FROM wallets LEFT JOIN ledger USING (account_id) GROUP BY wallets.account_id HAVING balance_micros <> total
    """,
    "ledger {0}: the balance after it is {1} micros, it should be {2}": """
        SELECT id, balance_after_micros, due FROM (
            SELECT id, balance_after_micros,
                amount_micros + lag(balance_after_micros, 1, 0) OVER (PARTITION BY account_id ORDER BY seq) AS due
            FROM ledger WHERE account_id IN (SELECT account_id FROM wallets)
        ) WHERE balance_after_micros <> due
    """,
    "wallet {0}: balance {1} and held {2} micros are out of bounds": """
        SELECT wallets.account_id, balance_micros, ifnull(sum(amount_micros), 0) AS held
        FROM wallets LEFT JOIN holds USING (account_id) GROUP BY 1 HAVING held NOT BETWEEN 0 AND balance_micros
    """,
    "account {0} has no wallet": """
        SELECT id FROM accounts WHERE id NOT IN (SELECT account_id FROM wallets) AND deleting_at IS NULL
    """,
    "the ledger has {0} rows up to number {1}": """
        SELECT count(*), max(seq) FROM ledger HAVING count(*) <> ifnull(max(seq), 0)
    """,
    f"account {{0}} has paid {_PRO_DOLLARS} dollars at once and is not pro": f"""
        SELECT DISTINCT accounts.id FROM accounts JOIN ledger ON ledger.account_id = accounts.id
        WHERE tier = 'free' AND amount_micros >= {PRO_MICROS} AND deleting_at IS NULL
    """,
    f"account {{0}} is pro and has never paid {_PRO_DOLLARS} dollars at once": f"""
        SELECT id FROM accounts
        WHERE tier = 'pro' AND deleting_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM ledger WHERE account_id = accounts.id AND amount_micros >= {PRO_MICROS})
    """,
    "account {0}: its allowances of {1} are {2} micros, over {3}": """
        SELECT accounts.id, allowance_month, sum(amount_micros) AS credited, allowance_given_micros
        FROM accounts JOIN ledger ON reference >= 'allowance:' || accounts.id || ':' || allowance_month
            AND reference < 'allowance:' || accounts.id || ':' || allowance_month || ';'
        GROUP BY accounts.id HAVING credited > allowance_given_micros
    """,
    "ledger {0}: {1} is not the next allowance of account {2}": """
        SELECT ledger.id, reference, ifnull(account_id, '(deleted)') FROM (
            SELECT *, row_number() OVER (PARTITION BY due ORDER BY seq) AS number FROM (
                SELECT *, substr(reference, 1, instr(substr(reference, 11), ':') + 17) AS due
                FROM ledger WHERE reference GLOB 'allowance:*')
        ) AS ledger LEFT JOIN accounts ON accounts.id = account_id
        WHERE reference <> due || iif(number > 1, ':' || number, '') OR amount_micros < 0 OR model IS NOT NULL
            OR (deleting_at IS NULL AND due NOT BETWEEN 'allowance:' || account_id || ':' AND
                'allowance:' || account_id || ':' || ifnull(allowance_month, ''))
    """,
    "ledger {0}: its account is deleted, and it still has data of the person": """
        SELECT id FROM ledger
        WHERE account_id IS NULL AND (description <> '' OR request_id IS NOT NULL OR key_id IS NOT NULL)
    """,
}
_OF_PAYMENTS = {
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
    "refunds of {0}: {1} micros are booked, and {2} were paid": """
        SELECT payment_id, booked_micros, paid_micros FROM refunds WHERE booked_micros > paid_micros
    """,
    "ledger {0} books a refund of {1}, which is no payment of its account": """
        SELECT id, payment FROM (
            SELECT id, account_id, substr(reference, 8, instr(substr(reference, 8), ':') - 1) AS payment
            FROM ledger WHERE reference GLOB 'refund:*'
        ) AS booked
        WHERE NOT EXISTS (
            SELECT 1 FROM refunds WHERE payment_id = payment AND (account_id IS NULL
                OR account_id IS booked.account_id))
    """,
    "ledger {0} credits {1}, which is no payment of the processor": """
        SELECT ledger.id, reference FROM ledger LEFT JOIN payment_events ON payment_events.id = substr(reference, 9)
        WHERE reference GLOB 'payment:*' AND (credited IS NOT 0 OR ledger.amount_micros < 0)
    """,
}


def _newest_month(columns: str) -> str:
    """Return a query for the newest month with calls, and the sum of their debits, by the `columns` of the ledger."""
    month = "ifnull(month, strftime('%Y-%m', CAST(created_at AS INTEGER), 'unixepoch'))"
    return f"""
        SELECT {columns}, max(month) AS month, micros FROM (
            SELECT {columns}, {month} AS month, -sum(amount_micros) AS micros
            FROM ledger WHERE account_id IS NOT NULL AND model IS NOT NULL GROUP BY {columns}, {month}
        ) GROUP BY {columns}
    """


_OF_USAGE = {
    "month {0}, model {1}: the ledger has debits of {2} micros, the usage of all accounts and groups costs {3}": """
        SELECT month, model, sum(debited) AS debited_micros, sum(used) AS used_micros FROM (
            SELECT strftime('%Y-%m', CAST(created_at AS INTEGER), 'unixepoch') AS month, model,
                -amount_micros AS debited, 0 AS used
            FROM ledger WHERE model IS NOT NULL
            UNION ALL SELECT substr(day, 1, 7), model, 0, cost_micros FROM usage_days
            UNION ALL SELECT substr(day, 1, 7), model, 0, cost_micros FROM deleted_usage
        ) GROUP BY 1, 2 HAVING debited_micros <> used_micros
    """,
    "usage of {0}, model {1}, key {2!r}: the ledger has debits of {3} micros, the usage costs {4}": """
        SELECT account_id, model, key_id, sum(debited) AS debited_micros, sum(used) AS used_micros FROM (
            SELECT account_id, model, ifnull(key_id, '') AS key_id, -amount_micros AS debited, 0 AS used
            FROM ledger WHERE account_id IS NOT NULL AND model IS NOT NULL
            UNION ALL SELECT account_id, model, key_id, 0, cost_micros FROM usage_days
        ) WHERE account_id IN (SELECT account_id FROM wallets) GROUP BY 1, 2, 3 HAVING debited_micros <> used_micros
    """,
    "key {0}: its spent_micros is {1}, the ledger has debits of {2} micros": """
        SELECT api_keys.id, spent_micros, ifnull(debited, 0) AS total
        FROM api_keys LEFT JOIN (
            SELECT account_id, key_id, -sum(amount_micros) AS debited FROM ledger WHERE key_id IS NOT NULL GROUP BY 1, 2
        ) AS debits ON debits.key_id = api_keys.id AND debits.account_id = api_keys.account_id
        WHERE api_keys.account_id IN (SELECT account_id FROM wallets) AND spent_micros <> total
    """,
    "wallet {0}: it has {1} micros of spending in {2}, the ledger {3} in {4}": f"""
        SELECT wallets.account_id, month_spent_micros, wallets.month, ifnull(micros, 0) AS due_micros, newest.month
        FROM wallets LEFT JOIN ({_newest_month("account_id")}) AS newest USING (account_id)
        WHERE (month_spent_micros, wallets.month) IS NOT (due_micros, newest.month)
    """,
    "key {0}: it has {1} micros of spending in {2}, the ledger {3} in {4}": f"""
        SELECT api_keys.id, month_spent_micros, api_keys.month, ifnull(micros, 0) AS due_micros, newest.month
        FROM api_keys LEFT JOIN ({_newest_month("account_id, key_id")}) AS newest
            ON newest.key_id = api_keys.id AND newest.account_id = api_keys.account_id
        WHERE api_keys.account_id IN (SELECT account_id FROM wallets)
            AND (month_spent_micros, api_keys.month) IS NOT (due_micros, newest.month)
    """,
}


def _found(conn: sqlite3.Connection, rules: Mapping[str, str]) -> list[str]:
    return [finding.format(*row) for finding, query in rules.items() for row in conn.execute(query)]


broken_payments = partial(_found, rules=_OF_PAYMENTS)
broken_usage = partial(_found, rules=_OF_USAGE)  # for the newest schema only


def broken(conn: sqlite3.Connection) -> list[str]:
    return [*_found(conn, _OF_LEDGER), *_broken_chains(conn), *broken_payments(conn)]


def _broken_chains(conn: sqlite3.Connection) -> Iterator[str]:
    """Find missing or changed rows in the ledger of deleted accounts, which do not name their account any more.

    The balance before a row must be 0, for the first row of an account, or the balance after an earlier row.
    """
    query = "SELECT id, amount_micros, balance_after_micros FROM ledger WHERE account_id IS NULL ORDER BY seq"
    ends: Counter[int] = Counter()
    for row_id, amount_micros, after_micros in conn.execute(query):
        before_micros = after_micros - amount_micros
        if before_micros and not ends[before_micros]:
            yield f"ledger {row_id}: its account is deleted, and no earlier row ended at {before_micros} micros"
        elif before_micros:
            ends[before_micros] -= 1
        ends[after_micros] += 1
