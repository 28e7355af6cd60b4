"""One number for one address, and the order of sources."""

import orjson

from svc.agents.tools.sources import STORED_BYTES, Sources, sources_of
from svc.content.file_search import FoundPassage
from svc.content.given_files import GivenFiles


def test_address_keeps_its_number_and_gets_a_title_later() -> None:
    sources = Sources()
    assert [sources.number("https://a", None), sources.number("https://b", "B"), sources.number("https://a", "A")] == [
        1,
        2,
        1,
    ]
    assert [(one["number"], one["url"], one["title"]) for one in sources.listed("")] == [
        (1, "https://a", "A"),
        (2, "https://b", "B"),
    ]
    assert sources.number("https://b", "other") == 2 and sources.listed("")[1]["title"] == "B"


def test_cited_sources_come_first_and_unknown_numbers_change_nothing() -> None:
    sources = Sources()
    for name in "abc":
        sources.number(name, name)
    assert [one["number"] for one in sources.listed("as [3] says [12345] [9] [x]")] == [3, 1, 2]


def test_sources_of_an_answer_that_goes_on_keep_their_numbers() -> None:
    before = Sources()
    before.number("a", "A")
    before.number("b", "B")
    after = Sources(before.listed("[2]"))
    assert (after.number("b", None), after.number("c", None)) == (2, 3)


def test_what_is_stored_is_bounded_and_has_the_cited_ones_first() -> None:
    sources = Sources()
    for number in range(1, 400):
        sources.number_of_passage({"file": "art_1", "name": "a", "from_line": number, "text": "x" * 1_000})
    stored = sources.stored("as [399] says")
    assert [one["number"] for one in stored[:3]] == [399, 1, 2]
    assert STORED_BYTES - 2_000 < len(orjson.dumps(stored)) <= STORED_BYTES + len(stored)


def test_source_that_no_text_can_cite_is_not_kept() -> None:
    sources = Sources()
    for number in range(1, 10_000):
        assert sources.number(f"https://{number}", None) == number
    assert sources.number("https://more", None) == 0 and len(sources.listed("")) == 9_999
    assert sources.number("https://7", None) == 7


def test_given_passages_are_sources_only_where_the_text_cites_them() -> None:
    passage = FoundPassage("art_1", "a", None, 1, 1, "same")
    sources = sources_of(GivenFiles([passage, passage._replace(from_line=2)], whole=True))
    assert sources.number("https://a", "A") == 3, "their numbers are taken"
    assert sources.number_of_passage(passage._asdict()) == 1
    assert [one["number"] for one in sources.listed("See [2].")] == [2, 3]
    assert [one["number"] for one in sources.listed("See [2].", with_given=True)] == [2, 1, 3]
    assert [one["number"] for one in sources_of(GivenFiles([passage], whole=False)).listed("")] == [1]
