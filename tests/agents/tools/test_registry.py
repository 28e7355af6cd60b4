"""How tools are offered, described and called: wrong arguments and bugs are failures that the model sees."""

import asyncio
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import orjson
import pytest

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import AgentTool, ToolContext, ToolFailure
from svc.shapes import integer, text
from tests.support.cases import each
from tests.support.server import ROOT
from tests.support.toolboxes import failure
from tests.support.waiting import until


def with_clock(box: ToolContext, function: Callable[[ToolContext], Any]) -> ToolContext:
    """The toolbox with another function behind `current_time`."""
    return replace(box, tools={"current_time": replace(TOOLS["current_time"], function=function)})


# What the table of tools in svc/OPERATING.md says, by what a tool needs.
AVAILABLE = {
    None: "always",
    "image": "always; these two have a price",
    "speech": "always; these two have a price",
    "session": "with a session, not with an API key",
    "fetch": "with `SVC_AGENT_FETCH=1`, or `[search]` in the catalog",
    "python": "with the extra `python`",
    "files": "in a project with files",
    "search": "with `[search]` in the catalog, which may set a price",
}


def test_every_tool_is_named_in_the_documentation_and_in_the_web_application() -> None:
    (table,) = re.findall(r"\| tool \| available \|\n\|[-|]+\n((?:\|.*\n)+)", (ROOT / "svc/OPERATING.md").read_text())
    rows = [row.split(" | ") for row in table.splitlines()]
    documented = {(name, row[1].rstrip(" |")) for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    missing = documented ^ {(name, AVAILABLE[tool.needs]) for name, tool in TOOLS.items()}
    assert missing == set(), "the table of tools in svc/OPERATING.md has each tool where it is available"
    (labels,) = re.findall(r"toolNames: \{(.*?)\}", (ROOT / "svc/static/app/texts/en/tools.js").read_text(), re.DOTALL)
    assert set(re.findall(r"(\w+):", labels)) ^ TOOLS.keys() == set(), (
        "toolNames of svc/static/app/texts/en/tools.js has each tool"
    )


def test_every_tool_is_called_in_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "agents").rglob("test_*.py"))
    assert {name for name in TOOLS if f'"{name}"' not in tests} == set(), "call these tools in tests/agents/tools/"


def test_every_tool_is_described_with_a_strict_schema_that_its_function_takes() -> None:
    for name, tool in TOOLS.items():
        described = tool.as_function
        schema = described["function"]["parameters"]
        assert (
            described["type"] == "function"
            and described["function"]["name"] == name
            and described["function"]["description"]
        )
        assert schema["additionalProperties"] is False and schema["required"] == list(schema["properties"])
        for argument, hint in list(get_type_hints(tool.function, include_extras=True).items())[1:-1]:
            assert argument in tool.arguments, f"annotate {argument} of {name} with a shape"
            rule, kind = schema["properties"][argument], get_args(hint)[0]
            expected = {str: "string", int: "integer", float: "number", bool: "boolean"}.get(kind, rule.get("type"))
            assert rule.get("type") == expected, f"{argument} of {name} is a {kind.__name__}, but its shape is not"
            assert kind is not str or {"maxLength", "enum", "const"} & rule.keys(), f"bound {argument} of {name}"


# A value of each type of JSON but text and integers.
VALUES: list[Any] = [None, 0.5, True, [], {}]


@each("name", list(TOOLS))
async def test_wrong_arguments_are_reported_and_the_tool_is_not_run(
    box: ToolContext, faults: list[BaseException], name: str
) -> None:
    shapes = TOOLS[name].arguments
    right = {key: shape.example or "x" * shape.schema.get("minLength", 1) for key, shape in shapes.items()}
    wrong: list[tuple[str, dict[str, Any]]] = [(name, {**right, key: 1}) for key in ("more", "\0", "account_id")]
    for key, shape in shapes.items():
        others = [value for value in VALUES if type(value) is not type(right[key])]
        wrong += [(key, {**right, key: value}) for value in (*others, "x" * (shape.schema.get("maxLength", 0) + 1))]
        wrong += [(key, {other: value for other, value in right.items() if other != key})]
        wrong += [(key, {**right, key: ""})] if shape.schema.get("minLength") else []
    for named, arguments in wrong:
        assert named in await failure(box, name, arguments)
    assert faults == []


async def test_arguments_of_any_shape_reach_the_function_typed(box: ToolContext) -> None:
    async def repeat(run: ToolContext, word: str, times: int) -> str:
        return word * times

    tool = AgentTool("repeat", "Repeats a word.", {"word": text(5), "times": integer(1, 3)}, repeat)
    one = replace(box, tools={"repeat": tool})
    assert tool.as_function["function"]["parameters"]["properties"]["times"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
    }
    assert await one.call("repeat", {"word": "ab", "times": 2.0}) == "abab"
    assert "times must be an integer from 1 to 3" in await failure(one, "repeat", {"word": "ab", "times": "2"})


@each("name", ["no_such_tool", "", "\0", "__init__", "call", "_calculate", "x" * 100_000])
async def test_a_tool_that_is_not_offered_cannot_be_called(box: ToolContext, name: str) -> None:
    text = await failure(box, name, {})
    assert "There is no tool" in text and "calculate" in text and len(text) < 500


async def test_tool_that_the_run_excludes_cannot_be_called(box: ToolContext) -> None:
    named = replace(box, tools={"current_time": TOOLS["current_time"]})
    assert "There is no tool 'calculate'" in await failure(named, "calculate", {"expression": "1"})


@pytest.mark.parametrize(
    "error",
    [
        RecursionError(),
        MemoryError(),
        KeyError("a secret"),
        OSError("a secret"),
        sqlite3.OperationalError("a secret"),
        TimeoutError(),
    ],
)
async def test_any_exception_is_a_failure_without_secrets(
    box: ToolContext, faults: list[BaseException], error: Exception
) -> None:
    async def broken(run: ToolContext) -> str:
        raise error

    box = with_clock(box, broken)
    text = await failure(box, "current_time", {})
    assert text == f"The tool failed ({type(error).__name__})." and faults == [error]


@each("result", [object(), "\ud800", {"a": b""}, {1: 2}])
async def test_result_that_is_not_json_is_a_failure(box: ToolContext, result: Any) -> None:
    async def odd(run: ToolContext) -> Any:
        return result

    box = with_clock(box, odd)
    assert "The tool failed" in await failure(box, "current_time", {})


async def test_nan_in_a_result_becomes_null(box: ToolContext) -> None:
    async def odd(run: ToolContext) -> Any:
        return {"a": float("nan"), "b": [float("inf")]}

    box = with_clock(box, odd)
    assert await box.call("current_time", {}) == {"a": None, "b": [None]}


async def test_fifth_call_of_an_account_waits_and_others_are_refused_when_all_places_are_taken(
    box: ToolContext,
) -> None:
    end, running = asyncio.Event(), 0

    async def slow(context: ToolContext) -> str:
        nonlocal running
        running += 1
        await end.wait()
        running -= 1
        return "done"

    def of(account_id: str) -> ToolContext:
        return replace(with_clock(box, slow), home=box.home._replace(account_id=account_id))

    calls = [asyncio.create_task(of(f"a{number % 8}").call("current_time", {})) for number in range(40)]
    await until(lambda: running == 32)
    assert "busy with the tools of others" in await failure(of("late"), "current_time", {})
    end.set()
    assert await asyncio.gather(*calls) == ["done"] * 40
    assert await of("late").call("current_time", {}) == "done"


@each(
    "value",
    ["x" * 32_768, "\n" * 32_768, "é" * 16_384, ["x" * 32_764], 7, None, {"a": "é" * 16_380}],
)
async def test_result_of_32_kib_is_whole(box: ToolContext, value: Any) -> None:
    async def made(context: ToolContext) -> Any:
        return value

    assert await with_clock(box, made).call("current_time", {}) == value


@each(
    "value", ["x" * 32_769, "é" * 20_000, "\U0001f600" * 9_000, ["x" * 32_765], {"a": ["é"] * 9_000}, "x" * 1_000_000]
)
async def test_longer_result_and_reason_are_cut_and_say_so(box: ToolContext, value: Any) -> None:
    async def made(context: ToolContext) -> Any:
        return value

    async def failed(context: ToolContext) -> Any:
        raise ToolFailure(str(value))

    written = value if isinstance(value, str) else orjson.dumps(value).decode()
    cut = await with_clock(box, made).call("current_time", {})
    assert 32_764 <= len(cut.encode()) <= 32_768
    text, _, note = cut.rpartition("\n")
    assert written.startswith(text) and note == "[This result is longer. It is cut here.]"
    assert len((await failure(with_clock(box, failed), "current_time", {})).encode()) <= 32_768
