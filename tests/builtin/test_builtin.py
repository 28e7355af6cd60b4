"""The built-in models (contract 9): what they say, what they honour of a request, and that nothing makes them fall over."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.builtin.calculate import calculate
from svc.builtin.provider import MODELS, chat
from svc.errors import ApiError, UpstreamFault

NOW_SECONDS = 1_763_733_600.0  # Friday, 21 November 2025, 14:00 UTC
Body = dict[str, Any]


def said(*turns: str) -> list[Body]:
    """`user: hello` and the like as messages."""
    return [{"role": role, "content": text} for role, text in (turn.split(": ", 1) for turn in turns)]


async def answers(model: str, messages: str | list[Body], **fields: Any) -> list[Body]:
    body = {"messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else messages, **fields}
    async with contextlib.aclosing(chat(model, body, lambda: NOW_SECONDS)) as raw:
        return [answer async for answer in raw]


async def choice(model: str, messages: str | list[Body], **fields: Any) -> Body:
    """The first choice of the one completion."""
    (completion,) = await answers(model, messages, **fields)
    first: Body = completion["choices"][0]
    return first


async def text(model: str, messages: str | list[Body], **fields: Any) -> str:
    content: str = (await choice(model, messages, **fields))["message"]["content"]
    return content


def assembled(chunks: list[Body]) -> list[Body]:
    """The choices that a client makes of a stream, checked for its order: role, content, finish; the usage last and alone."""
    assert [bool(chunk["choices"]) for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert all("usage" not in chunk for chunk in chunks[:-1])
    choices: dict[int, Body] = {}
    for chunk in chunks[:-1]:
        (part,) = chunk["choices"]
        delta, index = part["delta"], part["index"]
        if delta.get("role"):
            assert index not in choices
            choices[index] = {"index": index, "message": {"role": delta["role"], "content": ""}, "finish_reason": None}
        whole = choices[index]
        assert whole["finish_reason"] is None
        whole["message"]["content"] += delta.get("content", "")
        for call in delta.get("tool_calls", []):
            calls = whole["message"].setdefault("tool_calls", [])
            if "id" in call:
                assert call["index"] == len(calls) and call["function"]["arguments"] == ""
                calls.append({"id": call["id"], "type": call["type"], "function": dict(call["function"])})
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        whole["finish_reason"] = part["finish_reason"]
    for whole in choices.values():
        if "tool_calls" in whole["message"] and not whole["message"]["content"]:
            whole["message"]["content"] = None
    return list(choices.values())


def calls(message: Body) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", [])]


def tool(name: str, description: str = "", /, **properties: Body) -> Body:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


STRING = {"type": "string"}
AGENT_TOOLS = [
    tool("calculate", expression=STRING),
    tool("current_time"),
    tool("write_artifact", name=STRING, content=STRING),
    tool("read_artifact", id=STRING),
    tool("list_artifacts"),
    tool("generate_image", prompt=STRING),
    tool("generate_audio", input=STRING),
    tool("search_memory", query=STRING),
    tool("fetch_url", url=STRING),
]
WEATHER = tool("get_weather", "Current temperature of a city", location=STRING, unit={"type": "string", "enum": ["c", "f"]})


def run_tool(name: str, arguments: Body) -> str:
    if name == "calculate":
        return json.dumps({"ok": True, "result": calculate(arguments["expression"])})
    return json.dumps({"ok": True, "result": "done"})


async def agent_run(
    goal: str, tools: list[Body] = AGENT_TOOLS, result: Callable[[str, Body], str] = run_tool, **fields: Any
) -> tuple[list[list[tuple[str, Any]]], str]:
    """The rounds of calls of an agent that runs every call, and the text that ends it."""
    messages, rounds = said(f"user: {goal}"), []
    for _ in range(12):
        message = (await choice("assistant", messages, tools=tools, **fields))["message"]
        messages.append(message)
        if "tool_calls" not in message:
            return rounds, message["content"]
        rounds.append(calls(message))
        for call, (name, arguments) in zip(message["tool_calls"], rounds[-1], strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result(name, arguments)})
    raise AssertionError("the run did not end")


async def longest_stall_seconds(work: Awaitable[Any]) -> float:
    """The longest time of CPU that the loop's thread spent without coming round, so that a busy machine counts for nothing."""
    longest = 0.0
    task = asyncio.ensure_future(work)
    before = time.thread_time()
    while not task.done():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    await task
    return longest


# --- the table


def test_the_table_has_the_models_of_the_contract_and_their_prices() -> None:
    found = {name: (model.kind, *model.prices.values()) for name, model in MODELS.items()}
    chat = {"echo": (0, 0), "assistant": (0, 0), "assistant-paid": (500_000, 1_500_000), "script": (0, 0)}
    assert found == {name: ("chat", *prices) for name, prices in chat.items()} | {
        "paint": ("image", 20_000),
        "voice": ("speech", 10_000),
    }


async def test_unknown_model_is_model_not_found() -> None:
    for name in ("gpt-4", "paint"):  # no model for chats
        with pytest.raises(ApiError, match="no such model"):
            await answers(name, "hi")


# --- echo


@pytest.mark.parametrize(
    ("messages", "echoed"),
    [
        (said("system: s", "user: first", "assistant: a", "user: last \u2028 \U0001f600"), "last \u2028 \U0001f600"),
        (said("system: s"), ""),
        ([], ""),
        ([{"role": "user"}], ""),
        ([{"role": "user", "content": None}], ""),
        ([{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]}], "see [image]"),
        ([{"role": "user", "content": [{"type": "input_audio"}, {"type": "file"}, "plain"]}], "[audio] [file] plain"),
        ([{"role": "user", "content": "hi"}, {"role": "narrator", "content": "unknown"}], "hi"),
    ],
)
async def test_echo_answers_with_the_last_user_message(messages: list[Body], echoed: str) -> None:
    assert await text("echo", messages) == echoed


# --- what every model honours


@given(st.text(max_size=60), st.lists(st.text(max_size=3), max_size=3), st.integers(1, 12), st.integers(1, 3))
@settings(deadline=None, max_examples=150)
def test_stream_and_json_agree_and_keep_the_limits(message: str, stops: list[str], max_tokens: int, n: int) -> None:
    async def both() -> tuple[list[Body], list[Body]]:
        fields = {"stop": stops, "max_tokens": max_tokens, "max_completion_tokens": 9, "n": n}
        return await answers("echo", message, **fields), await answers("echo", message, **fields, stream=True)

    (completion,), chunks = asyncio.run(both())
    assert assembled(chunks) == completion["choices"]
    assert chunks[-1]["usage"] == completion["usage"]
    assert [one["index"] for one in completion["choices"]] == list(range(n))
    content, finish = completion["choices"][0]["message"]["content"], completion["choices"][0]["finish_reason"]
    message = message.encode("utf-8", "replace").decode()
    assert message.startswith(content) and not any(stop in content for stop in stops if stop)
    assert len(content.encode()) <= 4 * min(max_tokens, 9)
    if finish == "length":
        assert len(message[: len(content) + 1].encode()) > 4 * min(max_tokens, 9)
    else:
        assert content == message or any(message.startswith(stop, len(content)) for stop in stops if stop)
    usage = completion["usage"]
    assert usage["prompt_tokens"] == -(-len(message.encode()) // 4)
    assert usage["completion_tokens"] == n * -(-len(content.encode()) // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_stream_comes_word_by_word() -> None:
    chunks = await answers("echo", "one two  three", stream=True)
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]] == ["", "one ", "two ", " ", "three", None]


async def test_stop_is_found_across_pieces_and_what_only_began_like_it_is_kept() -> None:
    script = "say one ST\nsay O\nsay P two"
    assert (await choice("script", script, stop="STOP")) == {
        "index": 0,
        "message": {"role": "assistant", "content": "one "},
        "finish_reason": "stop",
    }
    assert await text("script", "say one ST\nsay AR two ST", stop=["STOP"]) == "one STAR two ST"


async def test_max_tokens_cuts_the_arguments_of_a_call_too() -> None:
    cut = await choice("script", 'tool f {"key": "value"}', max_tokens=2)
    assert cut["finish_reason"] == "length"
    assert cut["message"]["tool_calls"][0]["function"]["arguments"] == '{"key":'
    assert "tool_calls" not in (await choice("script", "tool a_long_name {}", max_tokens=1))["message"]


async def test_prompt_tokens_count_messages_calls_and_tools() -> None:
    plain = (await answers("echo", "12345678"))[0]["usage"]["prompt_tokens"]
    with_tools = (await answers("echo", "12345678", tools=[WEATHER]))[0]["usage"]["prompt_tokens"]
    assert plain == 2
    assert with_tools == -(-(8 + len(json.dumps([WEATHER], separators=(",", ":")))) // 4)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"n": 10**9}, "n"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"stop": 5}, "stop"),
        ({"stop": ["x", 5]}, "stop"),
        ({"stop": "x" * 1000}, "stop"),
        ({"tools": {}}, "tools"),
        ({"tools": [WEATHER] * 200}, "tools"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": 7, "tools": [WEATHER]}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": []}}}}, "response_format"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": "x" * (4 << 20) + "x"}]}, "messages"),
        ({"messages": [{"role": "user"}] * 10_001}, "messages"),
    ],
)
async def test_what_makes_no_sense_is_a_400_that_names_the_field(fields: Body, param: str) -> None:
    body = {"messages": said("user: hi"), **fields}
    with pytest.raises(UpstreamFault) as refused:
        await anext(chat("assistant", body))
    assert (refused.value.kind, refused.value.status) == ("status", 400)
    assert refused.value.error is not None and refused.value.error["param"] == param


# --- response_format

NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}
SCHEMAS: list[Body] = [
    {"type": "object", "properties": {"answer": STRING, "count": {"type": "integer"}}, "required": ["answer", "count"]},
    {"type": "object", "properties": {"list": {"type": "array", "items": {"const": "x"}, "minItems": 3}}, "required": ["list"]},
    {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    {"type": "object", "additionalProperties": {"enum": [7, 8]}, "required": ["free"]},
    {"oneOf": [{"type": "array", "prefixItems": [{"type": "null"}], "minItems": 2}]},
    {"allOf": [{"properties": {"a": STRING}, "required": ["a"]}, {"properties": {"b": {"type": "null"}}, "required": ["b"]}]},
    {"type": "string", "minLength": 4, "maxLength": 6},
    {"type": ["null", "string"], "format": "date-time"},
    {"type": "number", "minimum": 2.5, "exclusiveMaximum": 2.6},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2.5},
    {"type": "integer", "maximum": -7},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
@pytest.mark.parametrize("model", ["assistant", "echo"])
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


@pytest.mark.parametrize(
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
        {"$ref": "#/" + "a/" * 100_000},
        {"type": "teapot"},
        {"enum": [[[[]]]], "properties": {"x" * 300_000: {}}},
    ],
    ids=range(13),
)
async def test_schemas_without_a_small_instance_are_refused_quickly(schema: Body) -> None:
    started = time.thread_time()
    with pytest.raises(UpstreamFault) as refused:
        await answers("assistant", "hi", response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    assert refused.value.status == 400
    assert time.thread_time() - started < 0.1


# --- assistant: talk


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is 12 * (3 + 4)?", "12 * (3 + 4) = 84"),
        ("Compute 2/3", "2/3 = 0.6666666666666666666666666667"),
        ("What is 15% of 80?", "15 / 100 * 80 = 12"),
        ("3 times 4 plus 2", "3 * 4 + 2 = 14"),
        ("(what is 2 + 2)", "2 + 2 = 4"),
        ("What is 1,000 * 3?", "1000 * 3 = 3000"),
        ("Add 2 and 3", "2 + 3 = 5"),
        ("what is 9**9**9", "9**9**9 cannot be computed: A number in the calculation has more than 1,000 digits."),
        ("1/0=", "1/0 cannot be computed: Division by zero."),
        ("what day is today", "Today is Friday, 21 November 2025 (2025-11-21)."),
        ("what is the date in 10 days", "10 days from today: Monday, 1 December 2025 (2025-12-01)."),
        ("what was the date 2 months ago?", "2 months ago from today: Sunday, 21 September 2025 (2025-09-21)."),
        (
            "what date is a month after January 31, 2024",
            "a month counted from 2024-01-31: Thursday, 29 February 2024 (2024-02-29).",
        ),
        ("What is tomorrow's date?", "Tomorrow is Saturday, 22 November 2025 (2025-11-22)."),
        ("What date is next Friday?", "Next Friday is Friday, 28 November 2025 (2025-11-28)."),
        ("what date was last friday", "Last friday is Friday, 14 November 2025 (2025-11-14)."),
        ("which day of the week was 29 February 2024?", "2024-02-29 is a Thursday, 29 February 2024 (2024-02-29)."),
        ("what is the date in 9999999 years", "There is no such date in my calendar, which knows the years 1 to 9999."),
        ("what time is it?", "It is 14:00 UTC on Friday, 21 November 2025 (2025-11-21)."),
        ("My name is Ada. What is my name?", "Your name is Ada."),
        ("What is my name?", "You have not told me your name in this conversation."),
        ("Say this is a test", "this is a test"),
        ("What is 2+2? And what day is it?", "2+2 = 4\nToday is Friday, 21 November 2025 (2025-11-21)."),
    ],
)
async def test_assistant_knows_arithmetic_and_dates(question: str, answer: str) -> None:
    answered = await text("assistant", question)
    assert answered[0].upper() + answered[1:] == answer[0].upper() + answer[1:]


async def test_days_between_dates_are_counted() -> None:
    assert "34 days" in await text("assistant", "How many days until 2025-12-25?")
    assert "366 days" in await text("assistant", "how many days between 1 January 2024 and January 1st, 2025")


@pytest.mark.parametrize(
    ("messages", "recalled"),
    [
        (said("user: My name is Ada Lovelace. I like trains.", "assistant: ok", "user: What is my name?"), "Ada Lovelace"),
        (said("user: I'm Bob", "user: my name is Eve", "assistant: ok", "user: who am I?"), "Eve"),
        (said("user: My favourite colour is green!", "user: What's my favourite colour?"), "green"),
        (said("user: My dog is called Rex.", "user: What is my dog's name?"), "My dog is called Rex."),
        (said("system: The launch code is 7421. Be kind.", "user: What is the launch code?"), "The launch code is 7421."),
        (
            said("user: The server room is upstairs.", "user: What did I say about the server room?"),
            "The server room is upstairs.",
        ),
        (said("user: alpha beta", "assistant: ok", "user: What did I just say?"), "alpha beta"),
    ],
)
async def test_assistant_recalls_what_it_was_told(messages: list[Body], recalled: str) -> None:
    assert recalled in await text("assistant-paid", messages)


@pytest.mark.parametrize(
    "request_text", ["Write a sonnet about the sea", "How do whales sleep?", "", "call 555-1234", "hello", "who are you?"]
)
async def test_assistant_says_that_it_is_no_language_model(request_text: str) -> None:
    assert "not a language model" in await text("assistant", request_text)
    if request_text.startswith("W"):
        assert "configure a model server" in await text("assistant", request_text)


# --- assistant: tools

GOAL = "Compute 12 * (3 + 4), draw a lighthouse and save a note with the result"
CALCULATE = ("calculate", {"expression": "12 * (3 + 4)"})
DRAW = ("generate_image", {"prompt": "a lighthouse"})
WRITE = ("write_artifact", {"name": "note.txt", "content": "12 * (3 + 4) = 84"})


async def test_goal_is_planned_and_dependent_steps_wait_for_results() -> None:
    rounds, final = await agent_run(GOAL)
    assert rounds == [[CALCULATE, DRAW], [WRITE]]
    assert "84" in final and "note.txt" in final


async def test_without_parallel_calls_a_round_is_one_call() -> None:
    assert (await agent_run(GOAL, parallel_tool_calls=False))[0] == [[CALCULATE], [DRAW], [WRITE]]


async def test_only_offered_tools_are_called_and_the_rest_is_done_or_declined() -> None:
    rounds, final = await agent_run(GOAL, [AGENT_TOOLS[2]])
    assert rounds == [[WRITE]]
    assert "84" in final and "no tool for this: draw a lighthouse" in final


@pytest.mark.parametrize(
    ("goal", "planned"),
    [
        ("What time is it?", [[("current_time", {})]]),
        ("What is 6*7, and 8*9?", [[("calculate", {"expression": "6*7"}), ("calculate", {"expression": "8*9"})]]),
        ("Draw a cat, a dog and a bird", [[("generate_image", {"prompt": "a cat, a dog and a bird"})]]),
        ('Write "a, b and c" to list.md', [[("write_artifact", {"name": "list.md", "content": "a, b and c"})]]),
        ("Save a note saying buy milk", [[("write_artifact", {"name": "note.txt", "content": "buy milk"})]]),
        ("Please say good night aloud", [[("generate_audio", {"input": "good night"})]]),
        ("List my files", [[("list_artifacts", {})]]),
        ("Search my memory for the launch code", [[("search_memory", {"query": "launch code"})]]),
        ("What is my favourite colour?", [[("search_memory", {"query": "favourite colour"})]]),
        ("Fetch https://example.com/a?b=c.", [[("fetch_url", {"url": "https://example.com/a?b=c"})]]),
        ("hello", []),
    ],
)
async def test_requests_become_calls_of_the_agents_tools(goal: str, planned: list[Any]) -> None:
    assert (await agent_run(goal))[0] == planned


async def test_artifact_is_looked_up_by_name_where_the_tool_reads_by_id() -> None:
    listing = '[{"id":"art_aa","name":"other.md"},{"id":"art_bb","name":"notes.md"}]'
    rounds, final = await agent_run("Read notes.md", result=lambda name, _: listing if name == "list_artifacts" else "the notes")
    assert rounds == [[("list_artifacts", {})], [("read_artifact", {"id": "art_bb"})]]
    assert "the notes" in final


@pytest.mark.parametrize(
    ("request_text", "offered", "called"),
    [
        ("What's the weather in Paris?", WEATHER, [("get_weather", {"location": "Paris", "unit": "c"})]),
        ("How hot is the temperature in Oslo?", WEATHER, [("get_weather", {"location": "Oslo", "unit": "c"})]),
        (
            "What is the weather in Paris and in London today?",
            WEATHER,
            [("get_weather", {"location": "Paris", "unit": "c"}), ("get_weather", {"location": "London", "unit": "c"})],
        ),
        ("What is 6 * 7?", tool("calculator", formula=STRING), [("calculator", {"formula": "6 * 7"})]),
        ("add 2 and 3", tool("add", a={"type": "integer"}, b={"type": "integer"}), [("add", {"a": 2, "b": 3})]),
        ("Search the web for blue whales", tool("searchWeb", query=STRING), [("searchWeb", {"query": "blue whales"})]),
        ("Make the lamp green", tool("set_lamp", color={"enum": ["red", "green"]}), [("set_lamp", {"color": "green"})]),
        ("Tell me a joke", WEATHER, []),
    ],
)
async def test_callers_own_tools_are_called_when_the_request_speaks_of_them(
    request_text: str, offered: Body, called: Any
) -> None:
    made = calls((await choice("assistant", request_text, tools=[offered]))["message"])
    assert made == called


@pytest.mark.parametrize("forced", ["required", {"type": "function", "function": {"name": "get_weather"}}])
async def test_forced_call_is_made_once_and_then_answered(forced: Any) -> None:
    rounds, final = await agent_run("hello", [WEATHER], lambda *_: "sunny", tool_choice=forced)
    assert [[name for name, _ in calls] for calls in rounds] == [["get_weather"]]
    assert "sunny" in final


async def test_tool_choice_none_calls_nothing_and_named_calls_nothing_else() -> None:
    assert "84" in await text("assistant", GOAL, tools=AGENT_TOOLS, tool_choice="none")
    named = {"type": "function", "function": {"name": "generate_image"}}
    assert calls((await choice("assistant", GOAL, tools=AGENT_TOOLS, tool_choice=named))["message"]) == [DRAW]


@pytest.mark.parametrize(
    "result", ['{"ok": false, "error": {"message": "broken"}}', "Error: broken", "", "[[[", "[" * 900 + "]" * 900]
)
async def test_no_call_is_repeated_whatever_came_of_it(result: str) -> None:
    rounds, final = await agent_run(GOAL, result=lambda *_: result)
    assert [name for made in rounds for name, _ in made] == ["calculate", "generate_image", "write_artifact"]
    assert ("broken" in final) == ("broken" in result)


async def test_run_ends_when_results_never_come() -> None:
    messages = said(f"user: {GOAL}")
    for _ in range(3):
        messages.append((await choice("assistant", messages, tools=AGENT_TOOLS))["message"])
    assert "no result came" in messages[-1]["content"]


# --- script


async def played(script: str, **fields: Any) -> str:
    return await text("script", script, **fields)


async def test_says_are_joined_without_anything_between_and_may_be_json_strings() -> None:
    assert (
        await played('say one\n\n  say  two \nsay "\\n\\ud83d\\ude00\\ud800"\r\nsay "open\nsay')
        == 'one two \n\U0001f600\ufffd"open'
    )


async def test_tool_calls_have_unique_ids_and_broken_arguments_pass() -> None:
    message = (await choice("script", 'say hi\ntool f {"a": 1}\ntool f {broken\ntool g'))["message"]
    assert [call["function"] for call in message["tool_calls"]] == [
        {"name": "f", "arguments": '{"a": 1}'},
        {"name": "f", "arguments": "{broken"},
        {"name": "g", "arguments": "{}"},
    ]
    assert len({call["id"] for call in message["tool_calls"]}) == 3
    assert message["content"] == "hi"


async def test_each_call_of_a_run_plays_the_next_section() -> None:
    script = "user: say one\n---\nsay two\n---\n---\nsay four"
    rounds = [await text("script", said(script, *["assistant: x"] * made)) for made in range(6)]
    assert rounds == ["one", "two", "", "four", "", ""]


async def test_repeats_multiply() -> None:
    assert await played("repeat 2 repeat 3 say x\nrepeat 0 drop\nsay y") == "xxxxxxy"


async def test_length_ends_with_length() -> None:
    assert (await choice("script", "say a\nlength\nsay b"))["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("script", "kind", "status", "error_type"),
    [
        ("say a\nfail 503 too busy", "status", 503, "api_error"),
        ("fail 429", "status", 429, "rate_limit_error"),
        ("fail 400 bad", "status", 400, "invalid_request_error"),
        ("say a\ndrop\nsay b", "cut", 0, None),
    ],
)
async def test_faults_come_after_what_was_said(script: str, kind: str, status: int, error_type: str | None) -> None:
    words = []
    with pytest.raises(UpstreamFault) as fault:
        async for chunk in chat("script", {"messages": said(f"user: {script}"), "stream": True}):
            words.append(chunk["choices"][0]["delta"].get("content"))
    assert words == (["", "a"] if script.startswith("say") else [])
    assert (fault.value.kind, fault.value.status) == (kind, status)
    assert (fault.value.error or {}).get("type") == error_type


NO_DIRECTIVES = (
    "hello|fail 200 ok|fail 600 x|fail|wait|wait -1|wait 60001|wait 1e3|tool|drop it|repeat x say y|repeat 2|repeat 2 ---"
)


@pytest.mark.parametrize("line", NO_DIRECTIVES.split("|"))
async def test_line_that_is_no_directive_is_named_before_anything_is_played(line: str) -> None:
    with pytest.raises(UpstreamFault, match=r"^Line 3 of the script.*say TEXT, tool NAME JSON") as refused:
        await played(f"say one\ndrop\n{line}")
    assert refused.value.status == 400


@pytest.mark.parametrize("line", ["repeat 1 " * 30 + "say x", "repeat " + "9" * 5000 + " say x"], ids=["deep", "huge"])
async def test_absurd_repeats_are_no_directives(line: str) -> None:
    with pytest.raises(UpstreamFault, match="Line 1 of the script"):
        await played(line)


async def test_wait_sleeps_and_closing_the_generator_ends_it_at_once() -> None:
    started = time.monotonic()
    assert await played("wait 60\nsay x") == "x"
    assert time.monotonic() - started >= 0.06
    waiting = chat("script", {"messages": said("user: say a\nwait 60000\nsay b"), "stream": True})
    assert [(await anext(waiting))["choices"][0]["delta"].get("content") for _ in range(2)] == ["", "a"]
    pending = asyncio.ensure_future(anext(waiting))
    await asyncio.sleep(0.01)
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    await waiting.aclose()
    assert time.monotonic() - started < 10


async def test_total_wait_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("svc.builtin.script.asyncio.sleep", sleep)
    assert (await choice("script", "repeat 1000000 wait 60000"))["finish_reason"] == "length"
    assert sum(slept) == 600


_LINES = st.sampled_from(
    ["say x", "say  y", 'say "a b"', "tool f {}", "length", "repeat 3 say z", "repeat 2 tool g [", "wait 0", "", "drop"]
)


@given(st.lists(_LINES, max_size=8))
@settings(deadline=None, max_examples=150)
def test_scripts_play_as_written(lines: list[str]) -> None:
    expanded = [line for one in lines for line in ([one[9:]] * int(one[7]) if one.startswith("repeat") else [one])]
    ends = [number for number, line in enumerate(expanded) if line in ("length", "drop")]
    heard = expanded[: ends[0]] if ends else expanded
    spoken = {"say x": "x", "say  y": " y", 'say "a b"': "a b", "say z": "z"}
    try:
        answer = asyncio.run(choice("script", "\n".join(lines)))
    except UpstreamFault as fault:
        assert fault.kind == "cut" and expanded[ends[0]] == "drop"
        return
    assert (answer["message"]["content"] or "") == "".join(spoken.get(line, "") for line in heard)
    made = [call["function"]["name"] for call in answer["message"].get("tool_calls", [])]
    assert made == [line[5] for line in heard if line.startswith("tool")]
    assert answer["finish_reason"] == ("length" if ends else "tool_calls" if made else "stop")


# --- bombs and fuzz

BIG_TEXT = "my name is (((1+((2 and draw a 'cat'. read list.md, " * 60_000
DEMANDING = tool("x", **{f"k{number}": {"type": "array", "minItems": 4_000} for number in range(2_000)}, k=STRING)
BOMBS: dict[str, tuple[str, Any, Body]] = {
    "repeated says": ("script", "repeat 1000000000 say x", {}),
    "repeated empty says": ("script", "repeat 1000000000 say", {"n": 128}),
    "nested repeats": ("script", "repeat 1000000000 " * 20 + "say x", {"n": 3}),
    "repeats of much text": ("script", "repeat 1000000000 say " + "x" * 100_000, {"n": 2}),
    "repeated calls": ("script", "repeat 1000000000 tool f {}", {"n": 2}),
    "repeated nothing": ("script", "\n".join(["repeat 999999999 wait 0"] * 9_000), {}),
    "much text": ("echo", "word " * 800_000, {"n": 128}),
    "one long word": ("echo", "x" * 4_000_000, {"stop": ["xy" * 128] * 16}),
    "a long goal": ("assistant", BIG_TEXT, {"tools": AGENT_TOOLS}),
    "long memories": ("assistant", [*said(f"user: {BIG_TEXT}"), *said("user: What is my name?" * 300)], {}),
    "brackets": ("assistant", "what is " + "(" * 4_000 + "1+1" + ")" * 4_000, {}),
    "blanks": ("assistant", "draw " + " " * 500_000 + "x" + "\n" * 500_000, {"tools": AGENT_TOOLS}),
    "many tools": (
        "assistant",
        "alpha, beta. " * 500,
        {"tools": [tool(f"t{n}_beta", "beta " * 500, x=STRING) for n in range(128)]},
    ),
    "a demanding tool": ("assistant", "call x", {"tools": [DEMANDING], "tool_choice": "required"}),
    "many results": ("assistant", [*said("user: x"), *[{"role": "tool", "content": "[1]"}] * 9_000], {"tools": AGENT_TOOLS}),
}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("bomb", BOMBS)
async def test_bombs_end_soon_stay_small_and_leave_the_loop_alone(bomb: str, stream: bool) -> None:
    model, messages, fields = BOMBS[bomb]
    body = {
        "messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else messages,
        **fields,
        "stream": stream,
    }
    output_bytes = 0

    async def drain() -> None:
        nonlocal output_bytes
        async for answer in chat(model, body, lambda: NOW_SECONDS):
            output_bytes += 0 if stream else len(json.dumps(answer))

    started = time.thread_time()
    assert await longest_stall_seconds(drain()) < 0.4  # 25 ms on a quiet machine; here other tests run beside it
    assert time.thread_time() - started < 10
    assert output_bytes < 3 << 20


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_PHRASES = (
    "draw|a cat|what is|1/0|2 ** 3|my name|is|Ada|?|and|save|it|note.txt|in 3 days|'x'|art_1|list|say|tool f {}|repeat 3|\n|---"
    "|read|files|http://a.b/c|weather in|Paris|date|(|)|.|,"
)
_WORDS = st.sampled_from(_PHRASES.split("|"))
_TEXT = st.lists(_WORDS, max_size=10).map(" ".join) | st.text(st.characters(), max_size=20)
_CALL = st.fixed_dictionaries(
    {"id": _JSON | st.just("c1"), "function": st.fixed_dictionaries({"name": _TEXT, "arguments": _TEXT}) | _JSON}
)
_CONTENT = (
    _TEXT
    | _JSON
    | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", "x"]), "text": _TEXT}), max_size=2)
)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool", "developer", "odd"]), "content": _CONTENT},
    optional={"tool_calls": st.lists(_CALL, max_size=2) | _JSON, "tool_call_id": st.just("c1") | _JSON},
)
_KEYWORDS = "type properties required items minItems anyOf $ref enum const minimum multipleOf allOf location"
_SCHEMA_VALUES = st.sampled_from(
    ["object", "array", "string", "integer", "number", "null", "#", "#/properties", 0, 1, 2.5, True, None]
)
_SCHEMA = st.recursive(
    _SCHEMA_VALUES | st.just({}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYWORDS.split()), inner, max_size=4),
    max_leaves=14,
)
_FUNCTION = st.fixed_dictionaries({"name": _TEXT}, optional={"description": _TEXT | _JSON, "parameters": _SCHEMA | _JSON})
_TOOL = st.fixed_dictionaries({"type": st.just("function"), "function": _FUNCTION}) | st.sampled_from(AGENT_TOOLS)
_FORMAT = st.fixed_dictionaries({"type": st.just("json_schema"), "json_schema": st.fixed_dictionaries({"schema": _SCHEMA})})
_BODY = st.fixed_dictionaries(
    {"messages": st.lists(_MESSAGE, max_size=5) | st.lists(_MESSAGE | _JSON, max_size=3)},
    optional={
        "tools": st.lists(_TOOL, max_size=4) | _JSON,
        "tool_choice": st.sampled_from(["none", "auto", "required"]) | _JSON,
        "parallel_tool_calls": st.booleans() | _JSON,
        "response_format": _FORMAT | st.just({"type": "json_object"}) | _JSON,
        "stream": st.booleans() | _JSON,
        "stop": st.text(max_size=2) | _JSON,
        "n": st.integers(1, 3) | _JSON,
        "max_tokens": st.integers(1, 20) | _JSON,
        "max_completion_tokens": st.integers(1, 20) | _JSON,
        "stream_options": _JSON,
        "seed": _JSON,
    },
)


@pytest.mark.parametrize("model", ["echo", "assistant", "script"])
@given(body=_BODY | st.dictionaries(st.sampled_from(["messages", "tools", "stop", "n"]), _JSON))
@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.too_slow])
def test_any_body_is_answered_or_refused(model: str, body: Body) -> None:
    async def run() -> list[Body]:
        return [answer async for answer in chat(model, body, lambda: NOW_SECONDS)]

    try:
        raw = asyncio.run(run())
    except UpstreamFault as fault:
        assert fault.kind in ("status", "cut")
        return
    json.dumps(raw).encode()
    choices = assembled(raw) if body.get("stream") is True else raw[-1]["choices"]
    for one in choices:
        assert one["finish_reason"] in ("stop", "length", "tool_calls")
        assert isinstance(one["message"]["content"], str) or one["message"]["tool_calls"]
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if body.get(name)]
    assert raw[-1]["usage"]["completion_tokens"] <= len(choices) * min(limits, default=1 << 20)
