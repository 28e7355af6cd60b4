"""Requests made from the interface document, and their mutations, to the application in this process."""

import asyncio
import contextlib
import json
import random
import re
import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.generation import GenerationMode

from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.fuzz.mutation import VALUES, mutated_bytes, mutated_json
from tests.support.openapi import DOCUMENT
from tests.support.watchdog import WATCHDOG

PATIENCE_SECONDS = 30.0
_AT_ONCE = 8
_MADE_ANEW = 8  # operations a round
_CONTENT_TYPES = (
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/octet-stream",
    "a/b;c",
    "",
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True)
class Sent:
    """One request; `path` has its parameters in braces, `body` is JSON unless it is bytes."""

    method: str
    path: str
    parameters: dict[str, Any]
    query: dict[str, Any]
    headers: dict[str, str]
    body: Any = None

    def mutated(self, rnd: random.Random) -> "Sent":
        way = rnd.random()
        if way < 0.6 and self.body is not None and not isinstance(self.body, bytes):
            return replace(self, body=mutated_json(self.body, rnd))
        if way < 0.7 and self.body is not None:
            return replace(self, body=mutated_bytes(_as_bytes(self.body), rnd))
        if way < 0.85:
            name = rnd.choice([*self.query, "limit", "after", "q", "days", "project_id", "status"])
            return replace(self, query={**self.query, name: rnd.choice(VALUES)})
        if way < 0.9:
            return replace(self, method=rnd.choice(_METHODS))
        if way < 0.95:
            return replace(self, headers={**self.headers, "content-type": rnd.choice(_CONTENT_TYPES)})
        return replace(self, parameters={name: rnd.choice(VALUES) for name in self.parameters})


def _as_bytes(body: Any) -> bytes:
    return (
        body if isinstance(body, bytes) else json.dumps(body).encode()
    )  # it writes lone surrogates, which orjson does not


@cache
def _operations() -> list[Any]:
    return [found.ok() for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()]


def _cases(operation: Any, rnd: random.Random, each: int) -> list[Sent]:
    """`each` right and as many wrong requests to the operation."""
    made: list[Sent] = []

    def keep(case: Any) -> None:
        sent = case.as_transport_kwargs()
        headers = {name.lower(): value for name, value in (case.headers or {}).items() if isinstance(value, str)}
        body = sent.get("json", sent.get("data"))
        body = body.encode("utf-8", "replace") if isinstance(body, str) and "json" not in sent else body
        body = None if isinstance(body, dict) and "json" not in sent else body  # a form: the bytes of others do for it
        made.append(
            Sent(case.method, case.path, dict(case.path_parameters or {}), dict(case.query or {}), headers, body)
        )

    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        options: dict[str, Any] = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
        draw = settings(max_examples=each, phases=[Phase.generate], **options)(
            given(operation.as_strategy(generation_mode=mode))(keep)
        )
        with warnings.catch_warnings(), contextlib.suppress(Exception):  # nothing in the operation can be wrong
            warnings.simplefilter("ignore")
            seed(rnd.getrandbits(32))(draw)()
    return made


class Corpus:
    """Right and wrong requests to each operation, kept from round to round: to make one takes ten times as long as to
    send it.
    """

    def __init__(self, rnd: random.Random, operations: int = 1_000, each: int = 20) -> None:
        every = _operations()
        self._operations = rnd.sample(every, min(operations, len(every)))
        self._each = each
        self._made: list[list[Sent]] = []

    def fresh(self, rnd: random.Random) -> list[Sent]:
        """Return requests that were not sent yet: first of all operations, then of a few, newly generated."""
        again = rnd.sample(range(len(self._operations)), min(_MADE_ANEW, len(self._operations)))
        if not self._made:
            self._made, again = [[] for _ in self._operations], list(range(len(self._operations)))
        for place in again:
            self._made[place] = _cases(self._operations[place], rnd, self._each)
        return [sent for place in again for sent in self._made[place]]

    def all(self) -> list[Sent]:
        return [sent for made in self._made for sent in made]


@dataclass
class People:
    """Two accounts, and what the first one has: ids by the names that paths give them."""

    headers: list[dict[str, str]]
    ids: dict[str, str]


async def _people(service: Service) -> People:
    session, other = await service.sign_up(), await service.bearer()
    headers = bearer(session["access_token"])
    key = await service.make_key(headers)

    async def made(path: str, body: dict[str, Any]) -> str:
        return str((await service.client.post(path, json=body, headers=headers)).json()["id"])

    run = await service.client.post(
        "/v1/agents/run", json={"goal": "say x", "model": "builtin/script"}, headers=headers
    )
    ids = {
        "key_id": key["id"],
        "run_id": run.headers["x-service-run"],
        "project_id": await made("/projects", {"name": "x"}),
        "artifact_id": await made("/artifacts", {"name": "x", "content": "x" * 1000}),
        "conversation_id": await made("/conversations", {"title": "x"}),
        "provider_id": await made(
            "/user/providers", {"name": "own", "base_url": "https://own.example/v1", "models": ["x"]}
        ),
        "model_id": "builtin/echo",
    }
    return People([headers, headers, headers, bearer(key["key"]), other, {}], ids)


@contextlib.asynccontextmanager
async def _service(folder: Path) -> AsyncIterator[Service]:
    clocks = Clocks()

    async def resolve(host: str, port: int, account_id: str) -> list[str]:
        raise OSError("no names here")

    with (folder / "log").open("ab", buffering=0) as log:
        config = Config(
            log_fd=log.fileno(),
            data_dir=folder / "data",
            discover=False,
            byok_private=False,
            resolve=resolve,
            clock=lambda: clocks.now,
            monotonic=lambda: clocks.ticks,
            argon2_memory_kib=8,
            argon2_time_cost=1,
        )
        async with serving(config, clocks) as service:
            yield service


async def play(folder: Path, seed_: str, count: int, corpus: Corpus) -> list[str]:
    """Sends `count` requests made from `seed_`, a new database in `folder`; what did not hold, a line each.

    First comes what is fresh in the corpus, then mutations of all. The caller lets the watchdog watch."""
    rnd = random.Random(seed_)
    fresh, every = corpus.fresh(rnd), corpus.all()
    found: list[str] = []
    async with _service(folder) as service:
        people = await _people(service)
        for begin in range(0, count, _AT_ONCE):
            chosen = [
                fresh[n] if n < len(fresh) else rnd.choice(every).mutated(rnd) for n in range(begin, begin + _AT_ONCE)
            ]
            service.clocks.ticks += 3_600  # no limit of requests is in the way
            await asyncio.gather(*(_send(service, people, sent, rnd, found) for sent in chosen[: count - begin]))
            found += [f"a step of {seconds} s of CPU time: {name}" for name, seconds in WATCHDOG.stalls]
            WATCHDOG.stalls.clear()
    return found


async def _send(service: Service, people: People, sent: Sent, rnd: random.Random, found: list[str]) -> None:
    # To test a provider takes 3 s, whatever its address: that is for those that do not exist.
    ids = people.ids if rnd.random() < 0.6 and not sent.path.endswith("/test") else {}
    path = re.sub(
        r"\{(\w+)\}", lambda match: _in_path(ids.get(match[1], sent.parameters.get(match[1], "x"))), sent.path
    )
    headers = {**sent.headers, **rnd.choice(people.headers), "origin": service.config.base_url}
    if rnd.random() < 0.02:
        headers |= sent.headers
    options: dict[str, Any] = {"params": {name: _as_text(value) for name, value in sent.query.items()}}
    if sent.body is not None:
        options["content"] = _as_bytes(sent.body)
    headers.setdefault("content-type", "application/json")
    try:
        request = service.client.build_request(
            sent.method, path, headers=headers, **options, extensions={"invented": True}
        )
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return  # no client sends that
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await service.client.send(request)
    except TimeoutError:
        found.append(f"no answer within {PATIENCE_SECONDS:.0f} s: {_told(request)}")
    except Exception as error:  # what the document does not allow is one of them
        found.append(f"{type(error).__name__} {str(error)[:500]}: {_told(request)}")
    else:
        if answer.status_code == 500:
            found.append(f"500: {_told(request)}")


def _in_path(value: Any) -> str:
    return quote(_as_text(value).encode("utf-8", "replace"), safe="")


def _as_text(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace").decode()


def _told(request: httpx.Request) -> str:
    return f"{request.method} {request.url.raw_path.decode()[:300]} {request.headers.get('content-type')} {request.content[:600]!r}"
