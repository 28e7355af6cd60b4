"""The search over conversations: every word somewhere in one or its title, the last as a beginning, and where they
stand.
"""

import pytest

from svc.content import conversations, search
from svc.errors import ApiError
from tests.content.test_history import NOW, ada, bob, conn  # noqa: F401 - fixtures
from tests.support.cases import each


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
        "text": "Zebras in Zürich",
        "parts": [
            {"text": "Zebras", "found": True},
            {"text": " in ", "found": False},
            {"text": "Zürich", "found": True},
        ],
    }
    assert [part["text"] for part in message["parts"] if part["found"]] == ["ZEBRA", "zurich"]
    assert message["message_id"].startswith("msg_") and len("".join(part["text"] for part in message["parts"])) <= 200


def test_equal_title_comes_first_then_words_side_by_side_then_in_one_message_then_apart(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    equal = talk(conn, ada, 0, "Question 42", "nothing of it")
    message = talk(conn, ada, 1, "x", "**Question 42** about topic 5")
    title = talk(conn, ada, 2, "My question 42 again", "nothing of it")
    begins = talk(conn, ada, 3, "x", "Question 429 about topic 6", "Answer 429")
    one = talk(conn, ada, 4, "x", "42 times a question")
    apart = talk(conn, ada, 5, "x", "a question", "Answer 429")
    wanted = [equal, title, message, begins, one, apart]
    assert found(conn, ada, "Question 42") == wanted
    assert found(conn, ada, "question  42") == wanted
    pages, after = [], None
    while len(pages) < 6:
        page = search.search(conn, ada, "Question 42", 2, after, None)
        pages += [item["id"] for item in page["data"]]
        after = pages[-1]
        assert page["has_more"] == (len(pages) < 6)
    assert pages == wanted


def test_message_with_the_words_side_by_side_is_shown(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(conn, ada, 0, None, "Question 42 about topic 5", "a question without 42", "Answer 429")
    (item,) = search.search(conn, ada, "Question 42", 20, None, None)["data"]
    assert item["matches"][0]["text"] == "Question 42 about topic 5"


def test_snippet_is_plain_text(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(
        conn,
        ada,
        0,
        "x",
        "## A **zebra**\n\n- is `striped`, see [the zoo](http://zoo.example/a_b)\n\n| a | b |\n|---|---|\n| 1 | snake_case |",
    )
    (item,) = search.search(conn, ada, "zebra", 20, None, None)["data"]
    (match,) = item["matches"]
    assert match["text"] == "A zebra is striped, see the zoo a b 1 snake_case"
    assert "".join(part["text"] for part in match["parts"]) == match["text"]


@each(("query", "text"), [("京都大学", "京都の大学と都大路"), ("电影院", "电影和影院")])
def test_signs_without_spaces_must_be_neighbours(conn, ada, query: str, text: str) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(conn, ada, 0, text, text)
    one = talk(conn, ada, 1, "x", f"在{query}前")
    assert found(conn, ada, query) == [one]


def test_search_finds_only_the_accounts_messages(conn, ada, bob) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    talk(conn, ada, 0, "zebra", "zebra")
    assert found(conn, bob, "zebra") == [] and found(conn, bob, "") == []
