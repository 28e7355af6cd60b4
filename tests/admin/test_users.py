"""What administrators do with accounts, in any order: one of them always stays active."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc import audit
from svc.admin import users
from svc.auth import accounts
from svc.errors import ApiError
from tests.billing.test_wallet import empty_database

NOW = 1_790_000_000.0
CHANGES: list[dict[str, Any]] = [
    {"admin": True},
    {"admin": False},
    {"status": "suspended"},
    {"status": "active"},
    {"admin": False, "status": "active"},
    {"admin": True, "status": "suspended"},
]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*CHANGES, None]))))
def test_an_active_administrator_is_left_after_any_changes(steps: list[tuple[int, dict[str, Any] | None]]) -> None:
    conn = empty_database()
    ids = [accounts.add_account(conn, f"{number}@example.com", None, None, NOW, local=True).id for number in range(3)]
    changed = 0
    for number, change in steps:
        try:
            if change is None:
                accounts.check_admin_remains(conn, ids[number])
                accounts.mark_deleting(conn, ids[number], NOW)
            else:
                users.change_user(conn, ids[0], ids[number], change, None, NOW)
        except ApiError as error:
            assert error.code in ("last_admin", "not_found")
        rows = audit.TABLE.page(conn, None, 100, None).items
        assert len(rows) >= changed
        changed = len(rows)
        assert any(one.admin and one.status == "active" for one in accounts.all_accounts(conn))
    conn.close()


def test_operator_may_demote_the_last_administrator() -> None:
    conn = empty_database()
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW, local=True).id
    users.change_user(conn, audit.OPERATOR, account_id, {"admin": False}, None, NOW)
    assert [one.admin for one in accounts.all_accounts(conn)] == [False]
    conn.close()
