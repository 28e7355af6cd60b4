"""After a request, nothing in the process refers to the secrets that came with it: not a cache, not an
idle connection.
"""

import asyncio
import json
from pathlib import Path
from signal import SIGUSR1
from typing import Any

import httpx
import pytest

from tests.conftest import bearer
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.slow

PASSWORD = "a password that nobody else has 4711"
PROVIDER_KEY = "sk-provider-0123456789-abcdefghijklmnopqrstuvwxyz"
# The server itself. At SIGUSR1 it follows all references from every object that the garbage collector knows, and writes
# which of the secrets in the file FOLDER/secrets it has found in which objects.
COMMAND = """
import gc, json, os, signal, sys
import app

folder = os.environ["FOLDER"]

def described(found, parents, objects):
    place, names = found, []
    while place in parents and len(names) < 8:
        place = parents[place]
        names.append(type(objects[place]).__qualname__ if place in objects else "?")
    return " < ".join(names)

def search(*_):
    with open(folder + "/secrets", "rb") as file:
        wanted = file.read().splitlines()
    names = [secret.decode() for secret in wanted]
    gc.collect()
    own = {id(wanted), id(names), *map(id, wanted), *map(id, names)}
    found, parents = {}, {}
    objects = {id(one): one for one in gc.get_objects() if id(one) not in own}
    own |= {id(objects), id(parents), id(found), id(sys._getframe())}
    waiting = list(objects.values())
    own.add(id(waiting))
    while waiting:
        one = waiting.pop()
        for other in gc.get_referents(one):
            place = id(other)
            if place in objects or place in own:
                continue
            objects[place], parents[place] = other, id(one)
            if isinstance(other, (str, bytes, bytearray)):
                for name, secret in zip(names, wanted):
                    if (name if isinstance(other, str) else secret) in other:
                        found.setdefault(name, []).append(described(place, parents, objects))
            else:
                waiting.append(other)
    with open(folder + "/found.new", "w") as file:
        json.dump({"objects": len(objects), "found": found}, file)
    os.replace(folder + "/found.new", folder + "/found")

signal.signal(signal.SIGUSR1, search)
sys.exit(app.main())
"""


async def held(server: RunningServer, folder: Path, secrets: list[str]) -> dict[str, list[str]]:
    """The secrets that the server process still refers to, and where."""
    (folder / "secrets").write_text("\n".join(secrets))
    (folder / "found").unlink(missing_ok=True)
    server.send_signal(SIGUSR1)
    async with asyncio.timeout(60):
        while not (folder / "found").exists():
            await asyncio.sleep(0.05)
    answer: dict[str, Any] = json.loads((folder / "found").read_text())
    assert answer["objects"] > 50_000, "it has looked at the whole process"
    found: dict[str, list[str]] = answer["found"]
    return found


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json() if answer.content and "json" in answer.headers["content-type"] else None


async def test_no_secret_stays_in_memory_after_its_request(tmp_path: Path) -> None:
    env = {"FOLDER": str(tmp_path), "SVC_BYOK_PRIVATE": "1"}
    async with (
        ModelServer() as models,
        running_server(tmp_path, env, ("-c", COMMAND)) as server,
        server.client() as client,
    ):
        sign_up = {"email": "a@example.com", "password": PASSWORD}
        session = (await ok(await client.post("/auth/signup", json=sign_up)))["access_token"]
        await ok(await client.post("/auth/login", json=sign_up))
        key = (await ok(await client.post("/user/api-keys", json={"name": "k"}, headers=bearer(session))))["key"]
        provider = {"name": "own", "base_url": models.base_url, "api_key": PROVIDER_KEY}
        made = await ok(await client.post("/user/providers", json=provider, headers=bearer(session)))
        await client.post(f"/user/providers/{made['id']}/test", headers=bearer(session))
        chat = {"model": "own/ok", "messages": [{"role": "user", "content": "hello"}]}
        for token in (session, key):
            await ok(await client.get("/v1/models", headers=bearer(token)))
            for stream in (False, True):
                await ok(
                    await client.post("/v1/chat/completions", json={**chat, "stream": stream}, headers=bearer(token))
                )
            async with client.stream("POST", "/v1/agents/run", json={"goal": "hello"}, headers=bearer(token)) as run:
                assert run.status_code == 200 and (await run.aread())
        artifact = await ok(
            await client.post("/artifacts", json={"name": "a", "content": "b"}, headers=bearer(session))
        )
        signature = artifact["content_url"].rpartition("signature=")[2]
        await ok(await client.get(artifact["content_url"]))
        secrets = [session, key, PROVIDER_KEY, PASSWORD, signature]
        async with server.client() as one, server.client() as other, server.client() as another:  # they stay open
            await ok(await one.get("/v1/models", headers=bearer(key)))
            await ok(await other.post("/auth/login", json=sign_up))
            await ok(await another.post("/v1/chat/completions", json=chat, headers=bearer(session)))
            assert all(secrets)
            async with asyncio.timeout(20):  # what an answer leaves to do takes a moment
                while found := await held(server, tmp_path, secrets):
                    print(found)  # pytest shows it when the time is over
                    await asyncio.sleep(0.2)
