"""svc/inference/field_support.py: which errors refuse a field, what is remembered, for whom and how long."""

import base64
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from svc.billing import wallet
from svc.config import Config
from svc.errors import UpstreamFault
from svc.inference.catalog import Model, Provider
from svc.inference.effort_needs import NO_EFFORT
from svc.inference.field_support import (
    REMEMBERED_SECONDS,
    RETURNED,
    FieldSupport,
    limit_too_large,
    refused_fields,
    without,
)
from svc.server import limits
from tests.conftest import Service, bearer
from tests.support.byok import Names, add_provider
from tests.support.cases import each
from tests.support.model_server import ModelServer

ADDED = ("max_tokens", "stream_options", *RETURNED)
NOW = 1_790_000_000.0


def model(base_url: str = "http://a.example/v1", name: str = "m", byok: bool = False) -> Model:
    return Model(f"a/{name}", name, Provider("a", base_url, byok=byok), "chat", {})


def refusal(message: str, status: int = 400, **fields: Any) -> UpstreamFault:
    return UpstreamFault("status", status=status, error={"message": message, "param": None, "code": None, **fields})


GROQ = "'messages.4' : for 'role:assistant' the following must be satisfied[('messages.4' : property 'reasoning_content' is "
# Sentences of real servers; the name of the field is the second.
SENTENCES = [
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
    ),
    ("Unknown parameter: 'stream_options'.", "stream_options"),
    ("Unrecognized request argument supplied: stream_options", "stream_options"),
    ("body.stream_options: Extra inputs are not permitted", "stream_options"),
    ("stream_options: Extra inputs are not permitted", "stream_options"),
    ("body -> stream_options\n  Extra inputs are not permitted (type=extra_forbidden)", "stream_options"),
    ("Extra inputs are not permitted, field: 'stream_options'", "stream_options"),
    (
        "Extra inputs are not permitted, field: 'messages[8].reasoning_content', value: 'Now; I\nneed 'it'.'",
        "reasoning_content",
    ),
    ("body.messages.5.assistant.reasoning_content: Extra inputs are not permitted", "reasoning_content"),
    ("messages.1.tool_calls.0.extra_content: Extra inputs are not permitted", "extra_content"),
    (
        "body.messages.1.assistant.reasoning_content: Extra inputs are not permitted; "
        "body.messages.3.assistant.reasoning_content: Extra inputs are not permitted",
        "reasoning_content",
    ),
    ("Additional properties are not allowed ('stream_options' was unexpected)", "stream_options"),
    ("Additional properties are not allowed ('reasoning_details' was unexpected) - 'messages.2'", "reasoning_details"),
    ("Unexpected keys in the request: {'stream_options'}", "stream_options"),
    ("property 'stream_options' is unsupported", "stream_options"),
    ("property 'messages.2.reasoning_content' is unsupported", "reasoning_content"),
    (f"{GROQ}unsupported)]", "reasoning_content"),
    (f"{GROQ}unsupported, did you mean 'role'?)]".replace("satisfied[", "satisfied ["), "reasoning_content"),
    ("messages[2].reasoning_content: reasoning is not supported with this model", "reasoning_content"),
    ('Invalid JSON payload received. Unknown name "stream_options": Cannot find field.', "stream_options"),
    ("Unknown name \"reasoning_content\" at 'messages[1]': Cannot find field.", "reasoning_content"),
    ('json: unknown field "stream_options"', "stream_options"),
    (
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown field `reasoning_content`, "
        "expected one of `role`, `content` at line 1 column 90",
        "reasoning_content",
    ),
]


@each(("message", "field"), SENTENCES)
def test_refusals_of_real_servers_name_their_field(message: str, field: str) -> None:
    assert refused_fields(refusal(message, 422), ADDED) == {field}
    assert refused_fields(refusal(message), {*ADDED} - {field}) == set(), (
        "a field of the caller is not ours to leave out"
    )


@each("field", ["stream_options", "max_tokens", "messages.2.reasoning_content", "body.messages[1].extra_content"])
def test_param_of_an_error_names_its_field(field: str) -> None:
    named = {field.rpartition(".")[2]}
    assert refused_fields(refusal("No.", param=field, code="unsupported_parameter"), ADDED) == named
    assert refused_fields(refusal(f"Unknown parameter: '{field}'. (request id: 7)", param=field), ADDED) == named
    assert refused_fields(refusal("It makes no sense.", param=field, code="invalid_value"), ADDED) == set()


def test_refusal_may_name_several_fields_but_nothing_else() -> None:
    problems = [
        "body.stream_options: Extra inputs are not permitted",
        "body.max_tokens: Extra inputs are not permitted",
    ]
    assert refused_fields(refusal("; ".join(problems)), ADDED) == {"stream_options", "max_tokens"}
    assert refused_fields(refusal("; ".join([*problems, "body.user: Input should be a string"])), ADDED) == set()


@each(
    "fault",
    [
        refusal(
            "max_tokens is too large: 5000. This model supports at most 4096 completion tokens.", param="max_tokens"
        ),
        refusal("This model does not support max_tokens above 4096, which is the maximum value.", param="max_tokens"),
        refusal(
            "stream_options is not supported when n is over 1.", param="stream_options", code="unsupported_parameter"
        ),
        refusal("Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 5000 instead."),
        refusal("Unsupported parameter: 'temperature' is not supported with this model."),
        refusal("body.metadata.stream_options: Extra inputs are not permitted"),
        refusal("messages.0.stream_options: Extra inputs are not permitted"),
        refusal("Unsupported value", param="metadata.stream_options", code="unsupported_parameter"),
        refusal("Unknown parameter: 'stream_options'.", 500),
        refusal(
            "'stream_options' is not supported with this model"
        ),  # it may be a value, of `reasoning_effort` for instance
        refusal("reasoning_effort: stream_options is not supported"),
        refusal(f"{GROQ}unsupported)]".replace("reasoning_content", "stream_options")),
        UpstreamFault("status", status=400),
        UpstreamFault("timeout"),
    ],
)
def test_other_errors_refuse_no_field(fault: UpstreamFault) -> None:
    assert refused_fields(fault, ADDED) == set()


SAID = st.sampled_from([message for message, _ in SENTENCES]) | st.sampled_from(ADDED) | st.text(max_size=8)


@given(
    st.text(max_size=12) | st.sampled_from(["'", '"', "x; ", "x\n"]),
    SAID,
    st.text(max_size=12) | st.sampled_from(["'", "; x"]),
)
def test_quoted_text_after_other_text_refuses_no_field(before: str, said: str, after: str) -> None:
    assert refused_fields(refusal(f"Invalid value: {before}{said}{after}"), ADDED) == set()


def test_refusal_is_remembered_for_an_hour_by_model_and_address() -> None:
    support, fields = FieldSupport(), {"stream_options"}
    support.remember(model(), "acc_1", fields, NOW)
    assert support.unsupported(model(), "acc_2", NOW + REMEMBERED_SECONDS - 1) == fields
    assert support.unsupported(model(), "acc_2", NOW + REMEMBERED_SECONDS) == set()
    assert support.unsupported(model(), "acc_2", NOW - 1) == set(), "the clock was set back"
    assert support.unsupported(model(name="other"), "acc_1", NOW) == set()
    assert support.unsupported(model("http://b.example/v1"), "acc_1", NOW) == set()
    support.remember(model(), "acc_1", (), NOW)
    assert REMEMBERED_SECONDS == 3600


def test_refusal_of_an_own_provider_affects_only_its_account() -> None:
    support, own = FieldSupport(), model(byok=True)
    support.remember(own, "acc_1", {"stream_options"}, NOW)
    assert support.unsupported(own, "acc_1", NOW) == {"stream_options"}
    assert support.unsupported(own, "acc_2", NOW) == support.unsupported(model(), "acc_1", NOW) == set()


def test_a_thousand_models_are_remembered() -> None:
    support = FieldSupport()
    for number in range(1_100):
        support.remember(model(name=str(number)), "acc_1", {"max_tokens"}, NOW)
    known = [number for number in range(1_100) if support.unsupported(model(name=str(number)), "acc_1", NOW)]
    assert known == [*range(100, 1_100)]


def test_only_an_added_field_is_left_out() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    full = {
        **turn,
        "reasoning_content": "hm",
        "reasoning_details": [],
        "tool_calls": [{**call, "extra_content": {"a": 1}}],
    }
    body = {"stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": "hi"}, full]}
    assert without(body, ["stream_options", *RETURNED]) == {"messages": [{"role": "user", "content": "hi"}, turn]}
    assert without(body, ["reasoning_content"])["messages"][1] == {
        name: full[name] for name in full if name != "reasoning_content"
    }


@each("names", [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")])
def test_the_output_limit_stays_under_its_other_name(names: tuple[str, str]) -> None:
    sent = {name: 9 if name == "max_tokens" else None for name in names}
    assert without(sent, ["max_tokens"]) == {"max_completion_tokens": 9}


@each(
    ("message", "too_large"),
    [
        ("max_tokens is too large: 5000. This model supports at most 4096 completion tokens.", True),
        ("This model's maximum context length is 4096 tokens. However, you requested 4200 tokens.", True),
        ("the request exceeds the available context size", True),
        ("max_tokens: 9 > 8, which is the maximum allowed number of output tokens for m", True),
        ("temperature must be a number", False),
    ],
)
def test_limit_over_the_models_is_recognized_by_its_message(message: str, too_large: bool) -> None:
    assert limit_too_large(refusal(message)) is too_large


# --- through HTTP

MODELS = (
    *("quotes", "refuses-stream_options", "refuses-max_tokens", "refuses-stream_options+error-text", "small-output"),
    *("refuses-max_tokens+then-503", "refuses-max_tokens+fallback", "too-large"),
)
PRICES = "input_micros_per_million_tokens = 1000000\noutput_micros_per_million_tokens = 2000000\n"


@dataclasses.dataclass
class Lab:
    """The service in front of `upstream`, whose models have a price."""

    service: Service
    upstream: ModelServer

    async def person(self) -> dict[str, str]:
        signed_up = await self.service.sign_up()
        account_id, db = signed_up["user"]["id"], self.service.state["db"]
        await db.write(wallet.book, account_id, 5_000_000, description="", now_seconds=self.service.clocks.now)
        key = await self.service.make_key(bearer(signed_up["access_token"]))
        return bearer(key["key"])

    async def chat(
        self, headers: dict[str, str], model: str, **fields: Any
    ) -> tuple[httpx.Response, list[dict[str, Any]]]:
        """The answer to a streamed chat, and the bodies of the requests that the model server got for it."""
        before = len(self.upstream.requests)
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": True, **fields}
        answer = await self.service.client.post("/v1/chat/completions", json=body, headers=headers)
        return answer, [seen.body for seen in self.upstream.requests[before:]]


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: ModelServer, tmp_path: Path) -> Config:
    fallback = {"refuses-max_tokens+then-503": 'fallback = "lab/refuses-max_tokens+fallback"\n'}
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}{fallback.get(name, "")}' for name in MODELS)
    (tmp_path / "catalog.toml").write_text(f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{models}')
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", byok_private=True, resolve=Names())


@pytest.fixture
def lab(service: Service, upstream: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Lab:
    for tier in limits.CHAT_PER_MINUTE:
        monkeypatch.setitem(limits.CHAT_PER_MINUTE, tier, 1_000_000)
    return Lab(service, upstream)


async def test_refused_field_is_remembered_until_it_expires(lab: Lab) -> None:
    one, other, model = await lab.person(), await lab.person(), "lab/refuses-stream_options"
    for headers, times in ((one, 2), (other, 1), (one, 1)):
        answer, asked = await lab.chat(headers, model)
        assert answer.status_code == 200 and len(asked) == times and "stream_options" not in asked[-1]
    lab.service.clocks.advance(REMEMBERED_SECONDS)
    assert len((await lab.chat(other, model))[1]) == 2


async def test_refusal_is_remembered_only_after_the_reduced_request_succeeds(lab: Lab) -> None:
    headers = await lab.person()
    for _ in range(2):
        answer, asked = await lab.chat(headers, "lab/refuses-stream_options+error-text")
        assert answer.status_code == 400 and ["stream_options" in body for body in asked] == [True, False]


async def test_refusal_of_an_own_provider_affects_no_other_provider(lab: Lab) -> None:
    one, other = await lab.person(), await lab.person()
    for headers in (one, other):
        await add_provider(lab.service, headers, lab.upstream.base_url, name="mine")
        for times in (2, 1):
            assert len((await lab.chat(headers, "mine/refuses-stream_options"))[1]) == times
    assert len((await lab.chat(one, "lab/refuses-stream_options"))[1]) == 2


async def test_fallback_gets_all_fields_and_has_its_own_refusals(lab: Lab) -> None:
    headers = await lab.person()
    answer, asked = await lab.chat(headers, "lab/refuses-max_tokens+then-503")
    assert answer.status_code == 200
    limits_sent = [next(name for name in ("max_tokens", "max_completion_tokens") if name in body) for body in asked]
    assert limits_sent == ["max_tokens", *["max_completion_tokens"] * 2, "max_tokens", "max_completion_tokens"]
    assert len((await lab.chat(headers, "lab/refuses-max_tokens+fallback"))[1]) == 1
    assert "max_tokens" in (await lab.chat(headers, "lab/refuses-max_tokens+then-503"))[1][0]


NULLS = [{}, {"max_tokens": None}, {"max_tokens": None, "max_completion_tokens": None}]


@each("nulls", [*NULLS, {"max_completion_tokens": None, "max_tokens": None}])
async def test_a_priced_model_is_never_asked_without_a_limit(lab: Lab, nulls: dict[str, None]) -> None:
    headers = await lab.person()
    for model in ("lab/refuses-max_tokens", "lab/refuses-max_tokens", "lab/small-output"):
        answer, asked = await lab.chat(headers, model, **nulls)
        assert answer.status_code == 200
        for body in asked:
            assert (body.get("max_tokens") or body.get("max_completion_tokens")) in (4096, 1024)


async def test_a_limit_is_lowered_twice_at_most(lab: Lab) -> None:
    headers = await lab.person()
    answer, asked = await lab.chat(headers, "lab/too-large")
    assert answer.status_code == 400 and [body["max_tokens"] for body in asked] == [4096, 1024, 256]
    answer, asked = await lab.chat(headers, "lab/too-large", max_tokens=50)
    assert answer.status_code == 400 and [body["max_tokens"] for body in asked] == [50], (
        "the caller's own is the caller's to mend"
    )


def tool(**fields: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", **fields}}]}


def hidden(said: str) -> str:
    """A URL that the model server reads."""
    return "SAY:base64," + base64.b64encode(said.removeprefix("SAY:").encode()).decode()


# Where a caller's words can stand in a request.
PLACES: list[Callable[[str], dict[str, Any]]] = [
    *(
        lambda said, name=name: {name: said}
        for name in ("user", "reasoning_effort", "service_tier", "verbosity", "x_unknown")
    ),
    lambda said: {said: 1},
    lambda said: {"metadata": {"a": said}},
    lambda said: {"metadata": {said: "a"}},
    lambda said: {"logit_bias": {said: 1}},
    lambda said: {"stop": ["x", said]},
    lambda said: {"messages": [{"role": "user", "content": said}]},
    lambda said: {"messages": [{"role": "user", "content": "hi", "name": said}]},
    lambda said: {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": said}}]}]},
    lambda said: {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": hidden(said)}}]}]
    },
    lambda said: {"messages": [{"role": "assistant", "content": "x", said: "y"}]},
    lambda said: tool(name=said),
    lambda said: tool(description=said),
    lambda said: tool(parameters={"type": "object", "properties": {said: {}}}),
    lambda said: {"response_format": {"type": "json_schema", "json_schema": {"name": said}}},
    lambda said: {"response_format": {"type": said}},
    lambda said: {"tool_choice": said},
]


BARE = ("stream_options is not supported", "stream_options")


@given(st.sampled_from(PLACES), st.sampled_from([BARE, *SENTENCES]), st.sampled_from(["", "field"]))
@example(lambda said: {"reasoning_effort": said}, BARE, "")
@example(lambda said: {"reasoning_effort": said}, BARE, "field")
@example(
    lambda said: {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": hidden(said)}]}]},
    SENTENCES[1],
    "",
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_errors_that_quote_the_caller_are_not_remembered(
    lab: Lab, place: Callable[[str], dict[str, Any]], sentence: tuple[str, str], param: str
) -> None:
    """The worst server: its error is nothing but the caller's words, and the next try succeeds."""
    lab.upstream.requests.clear()
    attacker, bystander = await lab.person(), await lab.person()
    _, asked = await lab.chat(attacker, "lab/quotes", **place(f"SAY:{sentence[0]}|{sentence[1] if param else ''}"))
    assert asked
    asked += (await lab.chat(bystander, "lab/quotes"))[1]
    for body in asked:
        assert body["stream_options"]["include_usage"] is True, json.dumps(body)
        assert body.get("max_tokens") or body.get("max_completion_tokens"), json.dumps(body)
    assert asked[-1] == {
        "model": "quotes",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 4096,
    }


def test_need_of_no_effort_is_logged_once_and_shown_for_an_hour() -> None:
    logged: list[dict[str, Any]] = []
    support = FieldSupport(lambda event, **fields: logged.append({"event": event, **fields}))
    for now_seconds in (NOW, NOW, NOW + REMEMBERED_SECONDS):
        support.remember(model(), "acc_1", {NO_EFFORT, "stream_options"}, now_seconds)
    support.remember(model(name="other"), "acc_1", {"stream_options"}, NOW)
    support.remember(model(name="own", byok=True), "acc_1", {NO_EFFORT}, NOW)
    assert [(line["event"], line["model"]) for line in logged] == [
        ("tools_without_reasoning", model().id),
        ("tools_without_reasoning", "a/own"),
    ]
    assert support.without_effort(NOW + REMEMBERED_SECONDS) == [model().id]
    assert support.without_effort(NOW + 2 * REMEMBERED_SECONDS) == []


@each(
    "message, param, field",
    [
        ("Encrypted content is not supported with this model.", "include", "reasoning.encrypted_content"),
        (
            "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
            "reasoning.summary",
            "reasoning.summary",
        ),
        (
            "Your organization must be verified to generate reasoning summaries. If you just verified, it can take up to "
            "15 minutes. This value is not supported until then.",
            "reasoning.summary",
            "reasoning.summary",
        ),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", None, "reasoning_effort"),
        ("Unsupported parameter: 'text.verbosity' is not supported with this model.", None, "verbosity"),
        (
            "Item with id 'rs_2' not found. Items are not persisted when `store` is set to false.",
            "input",
            "reasoning_content",
        ),
    ],
)
def test_fields_of_responses_have_their_names_in_chat(message: str, param: str | None, field: str) -> None:
    added = ("reasoning.encrypted_content", "reasoning.summary", "reasoning_effort", "verbosity", "reasoning_content")
    status = 404 if param == "input" else 400
    assert refused_fields(refusal(message, status, param=param), added) == {field}
    assert refused_fields(refusal(message, status, param=param), ["max_tokens"]) == frozenset()
