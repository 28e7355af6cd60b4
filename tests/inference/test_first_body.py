"""A model server that bills a token for each byte is paid in full, whatever the request is and wherever its text is."""

import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.billing import wallet
from svc.config import Config
from svc.inference.chat_shape import DOCUMENTED_FIELDS
from svc.inference.passed_fields import PASSED
from svc.server import limits
from tests.conftest import JSON, Service, bearer
from tests.support.format_server import FormatServer
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
RUN = "/v1/agents/run"
FALLBACK = "bills-bytes+a-longer-name" + "-" * 100
# What a model refuses and is asked for again, and what it costs then: nothing of it exceeds the hold.
REFUSES = "bills-bytes+refuses-max_tokens"
MODELS = {"bills-bytes": "", REFUSES: "", "bills-bytes+status-503": FALLBACK, FALLBACK: "", "bills-bytes+script": ""}
# Servers of the other formats, also as a fallback.
OTHER_FORMATS = {
    "bills-bytes+responses": ("responses", ""),
    "bills-bytes+messages": ("messages", ""),
    "bills-bytes+status-503+to-messages": ("chat", "bills-bytes+messages"),
    "bills-bytes+status-503+to-responses": ("messages", "bills-bytes+responses"),
    "bills-bytes+status-503+to-chat": ("responses", FALLBACK),
}
MICROS = 10**12


def catalog(base_url: str) -> str:
    prices = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 1_000_000\n"
    models = "".join(
        f'[[providers.models]]\nid = "{name}"\napi = "{api}"\n{prices}'
        + (f'fallback = "lab/{fallback}"\n' if fallback else "")
        for name, (api, fallback) in ({name: ("chat", to) for name, to in MODELS.items()} | OTHER_FORMATS).items()
    )
    return f'[[providers]]\nname = "lab"\nbase_url = "{base_url}"\n{models}'


@dataclass
class Lab:
    """The service in front of `upstream`, and an account with funds."""

    service: Service
    upstream: ModelServer
    account_id: str
    headers: dict[str, str]

    async def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        headers = {**self.headers, **JSON}
        return await self.service.client.post(path, content=orjson.dumps(body), headers=headers)

    async def asked(self, path: str, body: dict[str, Any]) -> None:
        """Send a request, and compare what it costs with the bytes that the model server received for it."""
        self.service.clocks.advance(1)  # hypothesis repeats the random numbers, and an id is made of one and the time
        self.upstream.requests.clear()
        before = await self.balance()
        answer = await self.post(path, body)
        refused = answer.status_code == 400 and body["model"] == f"lab/{REFUSES}"  # the caller's own limit
        if answer.status_code in (400, 503) and body["model"].removeprefix("lab/") in OTHER_FORMATS:
            refused = True  # it cannot travel in the format, perhaps that of the fallback
            assert all("status-503" in one.model for one in self.upstream.requests)
        assert answer.status_code == 200 or refused, answer.text
        answered = [one for one in self.upstream.requests if "status-503" not in one.model]
        answered = [one for one in answered if one.model != REFUSES or "max_tokens" not in one.body]
        billed = sum(int(one.headers["content-length"]) + 1 for one in answered)
        assert before - await self.balance() == billed and (billed > 0) is not refused

    async def balance(self) -> int:
        account = (await self.service.client.get("/billing/account", headers=self.headers)).json()
        assert account["held_micros"] == 0
        micros: int = account["wallet_balance_micros"]
        return micros

    async def overruns(self) -> str:
        text = (await self.service.client.get("/metrics")).text
        return next(line for line in text.splitlines() if line.startswith("svc_overruns_total"))


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: ModelServer, tmp_path: Path) -> Config:
    (tmp_path / "catalog.toml").write_text(catalog(upstream.base_url))
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml")


@pytest.fixture
async def lab(service: Service, upstream: ModelServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    watch(service.config.data_dir / "service.db")
    for tier in limits.CHAT_PER_MINUTE:
        monkeypatch.setitem(limits.CHAT_PER_MINUTE, tier, 1_000_000)
    signed_up = await service.sign_up()
    account_id = signed_up["user"]["id"]
    key = await service.make_key(bearer(signed_up["access_token"]))
    now_seconds = service.clocks.now
    await service.state["db"].write(wallet.book, account_id, MICROS, description="", now_seconds=now_seconds)
    lab = Lab(service, upstream, account_id, bearer(key["key"]))
    yield lab
    assert await lab.overruns() == "svc_overruns_total 0"
    assert_exact(service.config.data_dir / "service.db")


# --- random requests

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['\n\t\\"/\u2028\u0000', "data:image/png;base64,AAAA", "é🙂" * 50, "x" * 3_000]
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | st.sampled_from(
    ["type", "url", "image_url", "data", "file_data", "text", "content", "x" * 500]
)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, ANYTHING, max_size=4)
PARTS = st.builds(lambda text: {"type": "text", "text": text}, TEXTS) | st.builds(
    lambda kind, fields: {**fields, "type": kind}, st.sampled_from(["x", "image", "video", "file"]), OBJECTS
)
CALLS = st.builds(
    lambda id, name, arguments: {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}},
    *(TEXTS, NAMES, TEXTS),
)
MESSAGES = st.builds(
    lambda content, fields: {**fields, "role": "user", "content": content}, TEXTS | st.lists(PARTS, max_size=3), OBJECTS
) | st.builds(
    lambda fields, calls: {**fields, "role": "assistant", "content": None, "tool_calls": calls},
    OBJECTS,
    st.lists(CALLS, max_size=2),
)
FUNCTIONS = st.builds(
    lambda name, parameters, fields: {**fields, "name": name, "parameters": parameters},
    st.text("abc", min_size=1, max_size=5),
    OBJECTS,
    OBJECTS.map(lambda fields: {name: value for name, value in fields.items() if name not in ("type",)}),
)
CHAT_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "max_tokens": st.integers(1, 10**5),
    "max_completion_tokens": st.integers(1, 10**5),
    "n": st.integers(1, 3),
    "stream": st.booleans(),
    "tools": st.lists(FUNCTIONS.map(lambda function: {"type": "function", "function": function}), max_size=2),
    "functions": st.lists(FUNCTIONS, max_size=2),
    **dict.fromkeys(("user", "reasoning_effort", "verbosity", "prompt_cache_key"), TEXTS),
    **dict.fromkeys(("response_format", "metadata", "logit_bias", "prediction"), OBJECTS),
    **dict.fromkeys(("service_tier", "safety_identifier"), TEXTS),
}
# The fields that pass and are not checked, and one that does not pass.
OTHERS = [*sorted(PASSED - DOCUMENTED_FIELDS), "unknown"]
MODEL = st.sampled_from([f"lab/{name}" for name in (*MODELS, *OTHER_FORMATS) if "script" not in name])
CHATS = st.builds(
    lambda body, others: {**others, **body},
    st.fixed_dictionaries(
        {"model": MODEL, "messages": st.lists(MESSAGES, min_size=1, max_size=3)}, optional=CHAT_FIELDS
    ),
    st.dictionaries(st.sampled_from(OTHERS), ANYTHING, max_size=4),
)
RESPONSES = st.fixed_dictionaries(
    {"model": MODEL, "input": TEXTS},
    optional={
        "instructions": TEXTS,
        "stream": st.booleans(),
        "max_output_tokens": st.integers(1, 10**5),
        "tools": st.lists(
            FUNCTIONS.map(lambda function: {**function, "type": "function"}), max_size=2, unique_by=lambda t: t["name"]
        ),
        "text": st.builds(
            lambda schema: {"format": {"type": "json_schema", "name": "n", "schema": schema}, "verbosity": "low"},
            OBJECTS,
        ),
        "reasoning": TEXTS.map(lambda effort: {"effort": effort}),
        "user": TEXTS,
    },
)
ANTHROPIC = st.fixed_dictionaries(
    {
        "model": MODEL,
        "max_tokens": st.integers(1, 10**5),
        "messages": TEXTS.map(lambda t: [{"role": "user", "content": t}]),
    },
    optional={
        "system": TEXTS,
        "stream": st.booleans(),
        "stop_sequences": st.lists(TEXTS, max_size=3),
        "tools": st.lists(
            st.builds(lambda name, schema: {"name": name, "input_schema": schema}, st.text("abc", min_size=1), OBJECTS),
            max_size=2,
            unique_by=lambda tool: tool["name"],
        ),
        "output_config": OBJECTS.map(lambda schema: {"format": {"type": "json_schema", "schema": schema}}),
    },
)
REQUESTS = (
    CHATS.map(lambda body: (PATHS["chat"], body))
    | RESPONSES.map(lambda body: (PATHS["responses"], body))
    | ANTHROPIC.map(lambda body: (PATHS["messages"], body))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(request=REQUESTS)
async def test_no_request_costs_more_than_its_hold(lab: Lab, request: tuple[str, dict[str, Any]]) -> None:
    await lab.asked(*request)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    goal=TEXTS.filter(str.strip),
    model=st.sampled_from(["lab/bills-bytes+script", f"lab/{REFUSES}"]),
)
async def test_no_agent_run_costs_more_than_its_holds(lab: Lab, goal: str, model: str) -> None:
    await lab.asked(RUN, {"model": model, "goal": f"tool calculate {{}}\n---\n{goal}", "max_steps": 3})


async def test_hold_covers_what_only_the_fallback_accepts(lab: Lab) -> None:
    engines = lab.service.state["engines"]
    model = engines.catalog.configured("lab/bills-bytes+status-503")
    engines.field_support.remember(model, lab.account_id, ["reasoning_content"], lab.service.clocks.now)
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x" * 100_000, "signature": ""}]},
        {"role": "user", "content": "go on"},
    ]
    await lab.asked(PATHS["messages"], {"model": model.id, "max_tokens": 10, "messages": turns})
    (first, *_), last = lab.upstream.requests, lab.upstream.requests[-1]
    assert len(orjson.dumps(first.body)) < 1_000 < 100_000 < len(orjson.dumps(last.body))


async def test_hold_covers_the_longer_form_of_the_fallbacks_format(lab: Lab) -> None:
    turns = [{"role": role, "content": "Hi"} for role in ("user", "assistant") * 100]
    body = {"model": "lab/bills-bytes+status-503+to-messages", "messages": turns, "max_tokens": 10}
    await lab.asked(PATHS["chat"], body)
    (first, *_), last = lab.upstream.requests, lab.upstream.requests[-1]
    assert (first.path, last.path) == (PATHS["chat"], PATHS["messages"])
    assert len(last.raw) > len(first.raw) + 16 * len(turns), "the frames of the chat request are not enough"


async def test_run_with_a_long_goal_costs_no_more_than_its_hold(lab: Lab) -> None:
    """Its body is serialized in a thread."""
    await lab.asked(RUN, {"model": "lab/bills-bytes", "goal": "long \n" * 20_000, "max_steps": 1})
    assert int(lab.upstream.requests[-1].headers["content-length"]) > 140_000
