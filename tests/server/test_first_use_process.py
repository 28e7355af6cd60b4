"""A server process with few descriptors."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.server import COMMAND, running_server

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
