"""The messages of MCP, however a server writes them."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.inference.tool_servers import messages
from svc.inference.tool_servers.messages import RpcError, ToolServerFault
from tests.support.cases import each


def test_parameters_are_sent_as_they_are() -> None:
    params = b'"name":"a","arguments":{ "b":1e0 , "b":2}'
    sent = messages.request(3, "tools/call", params, stateless=False)
    assert sent == b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{%b}}' % params
    with_meta = orjson.loads(messages.request(3, "tools/call", params, stateless=True))
    assert with_meta["params"].keys() == {"name", "arguments", "_meta"}
    assert orjson.loads(messages.request(1, "tools/list", b"", stateless=False))["params"] == {}


@each("body", [b"", b"{", b"\xff", b"[" * 2_000, b"NaN", b'{"a":"\\ud800"}'])
def test_body_that_is_no_json_is_a_fault(body: bytes) -> None:
    with pytest.raises(ToolServerFault):
        messages.parsed(body, ())


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_body_is_messages_or_a_fault(body: bytes) -> None:
    try:
        assert all(isinstance(message, dict) for message in messages.parsed(body, (b"secret-12",)))
    except ToolServerFault:
        pass


def test_secrets_are_replaced_wherever_they_stand() -> None:
    secrets = messages.secrets_of({"authorization": 'Bearer k"ey-0123456', "x-short": "abc", "x-id": "Basic 12345678"})
    body = orjson.dumps({"a": ['k"ey-0123456', {'Bearer k"ey-0123456': "12345678"}], "b": "abc"})
    assert messages.parsed(body, secrets) == [{"a": ["***", {"***": "***"}], "b": "abc"}]


@given(st.text(max_size=60))
def test_header_value_is_one_line_and_can_be_decoded(value: str) -> None:
    import base64

    found = messages.header_value(value)
    assert found.isascii() and found.isprintable()
    if found != value:
        encoded = found.removeprefix("=?base64?").removesuffix("?=")
        assert base64.b64decode(encoded) == value.encode("utf-8", "replace")


@each(
    "value,expected",
    [("a", "a"), ("", ""), (" a", "=?base64?IGE=?="), ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=")],
)
def test_header_value_is_plain_if_it_can_be(value: str, expected: str) -> None:
    assert messages.header_value(value) == expected


def test_long_and_missing_arguments_have_no_header() -> None:
    paths = {"a": ["a"], "b": ["b", "c"], "d": ["d"], "e": ["e"]}
    arguments = {"a": "x" * 5_000, "b": 7, "d": None, "e": 1.5}
    assert messages.argument_headers(paths, arguments) == {"mcp-param-e": "1.5"}
    assert messages.argument_headers(paths, [1]) == {}


@each(
    "answer",
    [{}, {"result": None}, {"result": []}, {"result": {"resultType": "input_required"}}, {"result": {"resultType": 1}}],
)
def test_answer_without_a_complete_result_is_a_fault(answer: dict[str, Any]) -> None:
    with pytest.raises(ToolServerFault):
        messages.outcome(answer)


@each("error", [None, 1, "x", [], {}, {"code": "x", "message": {}}, {"data": {"supported": [[1], "a"]}}])
def test_error_of_any_shape_is_an_error(error: Any) -> None:
    with pytest.raises(RpcError) as raised:
        messages.outcome({"error": error})
    assert raised.value.code == 0 and str(raised.value) == "" and raised.value.supported in ([], ["a"])


@each(
    "received,expected",
    [
        (b'{"result":{"tools":[{"name":"a"},{"name":"b"},{"na', [{"name": "a"}, {"name": "b"}]),
        (b'data: {"result": { "tools" : [ {"name":"a"} , 7, {"x":"\xc3', [{"name": "a"}, 7]),
        (b'{"tools":[{"name":"\\ud800"},{"name":"b"}', []),
        (b'{"tools":' + b"[" * 100_000, []),
        (b"nothing", []),
        (b"", []),
    ],
)
def test_whole_tools_of_a_cut_list_are_found(received: bytes, expected: list[Any]) -> None:
    assert messages.salvaged(received) == expected
