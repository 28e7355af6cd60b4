"""One number for one address, and the order of sources."""

from svc.agents.tools.sources import Sources


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
