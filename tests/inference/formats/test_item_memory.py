"""svc/inference/formats/item_memory.py: items are kept for an hour, within bounds for each account and for all."""

import orjson

from svc.errors import ApiError
from svc.inference.formats import item_memory
from svc.inference.formats.item_memory import ItemMemory


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def known(memory: ItemMemory, account_id: str, *item_ids: str) -> list[str]:
    found = []
    for item_id in item_ids:
        try:
            memory.item(account_id, item_id, "input[0].id")
        except ApiError as error:
            assert error.status == 404 and item_id in str(error) and "store: false" in str(error)
        else:
            found.append(item_id)
    return found


def test_item_belongs_to_its_account_for_an_hour() -> None:
    clock = Clock()
    memory = ItemMemory(clock)
    memory.add("user_1", {"msg_1": orjson.dumps({"id": "msg_1"})})
    assert memory.item("user_1", "msg_1", "input[0].id") == {"id": "msg_1"}
    assert known(memory, "user_2", "msg_1") == [] == known(memory, "user_1", "msg_2")
    clock.now = item_memory.KEPT_SECONDS
    assert known(memory, "user_1", "msg_1") == []
    memory.add("user_2", {})
    assert memory.owners() == set()


def test_a_deleted_account_leaves_no_items() -> None:
    memory = ItemMemory(Clock())
    for account_id in ("user_1", "user_2"):
        memory.add(account_id, {"msg_1": b"{}"})
    memory.delete_account("user_1")
    memory.delete_account("user_3")
    assert [known(memory, account_id, "msg_1") for account_id in ("user_1", "user_2")] == [[], ["msg_1"]]
    memory.delete_account("user_2")
    assert memory.owners() == set()


def test_an_account_keeps_its_last_items() -> None:
    memory = ItemMemory(Clock())
    for number in range(300):
        memory.add("user_1", {f"msg_{number}": b"{}"})
    assert known(memory, "user_1", "msg_43", "msg_44", "msg_299") == ["msg_44", "msg_299"]
    memory.add("user_1", {"big": b'"%b"' % (b"x" * (item_memory.ACCOUNT_BYTES - 1000))})
    assert known(memory, "user_1", "msg_299", "big") == ["msg_299", "big"]
    memory.add("user_1", {"huge": b'"%b"' % (b"x" * item_memory.ACCOUNT_BYTES)})
    assert known(memory, "user_1", "msg_299", "big", "huge") == []


def test_all_accounts_together_are_bounded() -> None:
    memory = ItemMemory(Clock())
    item = b'"%b"' % (b"x" * (item_memory.ACCOUNT_BYTES - 1000))
    fit = item_memory.ALL_BYTES // item_memory.ACCOUNT_BYTES
    for number in range(2 * fit - 1):
        memory.add(f"user_{number}", {"msg": item})
        if number % 2:
            memory.delete_account(f"user_{number}")
    assert memory.owners() == {f"user_{number}" for number in range(0, 2 * fit, 2)}, "what is deleted takes no room"
    for number in range(1, 2 * fit, 2):
        memory.add(f"user_{number}", {"msg": item})
    last = [number for number in range(1, 2 * fit, 2) if known(memory, f"user_{number}", "msg")]
    assert len(last) == fit == len(memory.owners())
