"""Usage is exact: by model, by key, by group and in the ledger, for any calls in any order, also of
deleted accounts.
"""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.auth import accounts, tokens
from svc.billing import invariants, report, spending, usage, wallet
from svc.billing.usage import add_call
from svc.ids import day_of
from tests.billing.test_wallet import empty_database

NOW = 1_790_000_000.0
DAYS = [NOW, NOW + 86_400, NOW + 30 * 86_400]
CALLS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1]),  # a session, or one of two keys
        st.sampled_from(["free/m", "paid/m", "paid/n"]),
        st.sampled_from(DAYS),
        st.integers(0, 10**9),
        st.integers(0, 2 * 10**9),
        st.sampled_from(["", "lab"]),
    ),
    max_size=30,
)


@given(CALLS)
def test_all_views_of_usage_have_the_same_sum(calls: list[tuple[Any, ...]]) -> None:
    conn = empty_database()
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    keys = [tokens.add_key(conn, account_id, "k", tokens.new_key_token(), NOW + number)["id"] for number in (0, 1)]
    wallet.book(conn, account_id, 10**12, description="", now_seconds=NOW)
    spent = {None: 0, **dict.fromkeys(keys, 0)}
    for number, (which, model, at, micros, count, group) in enumerate(calls):
        key_id = None if which is None else keys[which]
        micros = 0 if model == "free/m" else micros
        if micros:
            wallet.hold(conn, account_id, f"hold_{number}", micros, at)
            counts = {"model": model, "input_tokens": count, "output_tokens": count}
            booked = {"request_id": "r", "key_id": key_id, "now_seconds": at}
            assert wallet.settle(conn, account_id, f"hold_{number}", micros, **counts, **booked) == micros
        add_call(conn, (account_id, key_id, model, day_of(at), group), count, count, micros)
        spent[key_id] += micros
    by_model, by_key = (usage.usage_page(conn, account_id, "2026-01-01", by=by).items for by in ("model", "key"))
    assert (
        sum(row["cost_micros"] for row in by_model) == sum(row["cost_micros"] for row in by_key) == sum(spent.values())
    )
    assert sum(row["requests"] for row in by_model) == sum(row["requests"] for row in by_key) == len(calls)
    for key_id, micros in spent.items():
        assert sum(row["cost_micros"] for row in by_key if row["key_id"] == key_id) == micros
    assert {key["id"]: key["spent_micros"] for key in tokens.keys_after(conn, account_id, None, 9, NOW)} == {
        key: spent[key] for key in keys
    }
    for deleted in (False, True):
        assert invariants.broken(conn) == invariants.broken_usage(conn) == []
        for month, by in itertools.product(("2026-09", "2026-10"), spending.KINDS):
            due = {"requests": 0, "cost_micros": 0}
            expected: dict[str, dict[str, int]] = {}
            for which, model, at, micros, _, group in calls:
                cost = 0 if model == "free/m" else micros
                if day_of(at)[:7] == month and (cost or not deleted):
                    names = {
                        "model": model,
                        "day": day_of(at),
                        "group": group or "(no group)",
                        "user": "ada@example.com",
                    }
                    names["key"] = "(sessions)" if which is None else keys[which]
                    gone = {"user": f"(deleted {account_id})", "key": "(deleted accounts)"} if deleted else {}
                    for sums in (
                        due,
                        expected.setdefault(gone[by] if by in gone else names[by], dict.fromkeys(due, 0)),
                    ):
                        sums["requests"], sums["cost_micros"] = sums["requests"] + 1, sums["cost_micros"] + cost
            rows, total, _ = spending.dearest(conn, spending.month_period(month), [by])
            if not deleted:  # else free calls count where a paid one is in the same row
                assert {row["key"]: {name: row[name] for name in due} for row in rows} == expected
            assert {row["key"]: row["cost_micros"] for row in rows} == {
                key: sums["cost_micros"] for key, sums in expected.items()
            }
            assert total["cost_micros"] == due["cost_micros"]
        accounts.delete_account(conn, account_id)


def test_cached_input_is_in_all_views_and_stays_after_its_account() -> None:
    conn = empty_database()
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    wallet.book(conn, account_id, 100, description="", now_seconds=NOW)
    for number, cached in enumerate((4, 0, 3)):
        wallet.hold(conn, account_id, f"hold_{number}", 7, NOW)
        counts = {"input_tokens": 5, "output_tokens": 1, "cached_input_tokens": cached}
        booked = {"model": "m", "request_id": "r", "key_id": None, "now_seconds": NOW}
        wallet.settle(conn, account_id, f"hold_{number}", 7, **counts, **booked)  # type: ignore[arg-type]
        add_call(conn, (account_id, None, "m", day_of(NOW), ""), 5, 1, 7, cached_input_tokens=cached)
    for by in ("model", "key"):
        assert [
            row["cached_input_tokens"] for row in usage.usage_page(conn, account_id, "2026-01-01", by=by).items
        ] == [7]
    ledger = wallet.LEDGER.page(conn, account_id, 9, None).items
    assert [row["cached_input_tokens"] for row in ledger] == [3, 0, 4, None]
    assert ledger[0]["description"] == "m: 5 input (3 cached) and 1 output tokens"
    for _ in ("before its deletion", "after it"):
        rows, total, _ = spending.dearest(conn, spending.month_period("2026-09"), ["model"])
        assert (rows[0]["cached_input_tokens"], total["cached_input_tokens"]) == (7, 7)
        spent = {line.part: line for line in report.lines(conn, *report.month_bounds("2026-09"))}
        assert spent["spent, by model"].cached_input_tokens == 7
        (line,) = report.usage_lines(conn, spending.month_period("2026-09"), ["model"])
        assert (line.input_tokens, line.output_tokens, line.micros, line.cached_input_tokens) == (15, 3, 21, 7)
        accounts.delete_account(conn, account_id)
    assert invariants.broken(conn) == invariants.broken_usage(conn) == []


def test_list_beyond_its_bound_has_more() -> None:
    conn = empty_database()
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    add_call(conn, (account_id, None, "m", day_of(NOW), ""), 1, 1, 0)
    (columns,) = conn.execute("SELECT group_concat(name) FROM pragma_table_info('usage_days')").fetchone()
    others = columns.replace("model", "'m' || i")
    count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
    conn.execute(f"INSERT INTO usage_days ({columns}) {count} SELECT {others} FROM usage_days, n")
    assert not usage.usage_page(conn, account_id, "2026-01-01").has_more
    add_call(conn, (account_id, None, "n", day_of(NOW), ""), 1, 1, 0)
    page = usage.usage_page(conn, account_id, "2026-01-01")
    assert (len(page.items), page.has_more) == (10_000, True)
    after = page.items[-1]["id"]
    assert [row["model"] for row in usage.usage_page(conn, account_id, "2026-01-01", after=after).items] == ["n"]
    assert not usage.usage_page(conn, account_id, "2026-01-01", by="key").has_more
