"""Web search as a hosted tool: which addresses a request permits, and what it may say."""

from typing import Any

import pytest

from svc.errors import ApiError
from svc.inference.formats import hosted_search
from svc.inference.formats.hosted_search import HostedSearch
from tests.support.cases import each


@each(
    "allowed, blocked, url, permitted",
    [
        ((), (), "https://a.example/x", True),
        (("a.example",), (), "https://a.example/x", True),
        (("a.example",), (), "https://www.a.example", True),
        (("a.example",), (), "https://nota.example/", False),
        (("a.example/docs",), (), "https://a.example/docs/1", True),
        (("a.example/docs",), (), "https://a.example/blog", False),
        ((), ("a.example",), "https://WWW.A.example/", False),
        ((), ("a.example",), "https://b.example/", True),
        (("a.example",), (), "not an address", False),
    ],
)
def test_domains_decide_which_results_there_may_be(
    allowed: tuple[str, ...], blocked: tuple[str, ...], url: str, permitted: bool
) -> None:
    assert HostedSearch(8, allowed, blocked).permits(url) is permitted


def test_domains_are_read_with_a_scheme_or_a_star() -> None:
    search = hosted_search.of_tool({"allowed_domains": ["https://A.example", "*.b.example", ""]}, "tools[0]")
    assert search.allowed == ("a.example", "b.example") and search.most_uses == hosted_search.MOST_USES
    filtered = hosted_search.of_tool({"filters": {"allowed_domains": ["a.example"]}}, "tools[0]")
    assert filtered.allowed == ("a.example",)


@each(
    "tool",
    [
        {"allowed_domains": ["a"], "blocked_domains": ["b"]},
        {"allowed_domains": "a"},
        {"blocked_domains": [1]},
        {"max_uses": 0},
        {"max_uses": "3"},
    ],
)
def test_wrong_limits_are_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        hosted_search.of_tool(tool, "tools[0]")
    assert refused.value.code == "invalid_value" and "tools[0]" in refused.value.error["param"]


def test_citations_are_places_of_known_numbers() -> None:
    found = {1: {"url": "a"}, 2: {"url": "b"}}
    assert hosted_search.citations("x [1] [3] [2]", found) == [(2, 5, {"url": "a"}), (10, 13, {"url": "b"})]
