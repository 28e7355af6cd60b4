"""The inbox of live support in the database."""

from svc import audit
from svc.admin import support as inbox
from svc.auth import accounts
from svc.content import support
from tests.billing.test_wallet import empty_database

NOW = 1_790_000_000.0


def test_conversation_waits_until_the_operator_has_answered() -> None:
    conn = empty_database()
    ada = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    support_id = support.add_support(conn, ada, support.NewSupport("Help", None), NOW)["id"]
    waiting = []
    for role in (None, "user", "operator", "user"):
        if role == "operator":
            inbox.reply(conn, audit.OPERATOR, support_id, "yes?", NOW)
        elif role:
            support.add_message(conn, ada, support_id, role, "hello", NOW)
        waiting.append(inbox.inbox_page(conn, "active", 20, None).items[0]["waiting"])
    assert waiting == [True, True, False, True]
    conn.close()
