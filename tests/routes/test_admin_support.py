"""The support inbox of administrators."""

from functools import partial

from svc.billing import wallet
from svc.content import support
from svc.deletion.slices import begin_deletion
from tests.conftest import Service, bearer
from tests.support.admins import ask, log_of

INBOX = "/admin/support/conversations"


async def test_administrator_answers_and_closes(service: Service) -> None:
    admin, made = await service.bearer(), []
    for name in ("ada", "bob"):
        session = await service.sign_up(f"{name}@example.com")
        book = partial(wallet.book, description="", now_seconds=service.clocks.now)
        await service.state["db"].write(book, session["user"]["id"], 5_000_000)
        headers = bearer(session["access_token"])
        made.append(
            (await ask(service, "POST", "/support/conversations", headers, message=f"I am {name}")).json()["id"]
        )
    ada, bob = made
    path = f"{INBOX}/{ada}"
    first = (await ask(service, "GET", f"{INBOX}?limit=1", admin)).json()
    assert [row["id"] for row in first["data"]] == [bob] and first["has_more"] is True
    rest = (await ask(service, "GET", f"{INBOX}?after={bob}", admin)).json()["data"]
    assert [(row["id"], row["email"], row["waiting"]) for row in rest] == [(ada, "ada@example.com", True)]
    service.clocks.now += 1
    said = await ask(service, "POST", f"{path}/messages", admin, content="We look at it.")
    assert said.status_code == 201 and said.json()["role"] == "operator"
    shown = (await ask(service, "GET", path, admin)).json()
    assert [message["content"] for message in shown["messages"]] == ["I am ada", "We look at it."] and not shown[
        "waiting"
    ]
    for status in (200, 409):
        assert (await ask(service, "POST", f"{path}/close", admin)).status_code == status
    assert (await ask(service, "POST", f"{path}/messages", admin, content="?")).status_code == 409
    for status, expected in (("active", [bob]), ("closed", [ada])):
        listed = (await ask(service, "GET", f"{INBOX}?status={status}", admin)).json()["data"]
        assert [row["id"] for row in listed] == expected
    assert (await ask(service, "GET", f"{INBOX}?status=x", admin)).status_code == 400
    assert (await ask(service, "GET", f"{INBOX}/sup_x", admin)).status_code == 404
    details = {"email": "ada@example.com", "conversation": ada}
    assert await log_of(service, admin) == [("support.close", details), ("support.reply", details)]


async def test_conversations_leave_the_inbox_at_the_beginning_of_a_deletion(service: Service) -> None:
    admin, session = await service.bearer(), await service.sign_up()
    account_id, db, now = session["user"]["id"], service.state["db"], service.clocks.now
    found = await db.write(support.add_support, account_id, support.NewSupport("Help", "I am Bob"), now)
    path = f"{INBOX}/{found['id']}"
    assert (await ask(service, "GET", path, admin)).status_code == 200
    await db.write(begin_deletion, account_id, now, "operator")
    assert (await ask(service, "GET", INBOX, admin)).json()["data"] == []
    assert (await ask(service, "GET", f"{INBOX}?after={found['id']}", admin)).json()["data"] == []
    for method, where, body in (("GET", "", {}), ("POST", "/messages", {"content": "?"}), ("POST", "/close", {})):
        assert (await ask(service, method, path + where, admin, **body)).status_code == 404
