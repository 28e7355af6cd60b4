"""The head of a request: only what two readers of it would understand in the same way. (Over the wire:
test_protocol.py.)
"""

from typing import Any

import pytest

from svc.errors import ApiError
from svc.server.http.head import HEAD_BYTES, HEAD_LINES, Context, Headers, check_head, expects_100, joined, target_of
from svc.server.state import Request
from tests.support.cases import each

HOST = (b"host", b"localhost")


def check(
    *headers: tuple[bytes, bytes], version: str = "1.1", received_bytes: int = 200, upgrades: bool = False
) -> None:
    check_head(version, b"/v1/models", list(headers), received_bytes=received_bytes, upgrades=upgrades)


def test_the_values_of_several_lines_are_one_list() -> None:
    headers = [(b"accept", b"a"), HOST, (b"accept", b"b"), (b"accept", b"c")]
    assert joined(headers) == {b"accept": b"a, b, c", b"host": b"localhost"}


@each(
    ("headers", "version"),
    [
        ([HOST], "1.1"),
        ([HOST], "1.0"),
        ([], "1.0"),
        ([HOST, (b"transfer-encoding", b"Chunked")], "1.1"),
        ([HOST, *[(b"accept", b"x")] * (HEAD_LINES - 1)], "1.1"),
    ],
)
def test_unusual_but_clear_heads_are_accepted(headers: Headers, version: str) -> None:
    check(*headers, version=version)


@each(
    ("headers", "version"),
    [
        ([], "1.1"),
        ([HOST, HOST], "1.1"),
        ([HOST, HOST], "1.0"),
        ([HOST], "2.0"),
        ([HOST, (b"transfer-encoding", b"chunked")], "1.0"),
        ([HOST, (b"transfer-encoding", b"gzip, chunked")], "1.1"),
        ([HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], "1.1"),
    ],
)
def test_ambiguous_heads_are_refused(headers: Headers, version: str) -> None:
    with pytest.raises(ApiError, match=r"Send|Speak|Transfer-Encoding"):
        check(*headers, version=version)


@each("header", [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")])
def test_a_body_cannot_come_with_an_upgrade(header: tuple[bytes, bytes]) -> None:
    check(HOST, upgrades=True)
    with pytest.raises(ApiError, match="upgrade"):
        check(HOST, header, upgrades=True)


def test_head_size_excludes_the_following_bytes() -> None:
    check(HOST, received_bytes=HEAD_BYTES * 4)
    with pytest.raises(ApiError) as caught:
        check(HOST, (b"x", b"x" * HEAD_BYTES), received_bytes=HEAD_BYTES + 1)
    assert caught.value.code == "headers_too_large"
    with pytest.raises(ApiError) as caught:
        check(HOST, *[(b"x", b"")] * HEAD_LINES)
    assert caught.value.code == "headers_too_large"


def test_only_100_continue_is_expected() -> None:
    assert expects_100([HOST, (b"expect", b"100-Continue")])
    assert not expects_100([HOST, (b"expect", b"the best")]) and not expects_100([(b"x", b"100-continue")])


def test_a_target_is_a_path_and_a_query() -> None:
    assert target_of(b"GET", b"/a%20b/%E2%82%AC?x=%20") == ("GET", "/a b/€", b"x=%20", None)
    assert target_of(b"OPTIONS", b"*") == ("OPTIONS", "*", b"", None)
    long = b"/" + b"x" * 1000
    assert target_of(b"POST", long) == ("POST", long.decode(), b"", None)


@each(
    ("method", "url", "expected"),
    [
        (b"GET", b"https://a.example:8443/v1/models?x=https://b/", (b"/v1/models", b"x=https://b/", b"a.example:8443")),
        (b"GET", b"HTTPS://[::1]:1/%41", (b"/A", b"", b"[::1]:1")),
        (b"GET", b"https://a.example", (b"/", b"", b"a.example")),
        (b"GET", b"https://a.example?x", (b"/", b"x", b"a.example")),
        (b"OPTIONS", b"https://a.example", (b"*", b"", b"a.example")),
        (b"OPTIONS", b"https://a.example/", (b"/", b"", b"a.example")),
        (b"GET", b"https://me@a.example/", (b"/", b"", b"me@a.example")),
        (b"GET", b"https:///x", (b"/x", b"", b"")),
    ],
)
def test_a_target_may_be_an_https_url(method: bytes, url: bytes, expected: tuple[bytes, bytes, bytes]) -> None:
    _, path, query, host = target_of(method, url)
    assert (path.encode(), query, host) == expected


@each(
    "url",
    [
        b"",
        b"*",
        b"example.com:443",
        b"ftp://example.com/",
        b"https:/a/",
        b"/a#b",
        b"/a?b#c",
        b"https://a#b",
        b"https://a/#",
    ],
)
def test_target_without_a_path_is_refused(url: bytes) -> None:
    for _ in range(2):
        with pytest.raises(ApiError, match="must be a path"):
            target_of(b"GET", url)


def test_target_with_another_scheme_is_misdirected() -> None:
    with pytest.raises(ApiError) as refused:
        target_of(b"GET", b"http://example.com/")
    assert refused.value.code == "misdirected_request"


@each(
    ("url", "code"),
    [
        (b"/?" + b"a&" * 32_000, "headers_too_large"),
        (b"/?" + b"%" * 64_000, "headers_too_large"),
        (b"/" + b"%" * 64_000, "headers_too_large"),
        (b"/?" + b"a&" * 8_000, "invalid_request"),
        (b"/?" + b"&" * 100, "invalid_request"),
    ],
)
def test_target_is_limited_before_decoding(url: bytes, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        target_of(b"GET", url)
    assert refused.value.code == code
    assert target_of(b"GET", url[:100])


async def unused(*message: Any) -> Any:
    raise NotImplementedError


def test_a_request_has_the_context_of_its_scope() -> None:
    context = Context({b"host": b"127.0.0.1"})
    scope: Any = {"type": "http", "svc": context}
    state: Any = None
    assert Request(scope, unused, state).context is context
    found = (context.headers, context.account_id, context.client_ip, context.counted_body)
    assert found == ({b"host": b"127.0.0.1"}, None, "", None)


def test_a_misspelt_field_of_a_context_fails() -> None:
    context = Context({})
    with pytest.raises(AttributeError):
        context.client_id = "192.0.2.1"  # type: ignore[attr-defined]
