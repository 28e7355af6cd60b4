"""What `svc doctor` finds about model servers, mail, payments, identity providers and the clock, without secrets."""

import asyncio
import contextlib
import dataclasses
import ssl
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc.admin.health import Finding
from svc.auth import accounts
from svc.certificates import tls_files
from svc.commands import doctor
from svc.commands.doctor import examine
from svc.config import Config, IdentityProvider, MailServer
from svc.schema import command_connection
from tests.conftest import Clocks, serving
from tests.support.cases import each
from tests.support.format_server import FormatServer
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, stand_in
from tests.support.mail_server import PASSWORD, USER, mail_server
from tests.support.model_server import ModelServer
from tests.support.search_engine import KEY as SEARCH_KEY
from tests.support.search_engine import SearchEngine

pytestmark = pytest.mark.usefixtures("without_python")
KEY = "sk_test_canary_0123456789"


async def asked(config: Config) -> dict[str, list[Finding]]:
    by_subject: dict[str, list[Finding]] = {}
    for finding in await examine(config):
        by_subject.setdefault(finding.about, []).append(finding)
        assert not any(secret in doctor.line_of(finding) for secret in (KEY, PASSWORD, CLIENT_SECRET))
    return by_subject


def cataloged(config: Config, tmp_path: Path, *providers: str) -> Config:
    path = tmp_path / "catalog.toml"
    path.write_text("\n".join(f"[[providers]]\n{provider}" for provider in providers))
    return dataclasses.replace(config, catalog=path, environ={"THE_KEY": KEY})


@contextlib.asynccontextmanager
async def answering(status: int, value: Any, *, ahead_seconds: float = 0.0) -> AsyncIterator[str]:
    """A server on loopback with one answer to everything; its clock is `ahead_seconds` of ours."""
    body = value if isinstance(value, bytes) else orjson.dumps(value)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            date = formatdate(time.time() + ahead_seconds, usegmt=True).encode()
            head = b"HTTP/1.1 %d X\r\ndate: %b\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (
                status,
                date,
                len(body),
            )
            writer.write(head + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_missing_models_of_a_model_server_are_named(config: Config, tmp_path: Path) -> None:
    async with ModelServer(models=("one", "two:latest")) as server:
        entry = f'name = "a"\nbase_url = "{server.base_url}"\n'
        models = [f'[[providers.models]]\nid = "{name}"\n' for name in ("one", "two", "three")]
        for count, grade, text in ((2, "ok", "all 2 models"), (3, "look", "three")):
            [finding] = (await asked(cataloged(config, tmp_path, entry + "".join(models[:count]))))["provider a"]
            assert finding.grade == grade and text in finding.text
        [finding] = (await asked(cataloged(config, tmp_path, entry)))["provider a"]
        assert finding.grade == "ok" and "2 models" in finding.text


async def test_each_server_of_a_provider_is_checked(config: Config, tmp_path: Path) -> None:
    async with ModelServer() as up, ModelServer() as down:
        await down.stop()
        found = await asked(
            cataloged(config, tmp_path, f'name = "a"\nbase_urls = ["{up.base_url}", "{down.base_url}"]\n')
        )
        assert found[f"provider a at {up.base_url}"][0].grade == "ok"
        assert found[f"provider a at {down.base_url}"][0].grade == "wrong"


async def test_formats_of_a_model_server_are_named_and_compared_with_api(config: Config, tmp_path: Path) -> None:
    async with FormatServer() as every, ModelServer() as only_chat:
        for server, model, grade, text in (
            (every, "", "ok", "chat, responses, messages"),
            (every, 'api = "messages"\n', "ok", "chat, responses, messages"),
            (only_chat, "", "ok", "it answers chat and"),
            (only_chat, 'api = "messages"\n', "wrong", "does not answer the format messages"),
            (only_chat, '[[providers.models]]\nid = "ok"\napi = "responses"\n', "wrong", "the format responses"),
        ):
            entry = f'name = "a"\nbase_url = "{server.base_url}"\n{model}'
            [finding] = (await asked(cataloged(config, tmp_path, entry)))["provider a"]
            assert finding.grade == grade and text in finding.text


@each(
    ("status", "value", "grade", "text"),
    [
        (401, {"error": {"message": f"Incorrect API key: {KEY}"}}, "wrong", "key is refused"),
        (404, {"detail": "Not Found"}, "look", "no list"),
        (500, {"error": KEY}, "wrong", "status 500"),
        (200, b"<html>", "wrong", "not that of a model server"),
        (200, {"data": []}, "wrong", "no model"),
    ],
)
async def test_failing_model_server_is_reported_without_its_text(
    config: Config, tmp_path: Path, status: int, value: Any, grade: str, text: str
) -> None:
    async with answering(status, value) as url:
        entry = f'name = "a"\nbase_url = "{url}/v1"\napi_key_env = "THE_KEY"\n'
        prices = "input_micros_per_million_tokens = 0\noutput_micros_per_million_tokens = 0\n"
        [finding] = (await asked(cataloged(config, tmp_path, entry + prices)))["provider a"]
    assert finding.grade == grade and text in finding.text


async def test_model_that_refuses_tools_with_reasoning_is_named_while_the_server_runs(
    config: Config, clocks: Clocks
) -> None:
    async with FormatServer() as upstream:
        model = '[[providers.models]]\nid = "tools-need-none"'
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{model}\n'
        async with serving(config, clocks, catalog) as service:
            assert "model lab/tools-need-none" not in await asked(service.config)
            tool = {"type": "function", "function": {"name": "look_up"}}
            body = {"model": "lab/tools-need-none", "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
            headers = await service.bearer()
            answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
            [finding] = (await asked(service.config))["model lab/tools-need-none"]
        assert finding.grade == "look" and 'api = "responses"' in finding.text
        assert "model lab/tools-need-none" not in await asked(service.config)


async def test_unreachable_model_server_and_wrong_catalog_are_reported(config: Config, tmp_path: Path) -> None:
    async with answering(200, {}) as url:
        pass
    [finding] = (await asked(cataloged(config, tmp_path, f'name = "a"\nbase_url = "{url}/v1"\n')))["provider a"]
    assert finding.grade == "wrong" and "cannot be reached" in finding.text and ".." not in finding.text
    assert (await asked(cataloged(config, tmp_path, 'name = "a"\nbase_url = "nowhere"\n')))["catalog"][
        0
    ].grade == "wrong"
    assert (await asked(dataclasses.replace(config, builtin=False)))["catalog"][0].grade == "wrong"


async def test_search_engine_is_asked_once(config: Config, tmp_path: Path) -> None:
    for name, status, grade, told in (
        ("brave", 200, "ok", "it finds 2 results"),
        ("brave", 401, "wrong", "it refuses the request (status 401). Check that the key is right"),
        ("searxng", 403, "wrong", "Check that its settings allow JSON, and its limiter this machine"),
        ("tavily", 432, "look", "its quota is used up (status 432)"),
        ("tavily", 500, "wrong", "a search fails: it answers with status 500. Check http://127.0.0.1:"),
    ):
        async with SearchEngine(name) as engine:
            engine.status = status
            path = tmp_path / "catalog.toml"
            path.write_text(engine.catalog())
            (found,) = (await asked(dataclasses.replace(config, catalog=path)))[f"search engine {name}"]
            assert found.grade == grade and told in found.text and len(engine.requests) == 1
            assert SEARCH_KEY not in found.text


async def test_mail_server_is_checked_without_a_message(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mail_server(tmp_path / "mail") as box:
        monkeypatch.setenv("SSL_CERT_FILE", str(box.ca))
        for password, grade, text in ((PASSWORD, "ok", "password"), (KEY, "wrong", "refuses")):
            server = MailServer("127.0.0.1", box.port, "starttls", USER, password, USER)
            [finding] = (await asked(dataclasses.replace(config, smtp_url=server)))["mail"]
            assert finding.grade == grade and text in finding.text
        monkeypatch.delenv("SSL_CERT_FILE")
        [finding] = (await asked(dataclasses.replace(config, smtp_url=server)))["mail"]
        assert finding.grade == "wrong" and "TLS" in finding.text
        assert box.messages == []
    [finding] = (await asked(dataclasses.replace(config, smtp_url=server)))["mail"]
    assert finding.grade == "wrong" and "refused" in finding.text


@each(("status", "grade"), [(200, "ok"), (401, "wrong"), (403, "wrong"), (500, "wrong")])
async def test_stripe_key_is_checked(config: Config, status: int, grade: str) -> None:
    async with answering(status, {"error": {"message": f"Invalid API Key provided: {KEY}"}}) as url:
        stripe = {"payments": "stripe", "stripe_secret_key": KEY, "stripe_webhook_secret": KEY, "stripe_api": url}
        findings = (await asked(dataclasses.replace(config, **stripe)))["payments"]  # type: ignore[arg-type]
    assert [finding.grade for finding in findings] == [grade, "look", "look"], "test money, odd secret"


async def test_identity_provider_is_checked_with_discovery_and_keys(config: Config) -> None:
    async with stand_in(time.time) as provider:
        oidc = IdentityProvider("corp", provider.url, CLIENT_ID, CLIENT_SECRET)
        github = IdentityProvider("github", provider.url, CLIENT_ID, CLIENT_SECRET)
        both = dataclasses.replace(config, identity_providers=(oidc, github))
        found = await asked(both)
        assert [found[f"identity provider {name}"][0].grade for name in ("corp", "github")] == ["ok", "ok"]
        assert provider.requests["/jwks"] == 1
        provider.metadata = {"claims_supported": ["sub", "email"]}
        (finding,) = (await asked(both))["identity provider corp"]
        assert finding.grade == "look" and "SVC_OAUTH_CORP_TRUSTED_DOMAINS" in finding.text
        trusting = dataclasses.replace(oidc, trusted_domains=("corp.example",))
        (finding,) = (await asked(dataclasses.replace(config, identity_providers=(trusting,))))[
            "identity provider corp"
        ]
        assert finding.grade == "ok"
        provider.faults = {"/jwks": 500}
        other = dataclasses.replace(github, client_secret="wrong")
        found = await asked(dataclasses.replace(config, identity_providers=(oidc, other)))
        assert [found[f"identity provider {name}"][0].grade for name in ("corp", "github")] == ["wrong", "wrong"]


async def test_each_fault_of_an_identity_provider_is_named(config: Config, tmp_path: Path) -> None:
    async def text_for(issuer: str, secret: str = CLIENT_SECRET) -> str:
        provider = IdentityProvider("corp", issuer, CLIENT_ID, secret)
        (finding,) = (await asked(dataclasses.replace(config, identity_providers=(provider,))))[
            "identity provider corp"
        ]
        assert finding.grade == "wrong"
        return finding.text

    async with stand_in(time.time) as provider:
        assert "does not accept the client id with the client secret" in await text_for(provider.url, "wrong")
    assert "refused the connection" in await text_for(provider.url)
    assert "name could not be resolved" in await text_for("https://login.invalid")
    files = tls_files(tmp_path, ["localhost"], time.time())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    private = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with private:
        text = await text_for(f"https://localhost:{private.sockets[0].getsockname()[1]}")
    assert "certificate was refused" in text and "SSL_CERT_FILE" in text


@each(("ahead_seconds", "grade"), [(0, "ok"), (-300, "wrong"), (300, "wrong")])
async def test_clock_is_compared_with_the_date_of_an_answer(
    config: Config, tmp_path: Path, ahead_seconds: float, grade: str
) -> None:
    async with answering(404, {}, ahead_seconds=ahead_seconds) as url:
        [finding] = (await asked(cataloged(config, tmp_path, f'name = "a"\nbase_url = "{url}/v1"\n')))["clock"]
    assert finding.grade == grade


async def test_clock_is_printed_if_no_server_answers(config: Config) -> None:
    [finding] = (await asked(config))["clock"]
    assert finding.grade == "ok" and "no other service" in finding.text


async def test_group_that_the_catalog_lacks_or_without_the_default_model_is_named(
    config: Config, tmp_path: Path
) -> None:
    path = tmp_path / "catalog.toml"
    config.data_dir.mkdir()
    with command_connection(config.data_dir / "service.db") as tx:
        for number, name in enumerate(("lab", "gone", "gone")):
            account_id = accounts.add_account(tx, f"{number}@example.com", None, None, 1.0).id
            tx.execute("UPDATE accounts SET group_name = ? WHERE id = ?", (name, account_id))
    for text, expected in (
        ("[[groups]]\nname = 'lab'\n", {"group gone": " 2 accounts"}),
        ("default_model = 'builtin/echo'", {"group gone": " 2 accounts", "group lab": " 1 accounts"}),
        (
            "[access]\nmodels = ['builtin/e*']\n[[groups]]\nname = 'lab'\nmodels = []\n[[groups]]\nname = 'gone'\n",
            dict.fromkeys(("group [access]", "group lab"), "may not use builtin/assistant"),
        ),
    ):
        path.write_text(text)
        found = await asked(dataclasses.replace(config, catalog=path))
        told = {about: findings[0] for about, findings in found.items() if about.startswith("group ")}
        assert told.keys() == expected.keys() and {one.grade for one in told.values()} == {"look"}
        assert all(expected[about] in one.text for about, one in told.items())
