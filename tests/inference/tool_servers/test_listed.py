"""Which tools of a list models can use, and what is cut of them."""

from typing import Any

import jsonschema
import orjson
from hypothesis import given
from hypothesis import strategies as st

from svc.inference.tool_servers.listed import accepted_names, as_text, from_text, usable
from tests.support.cases import each
from tests.support.tool_server import tool

OBJECT = {"type": "object"}


def schema_of(sent: Any) -> Any:
    """The schema that models get, or the reason why the tool is left out."""
    tools, reasons = usable([tool(inputSchema=sent)])
    return tools[0].schema if tools else reasons[0]


@each(
    "sent,expected",
    [
        (OBJECT, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"properties": {"a": True, "b": False}}, {"type": "object", "properties": {"a": {}, "b": {"not": {}}}}),
        (
            {
                **OBJECT,
                "anyOf": [{"required": ["a"]}],
                "oneOf": [],
                "$schema": "x",
                "x-y": 1,
                "additionalProperties": False,
            },
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
        (
            {"properties": {"a": {"type": ["string", "null"], "x-own": 1, "enum": ["b"], "default": None}}},
            {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["b"], "default": None}}},
        ),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
            },
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
            },
        ),
    ],
)
def test_schema_is_cut_to_what_model_servers_accept(sent: Any, expected: Any) -> None:
    assert schema_of(sent) == expected


@each(
    "sent",
    [
        None,
        [],
        "object",
        True,
        {"type": "array"},
        {"type": ["object"]},
        {"properties": []},
        {"properties": {"a b": {}}},
        {"properties": {"größe": {}}},
        {"properties": {"x" * 65: {}}},
        {"properties": {"a": 1}},
        {"properties": {"a": {"type": "text"}}},
        {"properties": {"a": {"type": []}}},
        {"properties": {"a": {"enum": []}}},
        {"properties": {"a": {"enum": {"b": 1}}}},
        {"properties": {"a": {"items": []}}},
        {"properties": {"a": {"anyOf": {}}}},
        {"properties": {"a": {"minimum": "1"}}},
        {"properties": {"a": {"minLength": 1.5}}},
        {"properties": {"a": {"pattern": 1}}},
        {"properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"properties": {"a": {"$ref": "#a"}}},
        {"required": "a"},
        {"required": [1]},
        {"properties": {"a": {"description": "x" * 17_000}}},
        {"properties": {"a": {"x-mcp-header": "a b"}}},
        {"properties": {"a": {"x-mcp-header": 1}}},
    ],
)
def test_schema_that_model_servers_refuse_leaves_the_tool_out_with_a_reason(sent: Any) -> None:
    found = schema_of(sent)
    assert isinstance(found, str) and "look" in found and found.endswith(".") and len(found) < 200


def nested(depth: int) -> Any:
    found: Any = {"type": "string"}
    for _ in range(depth):
        found = {"type": "object", "properties": {"a": found}}
    return found


def test_schema_is_bounded_in_depth_and_size() -> None:
    assert isinstance(schema_of(nested(6)), dict)
    assert "nested too deep" in schema_of(nested(20)) and "nested too deep" in schema_of(nested(600))
    wide = {f"t{number}": {"type": "string"} for number in range(2_000)}
    assert "too large" in schema_of({"properties": wide})


@each("name", ["", "a b", "a.b", "ä", "x" * 65, "a\n", None, 7, ["a"], "search_web\0"])
def test_tool_without_a_valid_name_is_left_out(name: Any) -> None:
    tools, reasons = usable([tool(), {**tool(), "name": name}, 7, None, []])
    assert [found.name for found in tools] == ["look"] and len(reasons) == 4
    assert reasons[0] == "A tool is left out. Tool 2 has no name of 1 to 64 letters, digits, - and _."


def test_list_is_bounded() -> None:
    tools, reasons = usable([tool("twice"), *(tool(f"t{number}") for number in range(100)), tool("twice")])
    assert len(tools) == 64 and reasons == ["Tools after the first 64 are not used."]
    assert usable([tool(), tool(description="other")])[1] == ["A tool is left out. look is listed twice."]
    heavy = {"properties": {"a": {"description": "x" * 15_000}}}
    tools, reasons = usable(tool(f"t{number}", inputSchema=heavy) for number in range(60))
    assert 15 < len(tools) < 20 and "too large" in reasons[0] and len(reasons) == 5
    assert len(as_text(tools)) < 600_000


@each(
    "other,same",
    [
        ({"description": "Does look. "}, False),
        ({"description": "x" * 5_000}, False),
        ({"inputSchema": OBJECT}, False),
        ({"annotations": {"readOnlyHint": True}}, False),
        ({"annotations": {"readOnlyHint": "true"}}, True),
        ({"title": "Look", "icons": [1], "_meta": {"a": 1}}, True),
        ({"inputSchema": {"properties": {"at": {"type": "string"}}, "type": "object"}}, True),
    ],
)
def test_digest_changes_with_what_steers_a_model(other: dict[str, Any], same: bool) -> None:
    (first,), (second,) = usable([tool()])[0], usable([tool(**other)])[0]
    assert (first.digest == second.digest) is same
    assert accepted_names([second], {"look": first.digest}) == ({"look"} if same else set())


def test_change_behind_the_cut_of_a_description_is_noticed() -> None:
    first, second = (usable([tool(description="x" * 5_000 + end)])[0][0] for end in ("a", "b"))
    assert first.description == second.description and first.digest != second.digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "$ref",
                    "items",
                    "anyOf",
                    "enum",
                    "required",
                    "x-mcp-header",
                    "minLength",
                    "multipleOf",
                    "a",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.just("a") | JSON}, optional={"inputSchema": JSON, "description": JSON, "annotations": JSON}
        )
        | JSON,
        max_size=4,
    )
)
def test_any_list_gives_tools_that_can_be_stored(entries: list[Any]) -> None:
    tools, reasons = usable(entries)
    assert from_text(as_text(tools)) == tools and len(tools) <= len(entries)
    for found in tools:
        assert found.schema["type"] == "object" and orjson.dumps(found.schema)
        jsonschema.Draft202012Validator.check_schema(found.schema, format_checker=None)
    assert all(reason.endswith(".") for reason in reasons)
