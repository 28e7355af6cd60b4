"""Requests that are passed on as they came: only what the service owns differs, and the rest keeps its bytes."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.catalog import Model, Provider
from svc.inference.passed_request import PassedRequest
from svc.json_splice import items_of
from tests.support.cases import each
from tests.support.json_texts import GAPS, VALUES, objects

APIS = ("responses", "messages")
LIMITS = {"responses": "max_output_tokens", "messages": "max_tokens"}
ITEMS = {"responses": "input", "messages": "messages"}
PRICES = {"input_micros_per_million_tokens": 1, "output_micros_per_million_tokens": 1}
TOOLS = {
    "responses": ['{"type" : "function","name":"f"}', '{"type":"custom","name":"c"}'],
    "messages": ['{"name" : "f","input_schema":{"type":"object","properties":{"model":{},"api_base":{}}}}'],
}
HOSTED = ['{"type":"web_search_20250305","name":"web_search"}', '{"type" : "file_search","name":"file_search"}']


def model_of(api: str, *, paid: bool = True, byok: bool = False, **fields: Any) -> Model:
    provider = Provider("lab", "http://127.0.0.1:1/v1", byok=byok, api=api)
    return Model("lab/m", "m", provider, "chat", PRICES if paid else {}, api=api, **fields)


def sent(api: str, text: str, model: Model, **more: Any) -> tuple[PassedRequest, str]:
    passed = PassedRequest(api, text.encode(), json.loads(text), model, **more)
    return passed, passed.json_of(passed.for_model(model, {"max_tokens": 9} if model.paid else {})).decode()


def written_members(text: str) -> dict[str, str]:
    """The texts of the members of a JSON object; of a repeated one the last."""
    data = text.encode()
    return {item.name: data[item.value_start : item.end].decode() for item in items_of(data, data.index(b"{"))}


@st.composite
def bodies(draw: st.DrawFn, api: str) -> str:
    tools = draw(st.lists(st.sampled_from([*TOOLS[api], *HOSTED]), max_size=4))
    members = {
        "model": '"alias"',
        ITEMS[api]: draw(
            st.sampled_from(['[ {"role":"user","content":"\\u0061 \\/"} ]', '[{"role":"user","content":[]}]'])
        ),
        "tools": "[" + " , ".join(tools) + "]",
        "temperature": draw(st.sampled_from(["1.0", "0.10", "1e-1"])),
        "metadata": draw(objects(VALUES)),
        "reasoning" if api == "responses" else "thinking": draw(VALUES),
        "service_tier": '"flex"',
        "a new field": draw(VALUES),
        "store": "true",
        LIMITS[api]: draw(st.sampled_from(["5", "5.0", "100"])),
    }
    optional = [name for name in members if name not in ("model", ITEMS[api])]
    names = ["model", ITEMS[api], *draw(st.lists(st.sampled_from(optional), max_size=len(optional)))]
    gap = draw(GAPS)
    text = ",".join(f'{gap}"{name}"{gap}:{gap}{members[name]}{gap}' for name in draw(st.permutations(names)))
    return f"{gap}{{{text}}}{gap}"


def check_request(api: str, text: str) -> None:
    before, written = json.loads(text), written_members(text)
    for model in (model_of(api, paid=False, byok=True), model_of(api, paid=False), model_of(api)):
        passed, result = sent(api, text, model)
        after, now = json.loads(result), written_members(result)
        owned = {"model", "tools", *passed.ignored.fields}
        owned |= {LIMITS[api]} if model.paid else set()
        owned |= {"store"} if api == "responses" and not model.byok else set()
        changed = {name.split(".")[0] for name in passed.ignored.fields} | {
            name for name in before if before[name] is None
        }
        assert {name: after[name] for name in after if name not in owned | changed} == {
            name: before[name] for name in before if name not in owned | changed
        }
        for name in now.keys() - owned - changed:
            assert now[name] == written[name]
        assert after["model"] == "m" and now.get("tools", "[]") in (*_kept_tools(written, api), written.get("tools"))
        assert api == "messages" or model.byok or after["store"] is False
        assert not model.paid or after[LIMITS[api]] == 9
        if model.byok:
            assert result == text.replace('"alias"', '"m"')


def _kept_tools(written: dict[str, str], api: str) -> list[str]:
    """What may be left of the tools: only those of the caller, with the bytes of each."""
    kept = [tool for tool in written.get("tools", "[]")[1:-1].split(" , ") if tool in TOOLS[api]]
    return ["[" + " , ".join(kept) + "]", "[]"]


@each("api", APIS)
def test_only_owned_fields_differ(api: str) -> None:
    given(bodies(api))(lambda text: check_request(api, text))()


@pytest.mark.soak
@pytest.mark.timeout(900)
@each("api", APIS)
def test_only_owned_fields_differ_in_a_thousand_bodies(api: str) -> None:
    given(bodies(api))(settings(max_examples=1_000)(lambda text: check_request(api, text)))()


def request_of(api: str, **fields: Any) -> str:
    return json.dumps({"model": "a", ITEMS[api]: [{"role": "user", "content": "hi"}], LIMITS[api]: 5, **fields})


@each("api", APIS)
def test_priced_model_gets_no_field_with_another_price(api: str) -> None:
    fields = {"service_tier": "priority", "speed": "fast", "container": "c", "metadata": {"api_base": "x", "a": "b"}}
    passed, result = sent(api, request_of(api, **fields), model_of(api))
    assert (
        json.loads(result)["metadata"] == {"a": "b"}
        and not {"service_tier", "speed", "container"} & json.loads(result).keys()
    )
    assert {*passed.ignored.fields} == {"service_tier", "speed", "container", "metadata.api_base"}
    _, result = sent(api, request_of(api, **fields), model_of(api, extra_fields=frozenset({"service_tier"})))
    assert json.loads(result)["service_tier"] == "priority"


def test_summaries_of_the_vendor_are_left_out_for_a_priced_model() -> None:
    for kind, passes in (("clear_thinking_20251015", True), ("compact_20260112", False)):
        _, result = sent(
            "messages", request_of("messages", context_management={"edits": [{"type": kind}]}), model_of("messages")
        )
        assert ("context_management" in json.loads(result)) is passes


def test_mark_for_an_hour_is_for_5_minutes_without_its_price() -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    block = {"type": "text", "text": "hi", "cache_control": mark}
    result_block = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    fields = {
        "system": [block],
        "messages": [{"role": "user", "content": [block, result_block]}],
        "cache_control": mark,
    }
    text = request_of(
        "messages", **fields, tools=[{"name": "f", "input_schema": {"cache_control": mark}, "cache_control": mark}]
    )
    _, result = sent("messages", text, model_of("messages"))
    assert result.count('"1h"') == 1 and result.count('"ephemeral"') == 6
    hour = dict.fromkeys(["cache_write_1h_micros_per_million_tokens"], 2) | PRICES
    _, result = sent("messages", text, dataclasses.replace(model_of("messages"), prices=hour))
    assert result.count('"1h"') == 6


SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@each("api", APIS)
def test_hosted_tools_travel_with_a_price(api: str) -> None:
    own = json.loads(TOOLS[api][0])
    model = model_of(api, hosted_tools={"web_search": 10_000})
    text = request_of(api, tools=[own, {**SEARCH, "max_uses": 3}, {"type": "code_interpreter", "name": "x"}])
    passed, result = sent(api, text, model)
    assert json.loads(result)["tools"] == [own, {**SEARCH, "max_uses": 3}]
    assert passed.ignored.tools == ("code_interpreter",) and passed.hosted_micros == 30_000
    assert sent(api, request_of(api, tools=[SEARCH]), model)[0].hosted_micros == 80_000
    passed, result = sent(api, request_of(api, tools=[SEARCH], tool_choice={"type": "auto"}), model_of(api))
    assert not {"tools", "tool_choice"} & json.loads(result).keys() and passed.hosted_micros == 0
    _, result = sent(api, text, model_of(api, paid=False, byok=True))
    assert len(json.loads(result)["tools"]) == 3


@each(
    "api, choice",
    [
        ("responses", "required"),
        ("responses", {"type": "web_search"}),
        ("responses", {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}),
        ("messages", {"type": "any"}),
        ("messages", {"type": "tool", "name": "web_search"}),
    ],
)
def test_demand_for_a_hosted_tool_without_a_price_is_refused(api: str, choice: Any) -> None:
    text = request_of(api, tools=[SEARCH], tool_choice=choice)
    with pytest.raises(ApiError) as refused:
        sent(api, text, model_of(api))
    assert (refused.value.status, refused.value.error["param"]) == (400, "tool_choice")
    _, result = sent(api, text, model_of(api, hosted_tools={"web_search": 0}))
    assert json.loads(result)["tool_choice"] == choice


def test_tools_in_an_item_are_left_out_too() -> None:
    own = json.loads(TOOLS["responses"][0])
    items = [{"type": "additional_tools", "tools": [own, SEARCH]}, {"role": "user", "content": "hi"}]
    passed, result = sent("responses", request_of("responses", input=items), model_of("responses"))
    assert json.loads(result)["input"][0]["tools"] == [own] and passed.ignored.tools == (SEARCH["type"],)


def test_reference_is_replaced_by_the_items_bytes_at_an_operators_server() -> None:
    items = '[ {"type":"item_reference","id":"rs_1"} , {"id":"msg_2"},{"role":"user","content":"hi"} ]'
    text = f'{{"model":"a","input":{items}}}'
    kept = {"rs_1": b'{"id":"rs_1","n":1.0}', "msg_2": b'{"id" : "msg_2"}'}
    _, result = sent("responses", text, model_of("responses"), referenced=lambda item_id, param: kept[item_id])
    assert '"input":[ {"id":"rs_1","n":1.0} , {"id" : "msg_2"},{"role":"user","content":"hi"} ]' in result
    repeated = text.replace("msg_2", "rs_1")
    with pytest.raises(ApiError, match="Duplicate"):
        sent("responses", repeated, model_of("responses"), referenced=lambda item_id, param: kept[item_id])
