"""svc/content/remembered.py: what recall may find. The rules through HTTP are in tests/routes/test_memory.py."""

from svc.content import history, remembered
from tests.content.test_history import NOW, ada, bob, conn, say, texts  # noqa: F401 - fixtures


def test_forgotten_message_is_left_out_for_its_account_only(conn, ada, bob) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    one = say(conn, ada, "My zebra is called Zora.")
    say(conn, bob, "My zebra is called Zora.")
    remembered.forget(conn, ada, one.id, NOW)
    assert texts(conn, ada, "my zebra") == [] and len(texts(conn, bob, "my zebra")) == 1
    assert [item["id"] for item in remembered.newest(conn, ada, 9, None, True).items] == [one.id]
    remembered.remember(conn, ada, one.id)
    assert len(texts(conn, ada, "my zebra")) == 1


def test_long_messages_are_cut_and_system_messages_left_out(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    say(conn, ada, "word " * 1_000)
    history.add_message(conn, ada, role="system", content="Be brief.", now_seconds=NOW, run_id="run_1")
    (item,) = remembered.newest(conn, ada, 9, None, False).items
    assert len(item["text"]) == 2_000 and item["text"].endswith("\u2026")
