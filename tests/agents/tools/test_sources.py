"""One number for one address, and the order of sources."""

from svc.agents.tools.sources import Sources, sources_of
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


def test_given_passages_are_sources_only_where_the_text_cites_them() -> None:
    passage = FoundPassage("art_1", "a", None, 1, 1, "same")
    sources = sources_of(GivenFiles([passage, passage._replace(from_line=2)], whole=True))
    assert sources.number("https://a", "A") == 3, "their numbers are taken"
    assert sources.number_of_passage(passage._asdict()) == 1
    assert [one["number"] for one in sources.listed("See [2].")] == [2, 3]
    assert [one["number"] for one in sources.listed("See [2].", with_given=True)] == [2, 1, 3]
    assert [one["number"] for one in sources_of(GivenFiles([passage], whole=False)).listed("")] == [1]
