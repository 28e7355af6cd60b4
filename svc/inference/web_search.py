"""A search of the web by the operator's engine: SearXNG, Brave or Tavily.

hold -> one GET or POST, which is never repeated -> up to 8 results, or UpstreamFault with a sentence for the model
     -> the price of a search; a failed one costs nothing

The hosts of results are not resolved. Sources of the formats: docs.searxng.org/dev/search_api.html,
api-dashboard.search.brave.com/app/documentation/web-search,
docs.tavily.com/documentation/api-reference/endpoint/search.
"""

import asyncio
import contextlib
import html
import re
import sqlite3
import time
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson

from svc.errors import UpstreamFault
from svc.inference.answer.raw_answer import parsed
from svc.inference.answer.upstream_errors import CLIENT_FAULTS, fault_of
from svc.inference.catalog import Model, Provider
from svc.inference.model_call import Bill, Engines, ModelCall, Payer
from svc.outbound.client import Headers, Outbound

MOST_RESULTS = 8
QUERY_LENGTH = 400  # the limit of Brave and Tavily
PRICE = "micros_per_search"
_SECONDS = 15.0
_ANSWER_BYTES = 1024 * 1024
_LENGTHS = {"title": 200, "url": 1_000, "snippet": 600, "published": 100}
_TAG = re.compile(r"<[^<>]{1,100}>")
# What an engine says when the operator's quota is used up; 432 and 433 are Tavily's.
_OUT_OF_QUOTA = (402, 429, 432, 433)

Result = dict[str, str | None]


class _Format(NamedTuple):
    """The interface of an engine. `place` leads to the list of results, in which `snippet` and `published` are fields.

    With `posts` the query is in a JSON body, else in the query string, with `fields` beside it. A key follows
    `key_prefix` in `key_header`.
    """

    base_url: str | None
    path: str
    posts: bool
    fields: dict[str, Any]
    key_header: bytes
    key_prefix: bytes
    place: tuple[str, ...]
    snippet: str
    published: tuple[str, ...]


ENGINES = {
    "searxng": _Format(
        None,
        "/search",
        False,
        {"format": "json"},
        b"authorization",
        b"Bearer ",
        ("results",),
        "content",
        ("publishedDate",),
    ),
    "brave": _Format(
        "https://api.search.brave.com",
        "/res/v1/web/search",
        False,
        {"count": MOST_RESULTS, "result_filter": "web", "text_decorations": "false"},
        b"x-subscription-token",
        b"",
        ("web", "results"),
        "description",
        ("page_age", "age"),
    ),
    "tavily": _Format(
        "https://api.tavily.com",
        "/search",
        True,
        {"max_results": MOST_RESULTS},
        b"authorization",
        b"Bearer ",
        ("results",),
        "content",
        ("published_date",),
    ),
}


def search_model(engine: str, base_url: str, api_key: str | None, micros_per_search: int) -> Model:
    """Return the engine as a model, which calls, usage and the ledger name. No id of a provider's model is like it."""
    provider = Provider(engine, base_url, api_key, timeout_seconds=_SECONDS)
    return Model(f"search:{engine}", engine, provider, "search", {PRICE: micros_per_search})


class SearchCall(ModelCall):
    """One search. `results` are None until the engine has answered."""

    def __init__(self, model: Model, query: str, engines: Engines, payer: Payer) -> None:
        super().__init__(model, engines, payer)
        self._query = query
        self.results: list[Result] | None = None

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._model.prices[PRICE])

    def bill(self) -> Bill:
        made = 0 if self._failed or self.results is None else 1
        text = f"{self._model.id}: {made} search{'' if made else 'es'}"
        return Bill(0, 0, made * self._model.prices[PRICE], text)

    async def make(self) -> list[Result]:
        """Return the results. Raises UpstreamFault, whose text is a sentence for the model."""
        self._began_at = self._asked_at = time.monotonic()
        try:
            self.results = await found(self._engines.outbound, self._model, self._query)
        except UpstreamFault as fault:
            self.ended(fault)
            raise
        finally:
            self.ended()
        return self.results


async def found(client: Outbound, model: Model, query: str) -> list[Result]:
    """Return what the engine finds. Raises UpstreamFault, whose text is a sentence for the model."""
    assert model.provider is not None
    provider, form = model.provider, ENGINES[model.name]
    try:
        async with asyncio.timeout(_SECONDS):
            method, url, headers, body = _request(provider, form, query)
            reply = await client.send(method, url, headers, body, timeout_seconds=_SECONDS)
            async with contextlib.aclosing(reply):
                if reply.status != 200:
                    raise UpstreamFault("status", _refusal(reply.status), status=reply.status)
                answer = await reply.read(_ANSWER_BYTES)
            entries = await asyncio.to_thread(entries_of, answer, provider, form)
    except CLIENT_FAULTS as error:
        kind = getattr(fault_of(error), "kind", "unreachable")
        raise UpstreamFault(kind, _SENTENCES.get(kind, _SENTENCES["invalid"])) from None
    results = (result_of(entry, form) for entry in entries if isinstance(entry, dict))
    by_url = {result["url"]: result for result in reversed([one for one in results if one["url"]])}
    return list(reversed(by_url.values()))[:MOST_RESULTS]


def _request(provider: Provider, form: _Format, query: str) -> tuple[str, str, Headers, bytes]:
    headers: Headers = ((b"accept", b"application/json"),)
    if provider.api_key:
        headers += ((form.key_header, form.key_prefix + provider.api_key.encode()),)
    url = provider.base_url.rstrip("/") + form.path
    query = query.encode("utf-8", "replace").decode()
    if form.posts:
        body = orjson.dumps({"query": query, **form.fields})
        return "POST", url, (*headers, (b"content-type", b"application/json")), body
    return "GET", f"{url}?{urlencode({'q': query, **form.fields})}", headers, b""


_SENTENCES = {
    "timeout": "The search engine did not answer in time. Search again later, or answer without it.",
    "unreachable": "The search engine cannot be reached. Answer without it, and say so.",
    "invalid": "The search engine sent an answer that cannot be used. Answer without it, and say so.",
}


def is_out_of_quota(fault: UpstreamFault) -> bool:
    return fault.status in _OUT_OF_QUOTA


def _refusal(status: int) -> str:
    if status in _OUT_OF_QUOTA:
        return f"The quota of the search engine is used up (status {status}). Search later, or answer without it."
    if status in (401, 403):
        return f"The search engine refuses this service (status {status}). Its operator must check [search]."
    if status in (400, 414, 422):
        return f"The search engine refuses this query (status {status}). Try a shorter one."
    return f"The search engine failed (status {status}). Search again later, or answer without it."


def entries_of(answer: bytes, provider: Provider, form: _Format) -> list[Any]:
    """Return the list of results in an answer, without the key. Raises UpstreamFault."""
    try:
        value = parsed(answer, provider, apart=True)
    except (UpstreamFault, RecursionError):  # its text may quote the answer
        value = None
    for depth, name in enumerate(form.place):
        if depth and value is None:
            return []  # Brave leaves out `web` if it has found nothing
        value = value.get(name) if isinstance(value, dict) else False
    if not isinstance(value, list):
        raise UpstreamFault("invalid", _SENTENCES["invalid"])
    return value


def result_of(entry: dict[str, Any], form: _Format) -> Result:
    """Return an entry of an engine in our form, with texts of bounded length. Odd values are left out."""
    published = next((value for name in form.published if (value := entry.get(name))), None)
    texts = {"title": entry.get("title"), "url": entry.get("url"), "snippet": entry.get(form.snippet)}
    result: Result = {name: _text(value, name, form) for name, value in {**texts, "published": published}.items()}
    url = result["url"] or ""
    if not url.startswith(("http://", "https://")) or len(url) == _LENGTHS["url"] or not url.isprintable():
        result["url"] = None
    return {**result, "published": result["published"] or None}


def _text(value: Any, name: str, form: _Format) -> str:
    if not isinstance(value, str):
        return ""
    text = value[: 4 * _LENGTHS[name]]
    if form is ENGINES["brave"] and name != "url":  # its texts are HTML
        text = html.unescape(_TAG.sub("", text))
    text = text.encode("utf-8", "replace").decode()
    return (" ".join(text.split()) if name != "url" else text.strip())[: _LENGTHS[name]]
