"""The tokens of a request: the worst case for the hold, and the estimate."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from svc.inference.tokens import estimated_input_tokens, estimated_tokens, worst_input_tokens, worst_tokens_of
from tests.support.cases import each

DATA = "data:image/png;base64," + "A" * 1000
LARGE = "A" * 40_000  # 30,000 bytes after decoding


def worst(request: dict[str, Any]) -> int:
    """The most tokens of a request beyond its bytes."""
    return worst_input_tokens(request, 0)


def worst_part(**part: Any) -> int:
    """The most tokens of a part beyond its bytes and the frame of 16."""
    return worst({"messages": [{"role": "user", "content": [part]}]}) - 2 * 16


def test_each_byte_is_1_token_and_a_message_part_tool_and_tool_call_16() -> None:
    assert worst_input_tokens({"messages": [{"role": "user", "content": "né"}]}, 1234) == 1234 + 16
    assert worst({"messages": [{"role": "user", "content": None}] * 3, "model": "m", "user": "x" * 100}) == 3 * 16
    text = {"type": "text", "text": "x"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": [text, text]},
        {"role": "assistant", "content": None, "tool_calls": [call, call, call]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "tool", "tool_call_id": "c", "content": [text]},
    ]
    tools = {"tools": [{"type": "function", "function": {"name": "f"}}] * 2, "functions": [{"name": "f"}]}
    assert worst({"messages": turns, **tools}) == 16 * (4 + 3 + 3 + 1 + 3)
    assert worst({"messages": turns, "tools": None, "functions": None}) == 16 * (4 + 3 + 3 + 1)


def image(url: Any, kind: str = "image_url", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "image_url": url, **fields}


def block(kind: str, **source: Any) -> dict[str, Any]:
    return {"type": kind, "source": source}


PNG = {"type": "base64", "media_type": "image/png"}
PDF = {"type": "base64", "media_type": "application/pdf"}


@each(
    ("part", "tokens"),
    [
        ({"type": "text", "text": "x"}, 0),
        (block("image", **PNG, data="A" * 1000), 8192 - 1000),
        (block("image", type="url", url="https://example.com/a.png"), 8192),
        (block("image", type="file", file_id="f"), 8192),
        # what is no data of an image for certain is counted byte by byte
        (block("image", type="base64", media_type="text/plain", data=LARGE), 30_000 - len(LARGE)),
        (block("image", **PNG, data="not base64"), 8192),
        (block("image", **PNG, data=None), 8192),
        (block("document", **PDF, data=LARGE), 30_000 - len(LARGE)),
        (block("document", **PDF, data="AAAA"), 8192 - 4),
        (block("document", type="text", media_type="text/plain", data="AAAA"), 0),
        (block("document", type="content", content=[{"type": "text", "text": "x"}]), 16),
        ({"type": "tool_result", "tool_use_id": "a", "content": [block("image", **PNG, data="A" * 1000)]}, 8208 - 1000),
        ({"type": "tool_result", "tool_use_id": "a", "content": "text"}, 0),
        ({"type": "thinking", "thinking": "x", "signature": "AAAA"}, 0),
        ({"type": "odd", "source": "A" * 1000}, 0),
        ({"type": "odd_image", "data": "A" * 1000}, 8192),
    ],
)
def test_blocks_of_messages_count_as_parts_of_chat(part: dict[str, Any], tokens: int) -> None:
    request = {"messages": [{"role": "user", "content": [part]}], "max_tokens": 1}
    assert worst_tokens_of("messages", request, 1000) == 1000 + 2 * 16 + tokens


@each(
    ("item", "tokens"),
    [
        ({"type": "message", "role": "user", "content": "x"}, 0),
        ({"role": "user", "content": [{"type": "input_text", "text": "x"}]}, 16),
        ({"role": "user", "content": [image(DATA, "input_image")]}, 16 + 8192 - len(DATA)),
        ({"role": "user", "content": [{"type": "input_file", "file_data": LARGE}]}, 16 + 30_000 - len(LARGE)),
        ({"type": "function_call_output", "call_id": "c", "output": [image(DATA, "input_image")]}, 8208 - len(DATA)),
        ({"type": "function_call_output", "call_id": "c", "output": "text"}, 0),
        ({"type": "function_call", "call_id": "c", "name": "image", "arguments": "{}"}, 0),
        ({"type": "reasoning", "summary": [], "encrypted_content": "AAAA"}, 0),
    ],
)
def test_items_of_responses_count_as_messages_of_chat(item: dict[str, Any], tokens: int) -> None:
    assert worst_tokens_of("responses", {"input": [item]}, 1000) == 1000 + 16 + tokens
    assert worst_tokens_of("responses", {"input": [item], "tools": [{}, {}]}, 1000) == 1000 + 3 * 16 + tokens


def test_text_and_system_text_are_counted_by_their_bytes() -> None:
    assert worst_tokens_of("responses", {"input": "text"}, 1000) == 1000
    system = [{"type": "text", "text": "x"}]
    assert worst_tokens_of("messages", {"system": system, "messages": []}, 1000) == 1000 + 16


@each(
    ("part", "tokens"),
    [
        # the data of an image is 8,192 instead of its bytes
        (image({"url": DATA}), 8192 - len(DATA)),
        (image({"url": DATA, "detail": "high"}), 8192 - len(DATA)),
        (image(DATA), 8192 - len(DATA)),
        (image(DATA, "input_image"), 8192 - len(DATA)),
        (image({"url": "DATA:Image/JPEG;Charset=utf-8;Base64,AA=="}), 8192 - 41),
        # addresses and ids
        (image({"url": "https://example.com/a.png"}), 8192),
        ({"type": "file", "file": {"file_id": "f-1"}}, 8192),
        ({"type": "file", "file": {"file_data": "https://example.com/a.pdf"}}, 8192),
        ({"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}, 8192),
        ({"type": "input_audio", "input_audio": {"id": "a"}}, 8192),
        # other data is its decoded bytes, and at least 8,192
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}, 8192 - 32),
        ({"type": "file", "file": {"file_data": f"data:text/plain;base64,{LARGE}"}}, 30_000 - 23 - 40_000),
        ({"type": "input_file", "file_data": f"data:text/plain;base64,{LARGE}"}, 30_000 - 23 - 40_000),
        ({"type": "input_audio", "input_audio": {"data": LARGE, "format": "wav"}}, 30_000 - 40_000),
        ({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{LARGE}"}}, 30_000 - 22 - 40_000),
        (image({"url": f"data:application/pdf;base64,{LARGE}"}), 30_000 - 28 - 40_000),
        (image({"url": f"data:image/svg+xml;base64,{LARGE}"}), 30_000 - 26 - 40_000),
        # whatever is not certainly data counts each byte
        ({"type": "text", "text": DATA}, 0),
        ({"type": "x", "y": DATA}, 0),
        ({"type": "x", "image": DATA}, 8192),
        ({"type": "image", "source": {"type": "base64", "data": LARGE}}, 8192),
        ({"type": "file", "file_data": DATA}, 8192),
        (image({"url": DATA, "text": DATA}), 8192 - len(DATA)),
        (image({"url": DATA}, text=DATA), 8192 - len(DATA)),
        (image({"url": {"url": DATA}}), 8192),
        (image([DATA]), 8192),
        (image({"url": LARGE}), 8192),
        (image({"url": "data:image/png;base64,some words"}), 8192),
        (image({"url": DATA + "é"}), 8192),
        (image({"url": DATA + "\n"}), 8192),
        (image({"url": "data:image/png,AAAA"}), 8192),
        (image({"url": f"data:image/png;x={LARGE};base64,AAAA"}), 8192),
        ({"type": "input_audio", "input_audio": {"data": "some words"}}, 8192),
    ],
)
def test_only_data_of_media_is_not_counted_by_its_bytes(part: dict[str, Any], tokens: int) -> None:
    assert worst_part(**part) == tokens


def test_long_data_is_recognized_in_slices() -> None:
    data = "A" * 3_000_000
    assert worst_part(**image({"url": f"data:image/png;base64,{data}"})) == 8192 - 22 - len(data)
    assert worst_part(**image({"url": f"data:image/png;base64,{data} {data}"})) == 8192


def test_reference_to_earlier_audio_counts_as_media() -> None:
    turn = {"role": "assistant", "content": None, "audio": {"id": "a-1"}}
    assert worst({"messages": [turn]}) == 16 + 8192


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
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.just(DATA),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "data", "url"]), inner, max_size=3)
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


@given(BODIES)
def test_hold_is_at_least_the_bytes_without_data_and_the_estimate(body: dict[str, Any]) -> None:
    data_bytes = 0
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            found = part.get("image_url") if part["type"] == "image_url" else None
            url = found.get("url") if isinstance(found, dict) else found
            data_bytes += len(url.encode()) if isinstance(url, str) and url.startswith("data:") else 0
    size_bytes = len(orjson.dumps(body))
    most = worst_input_tokens(body, size_bytes)
    assert most >= size_bytes - data_bytes + 16 * len(body["messages"]) and most >= estimated_input_tokens(body)


@given(BODIES)
def test_any_request_has_an_estimate(body: dict[str, Any]) -> None:
    assert estimated_input_tokens(body) >= 0
