"""Quotations are checked literally. tests/agents/tools/test_files.py has the search."""

from svc.content.file_search import citations_of
from tests.support.cases import each

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


def test_numbers_of_pages_and_unknown_numbers_are_no_citations_of_files() -> None:
    assert citations_of("[1] [2]", [{"number": 1, "kind": "web", "url": "https://x", "title": None}]) == []
