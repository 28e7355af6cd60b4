"""The search over conversations: every word somewhere in one or its title, the last as a beginning, and where they
stand.
"""

import pytest

from svc.content import conversations, search
from svc.errors import ApiError
from tests.content.test_history import NOW, ada, bob, conn  # noqa: F401 - fixtures


def talk(conn, account_id: str, at: float, title: str | None, *contents: str) -> str:  # type: ignore[no-untyped-def]  # noqa: F811
    made = conversations.add_conversation(conn, account_id, NOW + at, title=title)
    for content in contents:
        conversations.add_message(conn, account_id, made.id, role="user", content=content, now_seconds=NOW + at)
    return made.id


def found(conn, account_id: str, query: str) -> list[str]:  # type: ignore[no-untyped-def]  # noqa: F811
    return [match["id"] for match in search.search(conn, account_id, query, 20, None, None)["data"]]


def test_words_may_be_in_different_messages_and_the_title(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    one = talk(conn, ada, 0, "Trip to Lisbon", "the flight leaves early", "we stay in a hotel")
    talk(conn, ada, 1, "Trip to Rome", "the flight leaves late")
    assert found(conn, ada, "hotel flight lisbon ") == [one]
    assert found(conn, ada, "hotel rome ") == []


def test_the_last_word_may_be_a_beginning_and_the_others_are_whole(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    one = talk(conn, ada, 0, "x", "the restaurant was lovely")
    assert found(conn, ada, "lovely restau") == [one] and found(conn, ada, "restau lovely") == []
    assert found(conn, ada, "restau ") == [], "a blank ends the word"


def test_results_are_ordered_by_last_use_across_pages(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    ids = [talk(conn, ada, at, None, "zebra") for at in (1, 3, 2)]
    conversations.add_message(conn, ada, ids[0], role="user", content="again", now_seconds=NOW + 9)
    wanted = [ids[0], ids[1], ids[2]]
    assert found(conn, ada, "zebra") == wanted
    first = search.search(conn, ada, "zebra", 1, None, None)
    second = search.search(conn, ada, "zebra", 2, wanted[0], None)
    assert [found["has_more"] for found in (first, second)] == [True, False]
    assert [match["id"] for match in second["data"]] == wanted[1:]
    between = talk(conn, ada, 2.5, None, "lion")  # without the word, as an item that was changed meanwhile
    assert [match["id"] for match in search.search(conn, ada, "zebra", 9, between, None)["data"]] == [ids[2]]
    with pytest.raises(ApiError):
        search.search(conn, ada, "zebra", 1, "conv_lion", None)


def test_matches_are_parts_of_the_whole_text(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(conn, ada, 0, "Zebras in Zürich", "many words " * 300 + "the ZEBRA of zurich sleeps " + "and more " * 300)
    (match,) = search.search(conn, ada, "zurich zebra", 20, None, None)["data"]
    title, message = match["matches"]
    assert title == {
        "message_id": None,
        "parts": [
            {"text": "Zebras", "found": True},
            {"text": " in ", "found": False},
            {"text": "Zürich", "found": True},
        ],
    }
    assert [part["text"] for part in message["parts"] if part["found"]] == ["ZEBRA", "zurich"]
    assert message["message_id"].startswith("msg_") and len("".join(part["text"] for part in message["parts"])) <= 200


def test_search_finds_only_the_accounts_messages(conn, ada, bob) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(conn, ada, 0, "zebra", "zebra")
    assert found(conn, bob, "zebra") == [] and found(conn, bob, "") == []
