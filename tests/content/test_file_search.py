"""The search finds the right passages, and quotations are checked literally. tests/agents/tools/test_files.py has more."""

import time

import pytest

from svc.content.file_search import citations_of
from tests.conftest import Service
from tests.support import retrieval
from tests.support.cases import each

LEAST = {"=": 0.95, "~": 0.9, "!": 0.95, "?": 0.6}

LONG = "one two three four five six seven eight"
CASES = {
    f'He said "{LONG}" [1].': True,
    f'He said "{LONG.upper()}." [1]': True,
    f"\u00ab{LONG.replace(' ', '  ')}\u00bb[1]": True,
    f"> {LONG}\n\nThis is it [1].": True,
    f"> {LONG} nine\n\nThis is it [1].": False,
    f'He said "{LONG} nine" [1].': False,
    'He said "one two three" [1].': None,
    f'He said "{LONG}". Another sentence [1].': None,
    "Nothing [1]": None,
}


@each("text", list(CASES))
def test_quotation_is_verified_literally(text: str) -> None:
    source = {"number": 1, "kind": "file", "text": f"Then: {LONG}."}
    (found,) = citations_of(text, [source])
    assert found["number"] == 1 and found["verified"] is CASES[text]


def test_scripts_without_spaces_count_signs() -> None:
    signs = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u6211\u4eec\u4e00\u8d77\u53bb\u516c\u56ed\u6563\u6b65\u5427"
    source = {"number": 1, "kind": "file", "text": signs}
    assert citations_of(f"\u300c{signs}\u300d[1]\u3002", [source])[0]["verified"] is True
    assert citations_of(f"\u300c{signs[::-1]}\u300d[1]\u3002", [source])[0]["verified"] is False
    assert citations_of(f"\u300c{signs[:8]}\u300d[1]\u3002", [source])[0]["verified"] is None


@each("text", ["[1] ", "Some words [1]. ", 'He said "a b c d e f g h i j" [1] ', "> a quoted line\n[1] "])
def test_time_for_many_citations_is_proportional_to_the_text(text: str) -> None:
    source = {"number": 1, "kind": "file", "text": "a b c d e f g h i j"}
    begun = time.process_time()
    found = citations_of(text * (100_000 // len(text)), [source])
    assert len(found) > 2_900 and time.process_time() - begun < 1, "it took 13 s when each citation read the text"


def test_citations_side_by_side_support_the_same_quotation() -> None:
    sources = [{"number": number, "kind": "file", "text": "a b c d e f g h i j"} for number in (1, 2)]
    found = citations_of('It says "a b c d e f g h i j" [1] [2][1]. More [2].', sources)
    assert [one["verified"] for one in found] == [True, True, True, None]


def test_numbers_of_pages_and_unknown_numbers_are_no_citations_of_files() -> None:
    assert citations_of("[1] [2]", [{"number": 1, "kind": "web", "url": "https://x", "title": None}]) == []


@pytest.mark.slow
async def test_right_passage_is_found_for_most_questions(service: Service) -> None:
    """Print the shares with `-s`. A question without an answer has no floor: the model judges what it reads."""
    for name, outcome in (await retrieval.measure(service)).items():
        print(f"\n{name}: {outcome}", *outcome.wrong, sep="\n    ")
        for kind, least in LEAST.items():
            assert outcome.share(kind) >= least, outcome.wrong


def test_retrieval_sets_have_40_documents_and_200_questions_with_one_right_passage() -> None:
    sets = [retrieval.read_set(name) for name in retrieval.SETS]
    texts = [text for one in sets for text in one.documents.values()]
    assert [len(one.documents) for one in sets] == [20, 20] and [len(one.questions) for one in sets] == [100, 100]
    assert all(1_500 <= len(text) <= 6_000 for text in texts)
    for question in (question for one in sets for question in one.questions):
        assert len(question.searches) == (3 if question.kind == "?" else 1), question
        assert question.kind in retrieval.KINDS and (question.right is None) is (question.kind == "-")
        assert question.right is None or sum(text.count(question.right) for text in texts) == 1, question
