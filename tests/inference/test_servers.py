"""Several servers for one provider: which one is asked, and what happens when one is down. Real sockets."""

import asyncio
import contextlib
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc import cli
from svc.billing import wallet
from svc.config import Config
from svc.errors import StartError
from svc.inference.catalog import Provider
from svc.inference.catalog_file import read_file
from svc.inference.servers import key_of
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.format_events import APIS
from tests.support.format_server import FormatServer
from tests.support.money import assert_exact, rows

COMPLETIONS = "/v1/chat/completions"


@dataclass
class Lab:
    """The service in front of a provider with three servers. Each has the models `ok`, `paid` and others."""

    service: Service
    servers: list[FormatServer]
    headers: dict[str, str]
    account_id: str
    seen: list[int] = field(default_factory=list)

    async def ask(self, text: str = "Hi", model: str = "ok", **more: Any) -> httpx.Response:
        body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": text}], **more}
        return await self.service.client.post(COMPLETIONS, json=body, headers=self.headers)

    def asked(self) -> list[int]:
        """Return how many requests each server got since the last time."""
        counts = [len(server.requests) for server in self.servers]
        before, self.seen = self.seen or [0] * len(counts), counts
        return [count - old for count, old in zip(counts, before, strict=True)]

    async def first_server(self, text: str = "Hi") -> int:
        """Return which server is asked for this conversation."""
        self.asked()
        assert (await self.ask(text)).status_code == 200
        return self.asked().index(1)


def catalog(servers: list[FormatServer]) -> str:
    urls = ", ".join(f"'{server.base_url}'" for server in servers)
    return f"""
[[providers]]
name = "lab"
base_urls = [{urls}]
timeout_seconds = 0.3
[[providers.models]]
id = "ok"
[[providers.models]]
id = "cut-after-2-chunks"
[[providers.models]]
id = "saved"
fallback = "builtin/echo"
[[providers.models]]
id = "chat+ok"
[[providers.models]]
id = "responses+ok"
api = "responses"
[[providers.models]]
id = "messages+ok"
api = "messages"
[[providers.models]]
id = "paid"
input_micros_per_million_tokens = 1_000_000
output_micros_per_million_tokens = 2_000_000
[[providers.models]]
id = "pictures"
kind = "image"
"""


@pytest.fixture
async def lab(config: Config, clocks: Clocks) -> AsyncIterator[Lab]:
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(FormatServer()) for _ in range(3)]
        service = await stack.enter_async_context(serving(config, clocks, catalog(servers)))
        session = await service.sign_up()
        yield Lab(service, servers, bearer(session["access_token"]), session["user"]["id"])


async def test_a_conversation_stays_with_one_server(lab: Lab) -> None:
    first = await lab.first_server("Tell me about Bern.")
    turns = [{"role": "assistant", "content": "A city."}, {"role": "user", "content": "More."}]
    system = {"role": "system", "content": "Be brief."}
    user = {"role": "user", "content": "Tell me about Bern."}
    for number in range(3):
        messages = [user, *turns * number]
        assert (await lab.ask(messages=messages)).status_code == 200
    assert lab.asked()[first] == 3
    marked = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    for messages in ([system, user], [system, user, *turns], [{**system, "content": marked}, user, *turns]):
        assert (await lab.ask(messages=messages)).status_code == 200
    assert sorted(lab.asked()) == [0, 0, 3]


@each("server, caller", [(server, caller) for server in APIS for caller in APIS])
async def test_a_conversation_of_every_format_stays_with_one_server(server: str, caller: str, lab: Lab) -> None:
    """Claude Code's billing header, the reasoning of the model and marks of what to cache change nothing."""
    user = {"role": "user", "content": f"Tell me of {server} and {caller}."}
    said: dict[str, list[dict[str, Any]]] = {
        "chat": [{"role": "assistant", "content": "Well."}],
        "responses": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"role": "assistant", "content": "Well."},
        ],
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "Well."}]}],
    }
    for instructions in ("", "Be brief."):
        for turns in range(3):
            lab.service.clocks.advance(10)
            messages = [user, *[*said[caller], {"role": "user", "content": f"And {turns}?"}] * turns]
            body: dict[str, Any] = {"input" if caller == "responses" else "messages": messages}
            if caller == "chat" and instructions:
                body["messages"] = [{"role": "system", "content": instructions}, *messages]
            elif caller == "responses":
                body |= {"instructions": instructions} if instructions else {}
            elif caller == "messages":
                header = {"type": "text", "text": f"x-anthropic-billing-header: {turns}"}
                mark = {"cache_control": {"type": "ephemeral"}} if turns else {}
                body |= {"max_tokens": 50, "system": [header, {"type": "text", "text": instructions, **mark}]}
            path = {"chat": COMPLETIONS, "responses": "/v1/responses", "messages": "/v1/messages"}[caller]
            answer = await lab.service.client.post(
                path, json={"model": f"lab/{server}+ok", **body}, headers=lab.headers
            )
            assert answer.status_code == 200, answer.text
        assert sorted(lab.asked()) == [0, 0, 3], instructions


async def test_conversations_and_accounts_are_spread_over_the_servers(lab: Lab) -> None:
    for number in range(40):
        lab.service.clocks.advance(5)  # for the rate limit
        assert (await lab.ask(f"Question {number}")).status_code == 200
    assert min(lab.asked()) >= 1
    lab.headers = await lab.service.bearer()
    firsts = Counter([await lab.first_server("The same question")])
    for _ in range(12):
        lab.headers = await lab.service.bearer()
        firsts[await lab.first_server("The same question")] += 1
    assert len(firsts) > 1


@each(
    "commands, status",
    [
        ("status-502", 200),
        ("status-503", 200),
        ("status-504", 200),
        ("silent", 200),
        ("cut-head", 200),
        ("status-500", 502),
        ("status-400", 400),
    ],
)
async def test_a_server_that_is_down_hands_the_call_to_the_next(commands: str, status: int, lab: Lab) -> None:
    lab.service.clocks.advance(16)
    first = await lab.first_server()
    lab.servers[first].always = frozenset([commands])
    try:
        answer = await lab.ask()
    finally:
        lab.servers[first].always = frozenset()
    assert answer.status_code == status, answer.text
    asked = lab.asked()
    # On a connection that was used before, a request without an answer is sent again.
    assert asked[first] == (2 if commands == "cut-head" else 1)
    assert sum(asked) - asked[first] == (1 if status == 200 else 0)


async def test_a_server_that_is_down_is_skipped_for_15_seconds(lab: Lab) -> None:
    first = await lab.first_server()
    await lab.servers[first].stop()
    assert (await lab.ask()).status_code == 200
    second = next(number for number, count in enumerate(lab.asked()) if count)
    await lab.servers[first].start()
    lab.service.clocks.advance(14.9)
    assert (await lab.ask()).status_code == 200
    assert lab.asked()[second] == 1
    lab.service.clocks.advance(0.2)
    assert (await lab.ask()).status_code == 200
    assert lab.asked()[first] == 1


async def test_a_clock_that_goes_back_ends_the_pause(lab: Lab) -> None:
    lab.service.clocks.advance(60)
    first = await lab.first_server()
    await lab.servers[first].stop()
    assert (await lab.ask()).status_code == 200
    await lab.servers[first].start()
    lab.service.clocks.now -= 30
    assert await lab.first_server() == first


async def test_skipped_servers_are_asked_when_no_other_answers(lab: Lab) -> None:
    for server in lab.servers:
        server.always = frozenset(["status-503"])
    answer = await lab.ask()
    assert answer.status_code == 503 and answer.json()["error"]["message"].endswith("the test asked for it")
    assert lab.asked() == [1, 1, 1]
    lab.servers[2].always = frozenset()
    for _ in range(2):
        assert (await lab.ask()).status_code == 200
    assert lab.asked()[2] == 2


async def test_when_all_are_down_the_error_is_that_of_the_last(lab: Lab) -> None:
    first = await lab.first_server()
    for number, server in enumerate(lab.servers):
        if number != first:
            await server.stop()
    lab.servers[first].always = frozenset(["status-504"])
    answer = await lab.ask()
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert answer.json()["error"]["message"] == "The model server of 'lab' cannot be reached. Try again later."


async def test_when_all_are_down_the_fallback_answers(lab: Lab) -> None:
    for server in lab.servers:
        server.always = frozenset(["status-503"])
    answer = await lab.ask("Say it back", model="saved")
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Say it back"
    assert lab.asked() == [1, 1, 1]


async def test_after_the_first_byte_no_other_server_is_asked(lab: Lab) -> None:
    answer = await lab.ask(model="cut-after-2-chunks", stream=True)
    assert answer.status_code == 200 and "error" in answer.text and "[DONE]" in answer.text
    assert sum(lab.asked()) == 1


async def test_a_call_that_moves_to_another_server_is_paid_once(lab: Lab) -> None:
    await lab.service.state["db"].write(wallet.book, lab.account_id, 1_000_000, description="", now_seconds=1.0)
    first = await lab.first_server()
    lab.servers[first].always = frozenset(["status-502"])
    for stream in (False, True):
        assert (await lab.ask(model="paid", stream=stream)).status_code == 200
        lab.service.clocks.advance(16)
    database = lab.service.config.data_dir / "service.db"
    assert rows(database, "SELECT amount_micros FROM ledger WHERE amount_micros < 0") == [(-(7 + 2 * 5),)] * 2
    assert_exact(database)


async def test_pictures_are_made_by_another_server_too(lab: Lab) -> None:
    for server in lab.servers[:2]:
        await server.stop()
    body = {"model": "lab/pictures", "prompt": "a dot", "size": "64x64"}
    answer = await lab.service.client.post("/v1/images/generations", json=body, headers=lab.headers)
    assert answer.status_code == 200, answer.text
    assert lab.asked()[2] == 1


async def test_a_provider_lists_the_models_of_the_first_server_that_answers(config: Config, clocks: Clocks) -> None:
    async with FormatServer() as down, FormatServer(models=("one", "two")) as up:
        await down.stop()
        text = f"[[providers]]\nname = 'lab'\nbase_urls = ['{down.base_url}', '{up.base_url}']"
        async with serving(config, clocks, text) as service:
            headers = await service.bearer()
            listed = (await service.client.get("/v1/models", headers=headers)).json()["data"]
            assert {"lab/one", "lab/two"} <= {model["id"] for model in listed}


async def test_one_address_has_a_second_attempt(config: Config, clocks: Clocks) -> None:
    async with FormatServer() as server:
        for key in (f"base_url = '{server.base_url}'", f"base_urls = ['{server.base_url}']"):
            server.requests.clear()
            text = f"[[providers]]\nname = 'lab'\n{key}\nmodels = [{{id = 'fail-once'}}]"
            async with serving(config, clocks, text) as service:
                body = {"model": "lab/fail-once", "messages": [{"role": "user", "content": "Hi"}]}
                session = await service.sign_up(f"{len(key)}@example.com")
                answer = await service.client.post(COMPLETIONS, json=body, headers=bearer(session["access_token"]))
                assert answer.status_code == 200 and len(server.requests) == 2


async def test_each_server_is_shown_to_the_operator(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await lab.first_server()
    await lab.servers[first].stop()
    await lab.ask()
    url = lab.servers[first].base_url
    status = (await lab.service.client.get("/admin/status", headers=lab.headers)).json()
    shown = {one["server"]: one for one in status["servers"]}
    assert shown[url] == {"provider": "lab", "server": url, "calls": 2, "failures": 1, "skipped": True}
    assert sum(one["calls"] for one in shown.values()) == 3 and sum(one["skipped"] for one in shown.values()) == 1
    monkeypatch.setenv("SVC_DATA_DIR", str(lab.service.config.data_dir))
    assert await asyncio.to_thread(cli.main, ["status"]) == 0
    printed = capsys.readouterr().out
    assert f"lab at {url}: 2 calls, 1 failures, skipped\n" in printed
    assert printed.count("model server") == 3


async def test_metrics_count_the_calls_of_each_server(config: Config, clocks: Clocks) -> None:
    async with FormatServer() as one, FormatServer() as other:
        open_metrics = dataclasses.replace(config, metrics_token="m" * 32)
        async with serving(open_metrics, clocks, catalog([one, other])) as service:
            await one.stop()
            headers = await service.bearer()
            for number in range(18):  # one at least asks the server that is down
                body = {"model": "lab/ok", "messages": [{"role": "user", "content": f"Hi {number}"}]}
                assert (await service.client.post(COMPLETIONS, json=body, headers=headers)).status_code == 200
            text = (await service.client.get("/metrics", headers=bearer("m" * 32))).text
            labels = f'{{provider="lab",server="{one.base_url}"}}'
            assert f"svc_server_calls_total{labels} 1\n" in text and f"svc_server_failures_total{labels} 1\n" in text
            assert f"svc_server_skipped{labels} 1\n" in text
            clocks.advance(16)
            text = (await service.client.get("/metrics", headers=bearer("m" * 32))).text
            assert f"svc_server_skipped{labels} 0\n" in text


@each(
    "urls, told",
    [
        ("base_url = 'http://a/v1'\nbase_urls = ['http://b/v1']", "lab: give base_url or base_urls, not both"),
        ("base_urls = []", "lab.base_urls must be a list of 1 to 64"),
        ("base_urls = ['http://a/v1', 'http://a/v1/']", "lab.base_urls has an address twice"),
        ("base_urls = ['ftp://a']", r"lab.base_urls\[0\] must be an address"),
        ("base_urls = 'http://a/v1'", "lab.base_urls must be a list"),
        ("", "lab.base_url is required"),
    ],
)
def test_a_wrong_list_of_addresses_stops_the_start(urls: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(f"[[providers]]\nname = 'lab'\n{urls}\n")
    with pytest.raises(StartError, match=told):
        read_file(path, {})


def test_the_order_of_servers_hardly_changes_when_one_is_added() -> None:
    urls = tuple(f"http://gpu{number}:8000/v1" for number in range(8))
    before, after = (Provider("lab", urls[0], base_urls=some).servers for some in (urls[:7], urls))
    assert before is not None and after is not None
    keys = [key_of("acct", [{"role": "user", "content": str(number)}]) for number in range(800)]
    moved = [
        after.ranked(key, 0.0)[0].base_url for key in keys if before.ranked(key, 0.0)[0] != after.ranked(key, 0)[0]
    ]
    assert set(moved) == {urls[7]} and 60 <= len(moved) <= 140


@each(
    "messages, same",
    [
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], True),
        ([{"role": "user", "content": "ab"}, {"role": "assistant", "content": "x"}], True),
        ([{"role": "user", "content": "ab"}, {"role": "user", "content": "x"}], False),
        ([{"role": "user", "content": "ab\ud800"}], False),
        ([{"role": "user", "content": None}], False),
        ([{"role": "user", "content": [1, {"text": 2}, {"text": "ab"}]}], True),
        ([{"role": "user", "content": {"text": "ab"}}], False),
        ([], False),
    ],
)
def test_the_key_of_a_conversation(messages: list[dict[str, Any]], same: bool) -> None:
    assert (key_of("acct", messages) == key_of("acct", [{"role": "user", "content": "ab"}])) is same
    assert key_of("acct", messages) != key_of("other", messages)
