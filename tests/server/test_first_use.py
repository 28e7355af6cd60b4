"""Work after the start that requests would do otherwise."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import app
from svc.config import Config
from svc.routes import pages
from svc.server.edge import _lacks_descriptors
from svc.server.first_use import prepare
from tests.conftest import Service
from tests.support.server import COMMAND, running_server


@contextmanager
def no_free_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_steps_run_in_order_and_one_without_a_descriptor_is_left_out() -> None:
    done: list[str] = []

    def fail() -> None:
        raise OSError(24, "Too many open files")

    def steps() -> Iterator[object]:
        yield lambda: done.append("first")
        yield fail
        yield lambda: done.append("last")

    await prepare(steps())  # type: ignore[arg-type]
    assert done == ["first", "last"]


def test_pages_need_no_file_afterwards(config: Config) -> None:
    for step in app._first_use(replace(config, smtp_url=None)):
        step()
    with no_free_descriptors():
        assert pages.not_found().status_code == 404
        for step in app._first_use(replace(config, smtp_url=None)):
            step()


async def test_request_without_a_free_descriptor_is_503_and_the_next_one_works(service: Service) -> None:
    pages.files.cache_clear()
    pages._page.cache_clear()
    pages._frame.cache_clear()
    browser = {"accept": "text/html"}
    await service.client.get("/healthz")
    with no_free_descriptors():
        for path in ("/", "/nothing"):
            answer = await service.client.get(path, headers=browser)
            expected = (503, "overloaded") if path == "/" else (404, "not_found")
            assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert (await service.client.get("/", headers=browser)).status_code == 200
    assert "text/html" in (await service.client.get("/nothing", headers=browser)).headers["content-type"]


def test_library_that_cannot_be_opened_is_503_and_a_missing_one_is_a_bug() -> None:
    missing = "_rust.so: cannot open shared object file: "
    found = [_lacks_descriptors(ImportError(missing + why)) for why in ("Too many open files", "No such file")]
    assert found == [True, False]


PATHS = [
    *("/", "/docs", "/openapi.json", "/static/style.css", "/password-reset", "/checkout", "/nothing", "/metrics"),
    *("/readyz", "/healthz", "/user/me", "/user/export", "/conversations?q=hello"),
    *("POST /auth/signup", "POST /auth/login", "POST /v1/chat/completions", "POST /v1/agents/run"),
    *("POST /user/providers", "POST /v1/images/generations", "POST /v1/audio/generate"),
]
ACCOUNT = {"email": "a@example.com", "password": "correct horse battery"}
BODIES = {
    "/auth/signup": {**ACCOUNT, "email": "b@example.com"},
    "/auth/login": ACCOUNT,
    "/v1/chat/completions": {"model": "builtin/assistant", "messages": [{"role": "user", "content": "What is 2 + 3?"}]},
    "/v1/agents/run": {"goal": "What is 2 + 3?", "model": "builtin/assistant"},
    "/user/providers": {"name": "mine", "base_url": "http://192.0.2.1", "api_key": "sk-0123456789"},
    "/v1/images/generations": {"prompt": "hills", "model": "builtin/paint", "size": "64x64"},
    "/v1/audio/generate": {"input": "hi", "model": "builtin/voice"},
}


def few() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@pytest.mark.slow
async def test_every_path_answers_or_is_503_beside_150_idle_connections(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, server.client() as client:
        session = (await client.post("/auth/signup", json=ACCOUNT)).json()["access_token"]
        answer = await client.post(
            "/user/api-keys", json={"name": "mine"}, headers={"authorization": f"Bearer {session}"}
        )
    headers = {"authorization": f"Bearer {answer.json()['key']}", "accept": "text/html, */*"}
    credit = [sys.executable, "-m", "svc", "credit", ACCOUNT["email"], "5"]
    await asyncio.to_thread(subprocess.run, credit, env={**os.environ, "SVC_DATA_DIR": f"{tmp_path}/data"}, check=True)
    # The first server has imported nothing when it is asked. The second one is prepared.
    for waits_for_seconds in (0.0, 3.0):
        async with running_server(tmp_path, command=COMMAND, preexec_fn=few) as server:
            await asyncio.sleep(waits_for_seconds)
            idle = [socket.create_connection((server.host, server.port)) for _ in range(150)]
            found = {}
            for what in PATHS:
                method, _, path = what.rpartition(" ")
                transport = httpx.AsyncHTTPTransport(verify=server.tls or False, local_address="127.0.0.2")
                async with httpx.AsyncClient(transport=transport, base_url=server.base_url) as client:
                    answer = await client.request(method or "GET", path, json=BODIES.get(path), headers=headers)
                    found[what] = answer.status_code
            for connection in idle:
                connection.close()
            assert set(found.values()) <= {200, 201, 401, 403, 404, 409, 503}, found
            assert list(found.values()).count(503) <= 3, found
            assert [line for line in server.log_lines() if line.get("level") == "error"] == []
