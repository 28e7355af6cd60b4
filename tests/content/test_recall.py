"""Memory recalls what bears on a question, in other forms and misspelt too, and is silent where nothing was said of it."""

from collections import Counter

import pytest

from svc.content import answers, conversations, history, recall
from svc.content.answers import AnswerDetails
from tests.bench_recall import FOLDER, measure, read_questions
from tests.content.test_history import NOW, ada, bob, conn, say, texts  # noqa: F401 - fixtures

LEAST = {"=": 0.98, "~": 0.8, "?": 0.75, "-": 0.95}


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    """How much of each kind of question came out right, in histories of 300 messages in six languages."""
    hits, asked = Counter[str](), Counter[str]()
    for path in FOLDER.glob("*.txt"):
        result = measure(read_questions(path), 300)
        hits += result.hits
        asked += result.asked
    assert sum(asked.values()) >= 200
    return {kind: hits[kind] / asked[kind] for kind in asked}


@pytest.mark.parametrize("kind", LEAST)
def test_most_facts_are_recalled_and_most_unrelated_questions_recall_nothing(shares: dict[str, float], kind: str) -> None:
    assert shares[kind] >= LEAST[kind]


def test_a_passage_tells_the_day_and_the_speaker(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    history.add_message(conn, ada, role="assistant", content="Rex is a beagle.", now_seconds=NOW, run_id="run_1")
    (found,) = recall.matching_passages(conn, ada, "what breed is Rex")
    assert found.line() == "[2026-09-21, the assistant said] Rex is a beagle."
    assert found.as_json() == {
        "message_id": found.message_id,
        "text": "Rex is a beagle.",
        "role": "assistant",
        "source": "run_1",
        "created_at": "2026-09-21T14:13:20.000Z",
    }


def test_all_passages_together_have_two_thousand_characters_at_most(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    for number in range(9):
        say(conn, ada, f"zebra {number} " + "and so on " * 80)
    found = recall.matching_passages(conn, ada, "my zebra")
    assert 2 <= len(found) <= 5 and sum(len(passage.line()) for passage in found) <= 2_000


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I am allergic to nuts.", "which allergies do I have"),
        ("Der Zahnarzttermin ist am Montag.", "wann muss ich zum Zahnarzt"),
        ("Мою кошку зовут Муся.", "где моя кошка"),
        ("My landlord is Mr Castellano.", "castelano phone"),
        ("我对海鲜过敏", "海鲜我能吃吗"),
        ("My name is Ada.", "What is my name?"),
    ],
)
def test_forms_compounds_misspellings_and_signs_are_known(conn, ada, said: str, asked: str) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    for number in range(60):
        say(conn, ada, f"something else number {number} entirely")
    say(conn, ada, said)
    assert texts(conn, ada, asked) == [said]


@pytest.mark.parametrize(
    "asked", ["how are you doing today?", "was kannst du", "et toi ?", "thanks!", "什么", "", "?", "the of and"]
)
def test_words_that_tell_nothing_recall_nothing(conn, ada, asked: str) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    say(conn, ada, "how are you doing today, und was kannst du, et toi, the thanks of and 什么")
    assert texts(conn, ada, asked) == []


def test_what_was_only_said_because_it_was_recalled_is_not_recalled_again(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    conversation_id = conversations.add_conversation(conn, ada, NOW).id

    def answered(text: str) -> None:
        found = [passage.as_json() for passage in recall.matching_passages(conn, ada, "what breed is my dog Rex?")]
        said = conversations.add_message(conn, ada, conversation_id, role="assistant", content=text, now_seconds=NOW)
        answers.add(conn, ada, said.id, AnswerDetails(1, 1, 0, 1, "stop", None, found))

    say(conn, ada, "My dog Rex is a beagle.")
    answered("You told me that your dog Rex is a beagle.")
    answered("Your dog Rex is a beagle.\nHunters bred Rex's ancestors for their noses.")
    assert sorted(texts(conn, ada, "what breed is my dog Rex?")) == [
        "Hunters bred Rex's ancestors for their noses.",
        "My dog Rex is a beagle.",
    ]


def test_a_question_of_before_stands_behind_what_was_told(conn, ada) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    say(conn, ada, "The zebra is called Ada.")
    say(conn, ada, "How is the zebra called?")
    assert texts(conn, ada, "the zebra, called?")[0] == "The zebra is called Ada."
