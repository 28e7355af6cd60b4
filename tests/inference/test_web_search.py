"""Searches of the web: what each engine is asked, what its answer becomes, and what a broken one does."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.catalog import Model
from svc.inference.web_search import ENGINES, MOST_RESULTS, QUERY_LENGTH, entries_of, found, result_of, search_model
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.loop_clock import hastened
from tests.support.search_engine import FOUND, KEY, SearchEngine, answer_of


def model_of(engine: SearchEngine, key: str | None = KEY) -> Model:
    return search_model(engine.engine, engine.base_url, key, 0)


async def search(engine: SearchEngine, query: str = "lighthouse fog", key: str | None = KEY) -> list[dict[str, Any]]:
    client = Outbound()
    try:
        return list(await found(client, model_of(engine, key), query))
    finally:
        await client.aclose()


async def fault_of(engine: SearchEngine) -> UpstreamFault:
    with pytest.raises(UpstreamFault) as raised:
        await search(engine)
    assert KEY not in repr(raised.value) and raised.value.message.endswith((".", "so."))
    return raised.value


@each("name", list(ENGINES))
async def test_engine_is_asked_once_as_documented_and_its_results_have_one_form(name: str) -> None:
    async with SearchEngine(name) as engine:
        assert await search(engine, "wie heißt & was?") == [
            {"title": title, "url": url, "snippet": snippet, "published": published}
            for title, url, snippet, published in FOUND
        ]
        (asked,) = engine.requests
    assert asked.query == "wie heißt & was?" and asked.headers["accept"] == "application/json"
    parts = urlsplit(asked.target)
    query = {key: value for key, (value,) in parse_qs(parts.query).items()}
    if name == "searxng":
        assert (asked.method, parts.path, query["format"]) == ("GET", "/search", "json")
        assert asked.headers["authorization"] == f"Bearer {KEY}"
    elif name == "brave":
        assert (asked.method, parts.path, query["count"]) == ("GET", "/res/v1/web/search", "8")
        assert asked.headers["x-subscription-token"] == KEY and "authorization" not in asked.headers
    else:
        assert (asked.method, asked.target, asked.body["max_results"]) == ("POST", "/search", 8)
        assert asked.headers["authorization"] == f"Bearer {KEY}" and KEY not in str(asked.body)


async def test_engine_without_a_key_gets_none() -> None:
    async with SearchEngine("searxng") as engine:
        await search(engine, key=None)
        assert "authorization" not in engine.requests[0].headers


async def test_public_address_is_the_default() -> None:
    assert ENGINES["searxng"].base_url is None
    assert (ENGINES["brave"].base_url, ENGINES["tavily"].base_url) == (
        "https://api.search.brave.com",
        "https://api.tavily.com",
    )


@each("name", list(ENGINES))
async def test_results_are_few_short_and_have_an_address_of_the_web(name: str) -> None:
    odd = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//x",
        "",
        None,
        7,
        ["http://x"],
        "http://a\nb",
        "http://" + "a" * 2_000,
    ]
    many = [("T" * 5_000, f"https://x.example/{n}", "S" * 20_000, "D" * 5_000) for n in range(20)]
    async with SearchEngine(name) as engine:
        entries = [("odd", url, "text", None) for url in odd] + many[:3] + many
        engine.answer = orjson.dumps(answer_of(name, entries))
        results = await search(engine)
    assert [result["url"] for result in results] == [f"https://x.example/{n}" for n in range(MOST_RESULTS)]
    assert len(orjson.dumps(results)) < 32 * 1024
    assert all(result["title"] == "T" * 200 and len(result["snippet"]) == 600 for result in results)


async def test_html_of_brave_becomes_text_and_other_texts_stay() -> None:
    text = "<strong>Fog</strong> &amp; <b>List&lt;int&gt;</b>\n it&#x27;s"
    for name, expected in (("brave", "Fog & List<int> it's"), ("tavily", " ".join(text.split()))):
        async with SearchEngine(name) as engine:
            engine.answer = orjson.dumps(answer_of(name, [(text, "https://x.example/", text, None)]))
            (result,) = await search(engine)
        assert (result["title"], result["snippet"]) == (expected, expected)


async def test_search_without_results_is_an_empty_list() -> None:
    for name in ENGINES:
        async with SearchEngine(name) as engine:
            engine.answer = orjson.dumps(answer_of(name, []))
            assert await search(engine) == []
    async with SearchEngine("brave") as engine:
        engine.answer = b'{"type": "search", "query": {"original": "q"}}'
        assert await search(engine) == []


@each("name", list(ENGINES))
async def test_broken_answer_is_a_fault_with_a_sentence(name: str) -> None:
    deep = b"[" * 100_000
    answers = (
        b"",
        b"no JSON",
        b"<html>",
        b"[]",
        b"7",
        b"null",
        b'{"results": 7, "web": 7}',
        deep,
        b'{"error": "quota"}',
    )
    async with SearchEngine(name) as engine:
        for engine.answer in (*answers, b'{"results": "\xff', b" " * 10_000_000, orjson.dumps({"detail": KEY})):
            if name == "brave" and b"detail" in engine.answer:
                continue
            fault = await fault_of(engine)
            assert fault.kind == "invalid" and "cannot be used" in fault.message
        assert len(engine.requests) == len(answers) + (2 if name == "brave" else 3), "no request is repeated"


@each(
    ("status", "told"),
    [
        *((status, "quota of the search engine is used up") for status in (402, 429, 432, 433)),
        *((status, "Its operator must check [search]") for status in (401, 403)),
        *((status, "Try a shorter one") for status in (400, 422)),
        *((status, "The search engine failed") for status in (301, 302, 404, 500, 503, 599, 204)),
    ],
)
async def test_refusal_names_its_status_and_what_to_do(status: int, told: str) -> None:
    async with SearchEngine("tavily") as engine:
        engine.status, engine.answer = (
            status,
            b"" if status == 204 else orjson.dumps({"detail": {"error": f"no {KEY}"}}),
        )
        fault = await fault_of(engine)
        assert told in fault.message and f"status {status}" in fault.message and fault.status == status
        assert len(engine.requests) == 1


async def test_slow_silent_cut_and_missing_engines_are_faults() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n{")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")

    async with SearchEngine("brave") as engine:
        for engine.play in (silent, dripping):
            fault = await hastened(fault_of(engine))
            assert fault.kind == "timeout" and "in time" in fault.message
        engine.play = cut
        assert (await fault_of(engine)).kind == "cut"
    fault = await fault_of(engine)
    assert fault.kind == "unreachable" and "cannot be reached" in fault.message


async def test_key_in_an_answer_is_hidden() -> None:
    async with SearchEngine("brave") as engine:
        engine.answer = orjson.dumps(answer_of("brave", [(f"the {KEY}", "https://x.example/", KEY, None)]))
        (result,) = await search(engine)
    assert (result["title"], result["snippet"]) == ("the ***", "***")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(
    st.sampled_from(sorted(ENGINES)),
    st.fixed_dictionaries(
        dict.fromkeys(
            ("title", "url", "content", "description", "publishedDate", "published_date", "page_age", "age"),
            JSON_VALUES,
        )
    ),
)
def test_entry_of_any_shape_becomes_texts(name: str, entry: dict[str, Any]) -> None:
    result = result_of(entry, ENGINES[name])
    assert list(result) == ["title", "url", "snippet", "published"]
    assert all(isinstance(value, str | None) for value in result.values())
    orjson.dumps(result)


@given(st.sampled_from(sorted(ENGINES)), JSON_VALUES)
def test_answer_of_any_shape_is_a_list_or_a_fault(name: str, value: Any) -> None:
    provider = search_model(name, "http://a", KEY, 0).provider
    assert provider is not None
    try:
        entries = entries_of(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS), provider, ENGINES[name])
    except (UpstreamFault, orjson.JSONEncodeError):
        return
    assert isinstance(entries, list)


async def test_longest_query_fits_into_a_request() -> None:
    async with SearchEngine("brave") as engine:
        await search(engine, "\U0001f600" * QUERY_LENGTH)
        await search(engine, "half \ud83d")
    assert engine.requests[1].query == "half ?"
