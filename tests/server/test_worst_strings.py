"""The worst strings known, a megabyte each, in every text field of every endpoint, get a clear answer and do not block
the loop.

The fields come from the interface document; the watchdog of every in-process test judges how long the loop was kept.
"""

import copy
import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.conftest import JSON, Service, bearer
from tests.support.cases import each
from tests.support.openapi import DOCUMENT, resolved

LENGTH = 1_000_000  # bytes in JSON, just under what most paths take
WORST = {
    "combining marks": "a" + "\u0300\u0316" * (LENGTH // 5),
    "backslashes": "\\" * (LENGTH // 2),
    "dots": "." * LENGTH,
    "brackets": "[" * LENGTH,
    "a bomb for patterns": "a" * LENGTH + "!@" + "a." * 100,
    "digits": "9" * LENGTH,
    "white space": " \t\n" * (LENGTH // 6) + "x",
    "at signs": "@" * LENGTH,
    "quotes and braces": '{"' * (LENGTH // 3),
}
Place = tuple[str | int, ...]


def json_bodies() -> Iterator[tuple[str, str, Any]]:
    """Method, path and an example of each operation that takes JSON."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            content = resolved(operation.get("requestBody", {})).get("content", {}).get("application/json")
            if content is not None and isinstance(found := example(content), dict | list):
                yield method.upper(), path, found


def example(content: dict[str, Any]) -> Any:
    if "example" in content:
        return content["example"]
    if "examples" in content:
        return resolved(next(iter(content["examples"].values())))["value"]
    schema = resolved(content["schema"])
    return schema.get("example", (schema.get("examples") or [{}])[0])


def text_fields(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where the texts of an example stand."""
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, str):
            yield (*place, name)
        elif isinstance(item, dict | list):
            yield from text_fields(item, (*place, name))


def with_text(value: Any, place: Place, text: str) -> Any:
    changed = copy.deepcopy(value)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = text
    return changed


CASES = [(method, path, body, place) for method, path, body in json_bodies() for place in text_fields(body)]


def test_many_endpoints_have_text_fields() -> None:
    assert len({(method, path) for method, path, _, _ in CASES}) > 20


@pytest.mark.slow
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@each("kind", WORST)
async def test_worst_text_in_any_field_does_not_block_the_loop(service: Service, kind: str, stride: int) -> None:
    text = WORST[kind]
    session = await service.sign_up()
    headers = {**bearer((await service.make_key(bearer(session["access_token"])))["key"]), **JSON}
    addresses = itertools.count()
    for method, path, body, place in CASES[
        [*WORST].index(kind) % stride :: stride
    ]:  # each field has three kinds, or all
        service.clocks.advance(61)  # every limit is reset
        number = next(addresses)
        service.transport.client = (f"203.0.{number // 250}.{number % 250}", 1)
        target = path.replace("{", "").replace("}", "")
        content = orjson.dumps(with_text(body, place, text))
        answer = await service.client.request(method, target, content=content, headers=headers)
        assert answer.status_code < 500 or answer.status_code in (501, 502, 503, 504), (
            method,
            path,
            place,
            answer.text,
        )


@pytest.mark.slow
@each("kind", WORST)
async def test_worst_address_query_or_header_does_not_block_the_loop(service: Service, kind: str) -> None:
    text = WORST[kind][:1_500]
    coded = text.replace("\t", " ").replace("\n", " ").encode()
    headers = await service.bearer()
    for number, (path, item) in enumerate(DOCUMENT["paths"].items()):
        if "get" not in item:
            continue
        parameters = [resolved(parameter) for parameter in item["get"].get("parameters", [])]
        query = {one["name"]: text for one in parameters if one["in"] == "query"}
        target = path
        for one in parameters:
            if one["in"] == "path":
                target = target.replace("{" + one["name"] + "}", quote(text, safe=""))
        # The others together, since a request without a valid key is refused before they are read. The token is read the
        # same way on all paths: each kind on a ninth of them.
        tokens = [("authorization",)] if number % len(WORST) == [*WORST].index(kind) else []
        for names in (*tokens, ("cookie", "accept", "x-request-id", "range", "if-none-match")):
            service.clocks.advance(61)
            sent = {**headers, **dict.fromkeys(names, coded)}
            answer = await service.client.get(target, params=query, headers=sent)
            assert answer.status_code < 500 or answer.status_code in (502, 503, 504), (path, answer.text)
