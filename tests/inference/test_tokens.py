"""The tokens of a request: the worst case for the hold, and the estimate."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.inference.tokens import estimated_input_tokens, estimated_tokens, worst_input_tokens
from tests.support.cases import each

DATA = "data:image/png;base64," + "x" * 1000


def worst(**fields: Any) -> int:
    """The worst case of a request beside its one message of 2 bytes and its role."""
    plain = {"messages": [{"role": "user", "content": "Hi"}]}
    return worst_input_tokens({**plain, **fields}) - worst_input_tokens(plain)


def worst_part(**part: Any) -> int:
    def whole(parts: list[dict[str, Any]]) -> int:
        return worst_input_tokens({"messages": [{"role": "user", "content": parts}]})

    return whole([part]) - whole([])


def test_each_byte_of_a_string_is_1_token_and_a_message_16() -> None:
    assert worst_input_tokens({"messages": [{"role": "user", "content": "né"}]}) == 16 + 4 + 3
    assert worst_input_tokens({"messages": [{"role": "user", "content": ""}] * 3, "model": "m"}) == 3 * 20 + 1
    assert worst(metadata={"a": ["bc", {"d": "e"}], "f": 1, "g": None, "h": True}) == 3
    assert worst(user="x" * 100, temperature=0.5) == 100


def test_a_tool_and_a_tool_call_are_16_beside_their_strings() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    assert worst(tools=[{"type": "function", "function": function}] * 2) == 2 * (16 + 8 + 1 + 6 + 6)
    assert worst(functions=[{"name": "f"}]) == 17
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert worst_input_tokens({"messages": [turn]}) == 16 + 9 + 16 + (1 + 8 + 1 + 2)
    old_turn = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert worst_input_tokens({"messages": [old_turn]}) == 16 + 9 + 16 + 3


@each(
    ("part", "tokens"),
    [
        ({"type": "text", "text": "abc"}, 16 + 4 + 3),
        ({"type": "text", "text": DATA}, 16 + 4 + len(DATA)),
        ({"type": "image_url", "image_url": {"url": DATA}}, 16 + 9 + 8192),
        ({"type": "image_url", "image_url": DATA}, 16 + 9 + 8192),
        ({"type": "image_url", "image_url": {"url": "http://x", "detail": "low"}}, 16 + 9 + 8 + 3 + 8192),
        ({"type": "input_audio", "input_audio": {"data": "x" * 999, "format": "wav"}}, 16 + 11 + 3 + 8192),
        ({"type": "file", "file": {"file_data": DATA, "filename": "a.pdf"}}, 16 + 4 + 5 + 8192),
        ({"type": "file", "file": {"file_id": "f-1"}}, 16 + 4 + 3 + 8192),
        ({"type": "video_url", "video_url": {"url": "http://x"}}, 16 + 9 + 8 + 8192),
        ({"type": "x", "image": DATA}, 16 + 1 + 8192),
        ({"type": "x", "y": "abc"}, 16 + 1 + 3),
    ],
)
def test_part_is_16_tokens_and_media_8192_without_its_data(part: dict[str, Any], tokens: int) -> None:
    assert worst_part(**part) == tokens


def test_reference_to_earlier_audio_counts_as_media() -> None:
    turn = {"role": "assistant", "content": None, "audio": {"id": "a-1"}}
    assert worst_input_tokens({"messages": [turn]}) == 16 + 9 + 3 + 8192


def test_estimate_is_1_token_for_4_bytes() -> None:
    parts = [{"type": "text", "text": "né"}, {"type": "image_url", "image_url": {"url": DATA}}]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "four"},
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ],
        "temperature": 1,
    }
    assert estimated_input_tokens(body) == estimated_tokens(4 + 3 + 3 + 2)
    assert estimated_input_tokens({**body, "tools": [{"a": "b"}]}) == estimated_tokens(12 + len('[{"a":"b"}]'))
    assert [estimated_tokens(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "data"]), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["text", "image_url", "data", "x"]), ANYTHING, max_size=3)
PARTS = st.tuples(st.sampled_from(["text", "image_url", "x"]), OBJECTS).map(lambda part: {"type": part[0], **part[1]})
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("user"), "content": st.none() | st.text(max_size=4) | st.lists(PARTS, max_size=2)},
    optional={
        "tool_calls": st.none() | st.lists(OBJECTS, max_size=2),
        **dict.fromkeys(("function_call", "audio", "name"), st.none() | st.text(max_size=4) | OBJECTS),
    },
)
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGES, min_size=1, max_size=3)},
    optional={
        **dict.fromkeys(("tools", "functions"), st.none() | st.lists(OBJECTS, max_size=2)),
        **dict.fromkeys(("response_format", "documents", "metadata"), ANYTHING),
    },
)


def string_bytes(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(string_bytes, value.values() if isinstance(value, dict) else value))
    return len(value.encode()) if isinstance(value, str) else 0


@given(BODIES)
def test_worst_case_counts_strings_messages_parts_and_tools(body: dict[str, Any]) -> None:
    added = 16 * (len(body["messages"]) + len(body.get("tools") or []) + len(body.get("functions") or []))
    for message in body["messages"]:
        added += 16 * (len(message.get("tool_calls") or []) + isinstance(message.get("function_call"), dict))
        added += 8192 * isinstance(message.get("audio"), dict)
        parts = message["content"] if isinstance(message["content"], list) else []
        added += sum(worst_part(**part) - string_bytes(part) for part in parts)
    assert worst_input_tokens(body) == string_bytes(body) + added


@given(BODIES)
def test_any_request_has_an_estimate(body: dict[str, Any]) -> None:
    assert estimated_input_tokens(body) >= 0
