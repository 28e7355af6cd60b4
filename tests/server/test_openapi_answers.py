"""Real answers, good and bad, of every part of the API: each is one that the interface document allows."""

from typing import Any

import pytest

from tests.conftest import JSON, PASSWORD, Service, bearer
from tests.support.byok import http_answer, raw_server
from tests.support.model_server import ModelServer


class Asker:
    """Sends requests and holds each answer against its status; the client of `service` holds it against
    the document.
    """

    def __init__(self, service: Service) -> None:
        self._client = service.client
        self.session: dict[str, str] = {}

    async def sign_in(self, service: Service) -> None:
        self.session = await service.bearer()

    async def __call__(self, method: str, path: str, status: int, **arguments: Any) -> Any:
        """The JSON of the answer, the whole answer where it is none."""
        arguments.setdefault("headers", {})
        answer = await self._client.request(
            method, path, **{**arguments, "headers": {**self.session, **arguments["headers"]}}
        )
        assert answer.status_code == status, (method, path, answer.text)
        return (
            answer.json() if method != "HEAD" and answer.headers.get("content-type") == "application/json" else answer
        )


@pytest.fixture
def ask(service: Service) -> Asker:
    return Asker(service)


async def test_sign_in_answers_match_the_document(ask: Asker) -> None:
    account = {"email": "ada@example.com", "password": PASSWORD}
    await ask("POST", "/auth/signup", 201, json=account)
    await ask("POST", "/auth/signup", 409, json=account)
    await ask("POST", "/auth/signup", 400, json={})
    await ask("POST", "/auth/signup", 400, content=b"{", headers=JSON)
    await ask("POST", "/auth/signup", 415, content=b"{}", headers={"content-type": "text/plain"})
    await ask("POST", "/auth/signup", 413, content=b" " * 2_000_000, headers=JSON)
    await ask("POST", "/auth/login", 401, json={**account, "password": "wrong"})
    for _ in range(4):
        await ask("POST", "/auth/login", 200, json=account)
    await ask("POST", "/auth/login", 429, json=account)
    await ask("POST", "/auth/password-reset", 202, json={"email": "ada@example.com"})
    await ask("POST", "/auth/password-reset/confirm", 400, json={"token": "unknown", "password": PASSWORD})
    await ask("POST", "/auth/verify-email", 400, json={"token": "unknown"})


async def test_account_answers_match_the_document(service: Service, ask: Asker) -> None:
    await ask.sign_in(service)
    await ask("GET", "/user/me", 200)
    await ask("PATCH", "/user/me", 200, json={"name": "Ada"})
    await ask("PATCH", "/user/me", 400, json={"name": 1})
    await ask("PATCH", "/user/settings", 200, json={"default_model": "builtin/echo", "memory_enabled": False})
    await ask("GET", "/user/settings", 200)
    created = await ask("POST", "/user/api-keys", 201, json={"name": "a key"})
    key = bearer(created["key"])
    await ask("GET", "/user/api-keys", 200, headers=key)
    await ask("DELETE", "/user/me", 403, headers=key)
    await ask("DELETE", f"/user/api-keys/{created['id']}", 204, headers=key)
    await ask("GET", "/user/me", 401, headers=key)
    await ask("DELETE", "/user/api-keys/none", 404)
    await ask("POST", "/auth/logout", 204)
    await ask("DELETE", "/user/me", 401, json={"password": "wrong"})
    await ask("DELETE", "/user/me", 204, json={"password": PASSWORD})


async def test_provider_answers_match_the_document(ask: Asker, service: Service) -> None:
    await ask.sign_in(service)
    async with ModelServer() as upstream, raw_server(http_answer("403 No", b'{"detail": "no"}')) as refusing:
        body = {"name": "mine", "base_url": upstream.base_url, "api_key": "sk-of-the-tests-own"}
        provider = await ask("POST", "/user/providers", 201, json=body)
        await ask("POST", "/user/providers", 409, json=body)
        await ask("POST", "/user/providers", 400, json={**body, "name": "A"})
        await ask("POST", "/user/providers", 403, json={**body, "name": "other", "base_url": "http://169.254.169.254"})
        await ask("GET", "/user/providers", 200)
        await ask("GET", "/user/providers", 400, params={"after": "none"})
        path = f"/user/providers/{provider['id']}"
        await ask("GET", path, 200)
        await ask("POST", f"{path}/test", 200)
        await ask("GET", "/v1/models", 200)
        chat = {"messages": [{"role": "user", "content": "hi"}]}
        for model, status in (
            ("ok", 200),
            ("status-401", 401),
            ("status-403", 403),
            ("refuse-429", 429),
            ("status-500", 502),
        ):
            await ask("POST", "/v1/chat/completions", status, json={**chat, "model": f"mine/{model}"})
        await ask("PATCH", path, 200, json={"models": ["a"], "base_url": refusing.base_url})
        await ask("POST", f"{path}/test", 403)
        await ask("DELETE", path, 204)
        for method in ("GET", "DELETE"):
            await ask(method, path, 404)
        await ask("PATCH", path, 404, json={})
        await ask("POST", f"{path}/test", 404)


async def test_chat_answers_match_the_document(service: Service, ask: Asker) -> None:
    await ask.sign_in(service)
    await ask("GET", "/v1/models", 200)
    await ask("GET", "/v1/models/builtin/echo", 200)
    await ask("GET", "/v1/models/builtin%2Fecho", 200)
    await ask("GET", "/v1/models/none", 404)
    chat = {"messages": [{"role": "user", "content": "Hello, \u2028 world"}]}
    await ask("POST", "/v1/chat/completions", 200, json=chat)
    await ask("POST", "/v1/chat/completions", 200, json={**chat, "stream": True})
    options = {"stream": True, "stream_options": {"include_usage": True}}
    await ask("POST", "/v1/chat/completions", 200, json={**chat, **options, "n": 2})
    script = {"model": "builtin/script", "messages": [{"role": "user", "content": 'say hi\ntool f {"a": 1}\ndrop'}]}
    await ask("POST", "/v1/chat/completions", 502, json=script)
    await ask("POST", "/v1/chat/completions", 200, json={**script, "stream": True})
    script["messages"][0]["content"] = "fail 422 no"
    await ask("POST", "/v1/chat/completions", 422, json=script)
    await ask("POST", "/v1/chat/completions", 400, json={**chat, "n": 0})
    await ask("POST", "/v1/chat/completions", 404, json={**chat, "model": "none"})
    await ask("POST", "/v1/chat/completions", 402, json={**chat, "model": "builtin/assistant-paid"})
    for _ in range(11):
        await ask("POST", "/v1/chat/completions", 400, content=b"", headers=JSON)
    await ask("POST", "/v1/chat/completions", 429, json=chat)


async def test_agent_answers_match_the_document(service: Service, ask: Asker) -> None:
    await ask.sign_in(service)
    await ask("POST", "/v1/agents/run", 200, json={"goal": "Calculate 12 * (3 + 4) and write it to a file named a.txt"})
    await ask("POST", "/v1/agents/run", 200, json={"goal": "Calculate 12 * (3 + 4)", "max_steps": 1})
    await ask("POST", "/v1/agents/run", 200, json={"goal": "fail 500 no", "model": "builtin/script"})
    await ask("POST", "/v1/agents/run", 400, json={"goal": "x", "max_steps": 21})
    await ask("POST", "/v1/agents/run", 402, json={"goal": "x", "model": "builtin/assistant-paid"})
    await ask("POST", "/v1/agents/run", 404, json={"goal": "x", "project_id": "none"})
    listed = (await ask("GET", "/v1/agents/runs", 200))["data"]
    assert {run["status"] for run in listed} == {"final", "stopped", "error"}
    await ask("GET", f"/v1/agents/runs/{listed[0]['id']}", 200)
    await ask("POST", f"/v1/agents/runs/{listed[0]['id']}/stop", 409)
    await ask("GET", "/v1/agents/runs/none", 404)


async def test_project_and_artifact_answers_match_the_document(service: Service, ask: Asker) -> None:
    await ask.sign_in(service)
    project = await ask("POST", "/projects", 201, json={"name": "Thesis"})
    await ask("POST", "/projects", 400, json={"name": " "})
    await ask("PATCH", f"/projects/{project['id']}", 200, json={"max_planner_steps": 3, "instructions": None})
    await ask("GET", f"/projects/{project['id']}", 200)
    await ask("GET", "/projects", 200)
    await ask("GET", "/projects", 400, params={"limit": 0})
    text = {"name": "note.md", "content": "hello world", "project_id": project["id"]}
    artifact = await ask("POST", "/artifacts", 201, json=text)
    await ask("POST", "/artifacts", 404, json={**text, "project_id": "none"})
    await ask("POST", "/artifacts", 400, json={**text, "content_type": "x"})
    await ask("GET", "/artifacts", 200)
    content = f"/artifacts/{artifact['id']}/content"
    await ask("GET", content, 200)
    await ask("GET", content, 206, headers={"range": "bytes=0-4"})
    await ask("GET", content, 416, headers={"range": "bytes=99-"})
    await ask("GET", content, 304, headers={"if-none-match": "*"})
    await ask("PUT", content, 200, headers={"content-type": "text/plain"}, content=b"new")
    await ask("PUT", content, 400, headers={"content-type": "text"}, content=b"new")
    await ask("PATCH", f"/artifacts/{artifact['id']}", 200, json={"name": "b.md", "project_id": None})
    await ask("DELETE", f"/artifacts/{artifact['id']}", 204)
    await ask("GET", f"/artifacts/{artifact['id']}", 404)
    await ask("DELETE", f"/projects/{project['id']}", 204)


async def test_billing_answers_match_the_document(service: Service, ask: Asker) -> None:
    await ask.sign_in(service)
    origin = {"origin": service.config.base_url}
    await ask("POST", "/checkout", 403, data={"amount": "25"})
    await ask("POST", "/checkout", 400, headers=origin, data={"amount": "1"})
    await ask("POST", "/checkout", 415, headers=origin, json={})
    begun = await ask("POST", "/checkout", 303, headers=origin, data={"amount": "25"})
    page = begun.headers["location"].removeprefix(service.config.base_url)
    await ask("GET", "/checkout", 200)
    await ask("GET", page, 200)
    await ask("POST", page, 303, headers=origin)
    await ask("GET", "/checkout/return", 200)
    await ask("GET", "/checkout/sandbox/none", 404)
    await ask("POST", "/checkout/sign-in", 401, headers=origin, data={"email": "ada@example.com", "password": "wrong"})
    await ask(
        "POST",
        "/v1/chat/completions",
        200,
        json={"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "Hi"}]},
    )
    await ask("GET", "/billing/account", 200)
    assert len((await ask("GET", "/billing/ledger", 200))["data"]) == 2
    await ask("GET", "/billing/usage", 200)
    await ask("GET", "/billing/usage", 400, params={"days": 91})
    await ask("POST", "/billing/webhook", 400, json={}, headers={"stripe-signature": "t=1,v1=a"})


async def test_service_answers_match_the_document(ask: Asker) -> None:
    for path in (
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/password-reset",
        "/verify-email",
        "/preview",
        "/static/style.css",
        "/",
    ):
        await ask("GET", path, 200)
        await ask("HEAD", path, 200)
    await ask("GET", "/static/none.css", 404)
    await ask("GET", "/nowhere", 404)
    await ask("PUT", "/user/me", 405)
    await ask("GET", "/healthz", 421, headers={"host": "evil.example"})
