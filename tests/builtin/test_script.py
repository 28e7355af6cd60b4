"""The model `script` plays its directives to the letter, within bounds."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.provider import chat
from svc.errors import UpstreamFault
from tests.conftest import Service, bearer
from tests.support.builtin import Body, choice, said, text
from tests.support.cases import each
from tests.support.loop_clock import advance_loop
from tests.support.waiting import run_ready


async def played(script: str, **fields: Any) -> str:
    return await text("script", script, **fields)


async def test_texts_of_say_are_joined_and_may_be_json_strings() -> None:
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


_CODEX_TOOLS = [
    {
        "type": "function",
        "name": "exec_command",
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
    },
    {
        "type": "custom",
        "name": "apply_patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
    },
    {"type": "function", "name": "view_image", "parameters": {"type": "object", "properties": {}}},
]
_CODEX_SCRIPT = """say Reading.
tool exec_command {"cmd": "cat hello.txt"}
---
tool view_image {}
tool apply_patch {"input": "*** Begin Patch"}
---
say Done."""
_IMAGE = [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]


async def test_tool_loop_through_responses_plays_each_section(service: Service) -> None:
    headers = bearer((await service.make_key(await service.bearer()))["key"])
    items: list[Body] = [
        {"role": "user", "content": "<environment_context>"},
        {"role": "user", "content": _CODEX_SCRIPT},
    ]
    steps = []
    for _ in range(4):
        body = {"model": "builtin/script", "input": items, "tools": _CODEX_TOOLS, "store": False}
        answer = await service.client.post("/v1/responses", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        output = answer.json()["output"]
        steps.append([(item["type"], item.get("name"), item.get("arguments", item.get("input"))) for item in output])
        items += output
        for item in output:
            if item["type"] != "message":
                result = _IMAGE if item["name"] == "view_image" else "ok"
                items.append({"type": f"{item['type']}_output", "call_id": item["call_id"], "output": result})
    assert steps == [
        [("message", None, None), ("function_call", "exec_command", '{"cmd": "cat hello.txt"}')],
        [("function_call", "view_image", "{}"), ("custom_tool_call", "apply_patch", "*** Begin Patch")],
        [("message", None, None)],
        [],
    ]


async def test_repeats_multiply() -> None:
    assert await played("repeat 2 repeat 3 say x\nrepeat 0 drop\nsay y") == "xxxxxxy"


async def test_length_ends_with_length() -> None:
    assert (await choice("script", "say a\nlength\nsay b"))["finish_reason"] == "length"


@each(
    ("script", "kind", "status", "error_type"),
    [
        ("say a\nfail 503 too busy", "status", 503, "api_error"),
        ("fail 429", "status", 429, "rate_limit_error"),
        ("fail 400 bad", "status", 400, "invalid_request_error"),
        ("say a\ndrop\nsay b", "cut", 0, None),
    ],
)
async def test_faults_follow_the_text_before_them(script: str, kind: str, status: int, error_type: str | None) -> None:
    words = []
    with pytest.raises(UpstreamFault) as fault:
        async for chunk in chat("script", {"messages": said(f"user: {script}"), "stream": True}):
            words.append(chunk["choices"][0]["delta"].get("content"))
    assert words == (["", "a"] if script.startswith("say") else [])
    assert (fault.value.kind, fault.value.status) == (kind, status)
    assert (fault.value.error or {}).get("type") == error_type


NO_DIRECTIVES = "hello|fail 200 ok|fail 600 x|fail|wait|wait -1|wait 60001|wait 1e3|tool|drop it|repeat x say y|repeat 2|repeat 2 ---"


@each("line", NO_DIRECTIVES.split("|"))
async def test_wrong_line_is_reported_before_anything_is_played(line: str) -> None:
    with pytest.raises(UpstreamFault, match=r"^Line 3 of the script.*say TEXT, tool NAME JSON") as refused:
        await played(f"say one\ndrop\n{line}")
    assert refused.value.status == 400


@each("line", ["repeat 1 " * 30 + "say x", "repeat " + "9" * 5000 + " say x"])
async def test_excessive_repeats_are_refused(line: str) -> None:
    with pytest.raises(UpstreamFault, match="Line 1 of the script"):
        await played(line)


async def test_wait_sleeps_and_closing_the_generator_ends_it_at_once() -> None:
    meanwhile = asyncio.ensure_future(asyncio.sleep(0.05))
    assert await played("wait 60\nsay x") == "x"
    assert meanwhile.done()
    waiting = chat("script", {"messages": said("user: say a\nwait 60000\nsay b"), "stream": True})
    assert [(await anext(waiting))["choices"][0]["delta"].get("content") for _ in range(2)] == ["", "a"]
    pending = asyncio.ensure_future(anext(waiting))
    await run_ready()
    pending.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await pending
        await waiting.aclose()


async def test_total_wait_is_bounded() -> None:
    waiting = asyncio.create_task(choice("script", "repeat 1000000 wait 60000"))
    waited_seconds = 0
    while not waiting.done():
        await run_ready()
        advance_loop(10)
        waited_seconds += 10
    assert (await waiting)["finish_reason"] == "length" and 600 <= waited_seconds <= 620


_LINES = st.sampled_from(
    ["say x", "say  y", 'say "a b"', "tool f {}", "length", "repeat 3 say z", "repeat 2 tool g [", "wait 0", "", "drop"]
)


@given(st.lists(_LINES, max_size=8))
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


async def test_ten_thousand_lines_of_nested_repeats_are_refused_before_they_are_read() -> None:
    began = time.thread_time()
    with pytest.raises(UpstreamFault, match="at most") as refused:
        await played("\n".join(["repeat 2 " * 20 + "say x"] * 9_999))
    assert refused.value.status == 400 and time.thread_time() - began < 0.1
    assert await played("\n".join(["repeat 1 repeat 1 say x"] * 9_000)) == "x" * 9_000
