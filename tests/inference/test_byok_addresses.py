"""Which addresses a user's own provider may have: judged where it is connected to, when made, tested and used."""

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.config import Config
from svc.outbound import resolver
from svc.outbound.addresses import checked_url, public_address
from svc.outbound.client import Outbound
from svc.outbound.errors import AddressNotAllowed
from svc.outbound.resolver import Resolver
from tests.conftest import Service
from tests.outbound.test_resolver import SLOW_LOOKUP
from tests.support.byok import KEY, PUBLIC, Names, add_provider, http_answer, raw_server
from tests.support.cases import each
from tests.support.isolated import isolated
from tests.support.model_server import ModelServer

PROVIDERS = "/user/providers"
HELLO = [{"role": "user", "content": "hi"}]
OPEN = {"byok_private": True}
# What may be reached under no setting, and what SVC_BYOK_PRIVATE=1 opens.
NEVER = [
    *("169.254.169.254", "169.254.0.1", "fe80::1", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    *(
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "ff02::1",
        "100.64.0.1",
        "192.0.0.192",
        "198.18.0.1",
    ),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1"),
]
PRIVATE = ["127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "::1", "fc00::1", "fdff::1"]
# Other spellings of 127.0.0.1.
SPELLINGS = [
    *(
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "0177.0.0.01",
        "127.0.0.1.",
    ),
    *("0x7f.0x0.0x0.0x1", "LOCALHOST", "localhost.", "bücher.internal", "xn--bcher-kva.internal", "[0:0:0:0:0:0:0:1]"),
]


@pytest.fixture
def names() -> Names:
    names = Names()
    for name in ("localhost", "localhost.", "xn--bcher-kva.internal"):
        names.resolve(name, ["127.0.0.1"])
    return names


@pytest.fixture
def config(config: Config, names: Names, request: pytest.FixtureRequest) -> Config:
    """Without private addresses, or with the settings that a test names."""
    return replace(config, **{"resolve": names, **getattr(request, "param", {"byok_private": False})})


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


_numbers = itertools.count()


def settings(*values: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("config", values, indirect=True, ids=str)


def url_of(address: str, rest: str = "/v1") -> str:
    return f"http://[{address}]{rest}" if ":" in address else f"http://{address}{rest}"


def refused(answer: httpx.Response) -> bool:
    return (answer.status_code, answer.json()["error"]["code"]) == (403, "address_not_allowed")


async def create(service: Service, headers: dict[str, str], base_url: str) -> httpx.Response:
    service.clocks.advance(10)  # 30 in a minute
    body = {"name": f"p{next(_numbers)}", "base_url": base_url, "api_key": KEY}
    return await service.client.post(PROVIDERS, json=body, headers=headers)


async def uses(service: Service, headers: dict[str, str], provider: dict[str, Any]) -> list[httpx.Response]:
    """The answers of everything that asks a provider; the list of models is asked too, and must not show it."""
    service.clocks.advance(60)
    model = f"{provider['name']}/ok"
    bodies: dict[str, dict[str, Any]] = {
        "/v1/chat/completions": {"model": model, "messages": HELLO},
        "/v1/chat/completions?": {"model": model, "messages": HELLO, "stream": True},
        "/v1/images/generations": {"model": model, "prompt": "a cat"},
        "/v1/audio/generate": {"model": model, "input": "hi"},
        "/v1/audio/speech": {"model": model, "input": "hi"},
        f"{PROVIDERS}/{provider['id']}/test": {},
    }
    listed = await service.client.get("/v1/models", headers=headers)
    assert [model["id"] for model in listed.json()["data"] if model["byok"]] == []
    answers = []
    for path, body in bodies.items():
        service.clocks.advance(3)  # a failed list is asked for again
        answers.append(await service.client.post(path, json=body, headers=headers))
    return answers


# --- when it is made


async def test_private_and_special_addresses_are_refused_in_any_spelling(
    service: Service, headers: dict[str, str]
) -> None:
    own = await add_provider(service, headers, "https://public.example/v1")
    path = f"{PROVIDERS}/{own['id']}"
    for host in [*NEVER, *PRIVATE, *SPELLINGS]:
        base_url = host if host.startswith("http") else f"http://{host}/v1" if host.startswith("[") else url_of(host)
        answer = await create(service, headers, base_url)
        assert refused(answer) and answer.json()["error"]["param"] == "base_url", base_url
        change = {"base_url": base_url.replace("http:", "https:")}
        assert refused(await service.client.patch(path, json=change, headers=headers)), base_url
        unknown = await service.client.patch(f"{PROVIDERS}/prov_unknown", json=change, headers=headers)
        assert unknown.status_code == 404, "nothing is looked up for what is not there"
    for rest in (":80/v1", ":443", ":22/", ":1", ":65535"):
        assert refused(await create(service, headers, f"https://127.0.0.1{rest}"))
    assert (await service.client.get(path, headers=headers)).json() == own, "and nothing has changed, not even the key"


async def test_one_private_address_among_many_refuses_the_name(
    service: Service, headers: dict[str, str], names: Names
) -> None:
    for found in (
        [PUBLIC, "10.0.0.1"],
        ["127.0.0.1", PUBLIC],
        [PUBLIC, "2606:4700::1111", "::1"],
        ["::ffff:10.0.0.1", PUBLIC],
    ):
        names.resolve("mixed.example", found)
        assert refused(await create(service, headers, "https://mixed.example/v1"))
    names.resolve("mixed.example", [PUBLIC, "2606:4700::1111"])
    assert (await create(service, headers, "https://mixed.example/v1")).status_code == 201


async def test_public_addresses_and_unresolved_names_are_accepted(
    service: Service, headers: dict[str, str], names: Names
) -> None:
    names.resolve("empty.example", [])
    for base_url in (
        f"http://{PUBLIC}:8080",
        "https://[2606:4700::1111]/v1",
        "https://unknown.example",
        "https://empty.example",
    ):
        assert (await create(service, headers, base_url)).status_code == 201


@settings(
    {},
    {"base_url": "https://svc.example"},
    {"host": "0.0.0.0"},
    {"byok_private": False},
    OPEN,
    {**OPEN, "host": "0.0.0.0"},
)
async def test_private_addresses_need_local_posture_or_the_setting(
    service: Service, headers: dict[str, str], request: pytest.FixtureRequest
) -> None:
    allowed = request.node.callspec.params["config"] in ({}, OPEN, {**OPEN, "host": "0.0.0.0"})
    for address in PRIVATE:
        answer = await create(service, headers, url_of(address))
        assert answer.status_code == 201 if allowed else refused(answer), address
    for address in NEVER:
        assert refused(await create(service, headers, url_of(address))), address


# --- when it is used


async def test_rebound_name_is_refused_at_each_use(service: Service, headers: dict[str, str], names: Names) -> None:
    async with raw_server(http_answer("200 OK", b"{}")) as canary:
        for found in (["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]):
            names.resolve("later.example", [PUBLIC])
            provider = await add_provider(service, headers, f"http://later.example:{canary.port}")
            names.resolve("later.example", found)
            assert all(map(refused, await uses(service, headers, provider)))
        assert canary.connections == 0


async def test_checked_address_is_the_one_connected_to(service: Service, headers: dict[str, str], names: Names) -> None:
    async with raw_server(http_answer("200 OK", b"{}")) as canary:
        names.resolve("rebinding.example", [PUBLIC])
        provider = await add_provider(service, headers, f"http://rebinding.example:{canary.port}")
        names.asked.clear()
        # A second lookup between the check and the connection would return loopback.
        names.resolve("rebinding.example", *[["10.0.0.1"], ["127.0.0.1"]] * 7)
        assert all(map(refused, await uses(service, headers, provider)))
        assert names.asked == ["rebinding.example"] * 7, "once for each use, and for the list"
        assert canary.connections == 0


async def test_agent_gets_the_same_refusal(service: Service, headers: dict[str, str], names: Names) -> None:
    async with raw_server(http_answer("200 OK", b"{}")) as canary:
        names.resolve("later.example", [PUBLIC], ["127.0.0.1"])
        provider = await add_provider(service, headers, f"http://later.example:{canary.port}")
        body = {"goal": "say hello", "model": f"{provider['name']}/ok"}
        answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
        last = orjson.loads(answer.text.split("\n\n")[-2].removeprefix("data: "))
        assert last["type"] == "error" and last["error"]["code"] == "address_not_allowed"
        assert canary.connections == 0


@settings({"byok_private": False, "agent_fetch": True})
async def test_the_fetching_tool_has_the_same_rule(service: Service, headers: dict[str, str], names: Names) -> None:
    async with raw_server(http_answer("200 OK", b"an inner page")) as canary:
        names.resolve("inside.example", ["127.0.0.1"])
        lines = [
            f'tool fetch_url {{"url": "http://{host}:{canary.port}/"}}'
            for host in ("inside.example", "127.1", "[::1]", "0x7f.1")
        ]
        body = {"goal": "\n".join([*lines, "---", "say done"]), "model": "builtin/script"}
        answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
        results = [orjson.loads(block[6:]) for block in answer.text.split("\n\n") if '"tool_result"' in block]
        assert [result["ok"] for result in results] == [False] * 4 and len(
            {result["result"] for result in results}
        ) == 1
        assert canary.connections == 0


@settings(OPEN)
async def test_kept_connection_is_the_checked_one(service: Service, headers: dict[str, str], names: Names) -> None:
    async with ModelServer() as upstream:
        names.resolve("inside.example", ["127.0.0.1"])
        provider = await add_provider(service, headers, f"http://inside.example:{upstream.port}/v1", models=["ok"])
        for _ in range(3):
            body = {"model": f"{provider['name']}/ok", "messages": HELLO}
            answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
        assert upstream.connections_made == 1 and names.asked == ["inside.example"] * 2, (
            "when it was made and when connected"
        )
        assert {seen.headers["host"] for seen in upstream.requests} == {f"inside.example:{upstream.port}"}


@settings({**OPEN, "list_seconds": 0.1})
async def test_redirects_are_never_followed(service: Service, headers: dict[str, str]) -> None:
    async with raw_server(http_answer("200 OK", b'{"data": [{"id": "inner"}]}')) as canary:
        for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"):
            async with raw_server(http_answer(status, b"", f"location: {canary.base_url}/models".encode())) as raw:
                provider = await add_provider(service, headers, raw.base_url)
                assert {answer.status_code for answer in await uses(service, headers, provider)} == {502}
                assert raw.connections == 7
        assert canary.connections == 0


@settings(OPEN)
async def test_proxy_variables_and_netrc_are_ignored(
    service: Service, headers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer() as upstream, raw_server(http_answer("200 OK", b"{}")) as canary:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, canary.base_url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login operator password of-the-operator\n")
        (tmp_path / ".netrc").chmod(0o600)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        provider = await add_provider(service, headers, upstream.base_url, api_key=None)
        body = {"model": f"{provider['name']}/ok", "messages": HELLO}
        assert (await service.client.post("/v1/chat/completions", json=body, headers=headers)).status_code == 200
        assert (await service.client.post(f"{PROVIDERS}/{provider['id']}/test", headers=headers)).status_code == 200
        assert len(upstream.requests) == 5 and canary.connections == 0
        assert all(
            "authorization" not in seen.headers and "proxy-authorization" not in seen.headers
            for seen in upstream.requests
        )


@pytest.mark.slow
def test_a_private_address_gets_no_packet_and_a_silent_dns_server_delays_one_account(tmp_path: Path) -> None:
    """In a separate network every address is this machine."""
    isolated(tmp_path, "tests/support/byok_canaries.py", "tests/support/silent_dns.py", passed=3)


# --- spellings and names


@each("host", [*SPELLINGS[:9], "0x7f.0x0.0x0.0x1"])
def test_every_spelling_of_an_ipv4_address_is_one_origin(host: str) -> None:
    url = checked_url(f"http://{host}:8080/v1?u=http://0x7f.1/")
    assert tuple(url.origin) == ("http", "127.0.0.1", 8080) and str(url) == "http://127.0.0.1:8080/v1?u=http://0x7f.1/"


@each("host", ["1e100.net", "127.0.0.1.nip.io", "0x7f.example", "1.2.3.4.5", "127.0.0.1a"])
def test_name_that_begins_with_digits_is_a_name(host: str) -> None:
    assert checked_url(f"http://{host}/x").origin.host == host


async def answered_beside_silent_names(service: Service, name: str) -> None:
    """Another account's own provider, at `name` on loopback, answers while 80 lookups of one account are pending."""
    mallory, other = await service.bearer(), await service.bearer()
    bodies = [{"name": f"mine{number}", "base_url": f"http://slow{number}.example"} for number in range(80)]
    silent = []
    for number, body in enumerate(bodies):
        service.clocks.advance(60 if number % 30 == 0 else 0)
        silent.append(asyncio.create_task(service.client.post(PROVIDERS, json=body, headers=mallory)))
        await asyncio.sleep(0.01)
    async with ModelServer() as upstream:
        provider = await add_provider(service, other, f"http://{name}:{upstream.port}/v1", models=["ok"])
        body = {"model": f"{provider['name']}/ok", "messages": HELLO}
        answer = await service.client.post("/v1/chat/completions", json=body, headers=other)
    assert answer.status_code == 200, answer.text
    assert not any(task.done() for task in silent)
    for task in silent:
        task.cancel()
    await asyncio.gather(*silent, return_exceptions=True)


@pytest.mark.parametrize("config", [{**OPEN, "resolve": None}], indirect=True)
async def test_silent_dns_servers_delay_only_their_account(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "PROGRAM", SLOW_LOOKUP)
    await answered_beside_silent_names(service, "fast.example")


async def test_rate_limit_applies_before_a_name_is_resolved(
    service: Service, headers: dict[str, str], names: Names
) -> None:
    own = await add_provider(service, headers, "https://public.example/v1")
    names.asked.clear()
    path, changes = f"{PROVIDERS}/{own['id']}", {"base_url": "https://other.example/v1"}
    answers = [await service.client.patch(path, json=changes, headers=headers) for _ in range(40)]
    assert [answer.status_code for answer in answers] == [200] * 29 + [429] * 11
    body = {"name": "more", "base_url": "https://more.example"}
    for answer in (
        await service.client.post(PROVIDERS, json=body, headers=headers),
        await service.client.post(f"{path}/test", headers=headers),
    ):
        assert answer.status_code == 429 and 1 <= answer.json()["error"]["retry_after"] <= 59
    assert names.asked == ["other.example"] * 29
    assert (await service.client.patch(path, json={"name": "renamed"}, headers=headers)).status_code == 200


async def test_address_check_times_out() -> None:
    async def never(host: str, port: int, account_id: str) -> list[str]:
        await asyncio.sleep(3600)
        return []

    async def odd(host: str, port: int, account_id: str) -> list[str]:
        return ["no address"]

    slow = Outbound(allow=public_address, resolve=never)
    slow.connect_timeout_seconds = 0.05
    await slow.check_address("http://slow.example", "acc")
    await Outbound(allow=public_address, resolve=odd).check_address("http://odd.example", "acc")
    with pytest.raises(AddressNotAllowed):
        await Outbound(allow=public_address, resolve=Resolver()).check_address("http://127.1", "acc")
