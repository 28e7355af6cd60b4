"""The audit log: who may write, and what remains of a person."""

from svc import audit
from svc.auth import accounts
from tests.conftest import Service


async def test_names_leave_the_log_with_their_account_and_the_rows_stay(service: Service) -> None:
    db, now = service.state["db"], service.clocks.now
    ada, bob = [(await service.sign_up(f"{name}@example.com"))["user"]["id"] for name in ("ada", "bob")]
    for person in (ada, bob):
        await db.write(audit.add, now, bob, "user.change", person, {"name": "Somebody", "status": "active"})
    await db.write(audit.add, now, audit.OPERATOR, "reload")
    await db.write(accounts.mark_deleting, ada, now)
    reload, of_bob, of_ada = (await db.read(audit.TABLE.page, None, 20, None)).items
    assert of_ada["details"] == {"status": "active"} and (of_ada["actor"], of_ada["subject"]) == (bob, ada)
    assert of_bob["details"] == {"email": "bob@example.com", "name": "Somebody", "status": "active"}
    assert (reload["actor"], reload["subject"], reload["details"]) == ("operator", None, {})
