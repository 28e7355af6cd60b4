"""Answers of the built-in models in a JSON schema."""

import json
import time

import jsonschema
import pytest

from svc.errors import UpstreamFault
from tests.support.builtin import STRING, Body, answers, text
from tests.support.cases import each

NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
}


SCHEMAS: list[Body] = [
    {"type": "object", "properties": {"answer": STRING, "count": {"type": "integer"}}, "required": ["answer", "count"]},
    {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"const": "x"}, "minItems": 3}},
        "required": ["list"],
    },
    {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    {"type": "object", "additionalProperties": {"enum": [7, 8]}, "required": ["free"]},
    {"oneOf": [{"type": "array", "prefixItems": [{"type": "null"}], "minItems": 2}]},
    {
        "allOf": [
            {"properties": {"a": STRING}, "required": ["a"]},
            {"properties": {"b": {"type": "null"}}, "required": ["b"]},
        ]
    },
    {"type": "string", "minLength": 4, "maxLength": 6},
    {"type": ["null", "string"], "format": "date-time"},
    {"type": "number", "minimum": 2.5, "exclusiveMaximum": 2.6},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2.5},
    {"type": "integer", "maximum": -7},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
    {},
]


@each("schema", SCHEMAS)
@each("model", ["assistant", "echo"])
async def test_json_schema_answers_satisfy_the_schema(model: str, schema: Body) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    jsonschema.validate(json.loads(await text(model, "what is 6 * 7?", response_format=wanted)), schema)


async def test_json_answers_carry_the_answer() -> None:
    assert json.loads(await text("assistant", "what is 6 * 7?", response_format={"type": "json_object"})) == {
        "answer": "6 * 7 = 42"
    }
    assert await text("echo", '{"a": 1}', response_format={"type": "json_object"}) == '{"a": 1}'
    schema = {"properties": {"result": {"type": "number"}, "why": STRING}, "required": ["result", "why"]}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    assert json.loads(await text("assistant", "what is 6 * 7?", response_format=wanted)) == {"result": 42, "why": ""}


@each(
    "schema",
    [
        {"$ref": "#"},
        {"type": "object", "properties": {"self": {"$ref": "#"}}, "required": ["self"]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"type": "array", "minItems": 10**9},
        {"type": "array", "minItems": 60, "items": {"$ref": "#"}},
        {"type": "string", "minLength": 10**9},
        {"required": [f"k{n}" for n in range(9_000)]},
        {"type": "array", "minItems": 4_000, "items": {"const": "x" * 200_000}},
        {"type": "integer", "minimum": 1, "maximum": 0},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/x/-1", "x": [{"type": "string"}]},
        {"$ref": "#/" + "a/" * 100_000},
        {"type": "teapot"},
        {"enum": [[[[]]]], "properties": {"x" * 300_000: {}}},
    ],
)
async def test_schemas_without_a_small_instance_are_refused_quickly(schema: Body) -> None:
    started = time.thread_time()
    with pytest.raises(UpstreamFault) as refused:
        await answers("assistant", "hi", response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    assert refused.value.status == 400
    assert time.thread_time() - started < 0.1
