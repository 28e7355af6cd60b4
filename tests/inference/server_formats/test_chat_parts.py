"""svc/inference/server_formats/chat_parts.py: what the requests of both formats have in common."""

from typing import Any

from svc.inference.server_formats.chat_parts import base64_of, limit_of, mark_of, stops_of, tools_of
from tests.support.cases import each


@each(
    "fields, limit",
    [
        ({}, None),
        ({"max_tokens": 9}, 9),
        ({"max_tokens": 9, "max_completion_tokens": 5}, 5),
        ({"max_tokens": -1}, None),
        ({"max_tokens": 0, "max_completion_tokens": None}, None),
    ],
)
def test_least_limit_counts(fields: dict[str, Any], limit: int | None) -> None:
    assert limit_of(fields) == limit


@each("stop, stops", [(None, []), ("x", ["x"]), (["x", "", "y"], ["x", "y"]), ([], [])])
def test_stops_are_a_list_without_empty_ones(stop: Any, stops: list[str]) -> None:
    assert stops_of({"stop": stop}) == stops


@each(
    "url, found",
    [
        ("data:image/png;base64,AA", ("image/png", "AA")),
        ("DATA:Image/PNG;charset=x;Base64,AA", ("image/png", "AA")),
        ("data:image/png,AA", None),
        ("https://a.example/,;base64", None),
        (None, None),
    ],
)
def test_data_address_has_a_type_and_base64(url: Any, found: Any) -> None:
    assert base64_of(url) == found


def test_mark_of_the_first_holder_counts() -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert mark_of({}, mark) == mark and mark_of({"cache_control": {"type": "other"}}, None) == {}
    assert mark_of({"cache_control": {"type": "ephemeral", "ttl": "9h"}}) == {"cache_control": {"type": "ephemeral"}}


def test_hosted_tools_are_not_offered() -> None:
    found = tools_of(
        {"tools": [{"type": "web_search"}, {"type": "function", "function": {"name": "f"}}]}, ("function",)
    )
    assert list(found.offered) == ["f"] and found.mode is None
