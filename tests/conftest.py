"""Fixtures of the in-process tests: the whole application on a real database, with movable clocks."""

import contextlib
import dataclasses
import gc
import itertools
import math
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, settings

from app import create_app
from svc.auth import accounts
from svc.config import Config
from svc.schema import newest_schema
from tests.support.databases import prepare
from tests.support.leaks import leaks
from tests.support.openapi import check
from tests.support.watchdog import WATCHDOG

PASSWORD = "correct horse battery"
SERVERS = {"RunningServer", "running_server", "running_server_sync"}
MEMORY = Path("/dev/shm")
WORKERS_PER_CORE = 2  # each imports for 5 s, and a test waits for half of its time
WITH_SLOW_TESTS = 1.5  # their browsers and servers compute too, and more of them at once are too slow for deadlines
JSON = {"content-type": "application/json"}  # for a body that httpx is given as bytes

# No deadline for an example: a busy machine would break it. `--hypothesis-profile long` plays more.
settings.register_profile("short", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("short"), max_examples=2_000)
settings.load_profile("short")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--runs", type=int, default=40, help="how many random agent runs tests/agents/test_endings_process.py plays"
    )
    parser.addoption("--seed", type=int, default=0, help="which ones")
    parser.addoption(
        "--kills", type=int, default=5, help="how often tests/billing/test_money_process.py kills the server"
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of workers: none if tests are named on the command line."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return 0
    per_core = WORKERS_PER_CORE if "not slow" in config.option.markexpr else WITH_SLOW_TESTS
    return min(math.ceil(per_core * (os.cpu_count() or 1)), 8)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that start their own server as slow, so that a plain run stays short. Skip tests of programs that this
    machine does not have; .ci/run installs them all."""
    for item in items:
        missing = [tool for mark in item.iter_markers("needs") for tool in mark.args if not shutil.which(tool)]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)}, which this machine does not have"))
        if not SERVERS.isdisjoint(vars(getattr(item, "module", item))):
            item.add_marker("slow")
    yield  # pytest removes the tests that -m leaves out
    if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
        items[:] = _balanced(items, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))


def _balanced(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order whose parts, one for each worker, begin with an equal share of the slow modules.
    xdist moves tests from the end of a part to a worker that is idle. Quick ones balance the load, and no worker ends
    with a slow one.
    """
    modules = [list(group) for _, group in itertools.groupby(items, key=lambda item: item.path)]
    quick = (item for module in modules if not _slow_tests(module) for item in module)
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for module in sorted(filter(_slow_tests, modules), key=_slow_tests, reverse=True):
        min(parts, key=_slow_tests).extend(module)
    for number, part in enumerate(parts):
        part += itertools.islice(quick, max(0, (len(items) - number) // workers - len(part)))
    return [item for part in parts for item in part] + list(quick)


def _slow_tests(items: list[pytest.Item]) -> int:
    return sum(item.get_closest_marker("slow") is not None for item in items)


def pytest_configure() -> None:
    """Put temporary folders in memory if there is room: each commit of a test's database would wait for the disk."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


gc.disable()  # until the tests are collected: what is imported by then stays


def pytest_collection_finish() -> None:
    """Keep imported objects out of garbage collections, which some tests run."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 20)  # as svc/server/serve.py does
    leaks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Fail the last test of a module that leaves the application changed."""
    yield
    if nextitem is None or nextitem.path != item.path:
        assert not (found := leaks()), f"{item.path.name} leaves {found} changed"


@dataclass
class Clocks:
    """Unix seconds and monotonic seconds that stand still until a test moves them."""

    now: float = 1_790_000_000.0
    ticks: float = 1_000.0

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.ticks += seconds


@dataclass(repr=False)  # asyncio.Runner makes the text of each task's result, this one in every test
class Service:
    """The application with its running lifespan: `client` sends requests to `app` through `transport`, which has the
    client's address. `state` is what the handlers have.
    """

    app: Callable[..., Any]
    client: httpx.AsyncClient
    transport: httpx.ASGITransport
    state: dict[str, Any]
    config: Config
    clocks: Clocks
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def sign_up(self, email: str | None = None, *, makes_titles: bool = False) -> dict[str, Any]:
        """Create an account and return its session. The address changes to avoid the sign-up limit.

        A title is one more request to a model server, and tests count these: only accounts that ask for it have titles.
        """
        number = next(self._numbers)
        self.transport.client = (f"198.51.100.{number % 250}", 1234)
        answer = await self.client.post(
            "/auth/signup", json={"email": email or f"person{number}@example.com", "password": PASSWORD}
        )
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()
        if not makes_titles:
            changes = {"generate_titles": "never"}
            await self.state["db"].write(accounts.update_account, session["user"]["id"], changes)
        return session

    async def bearer(self) -> dict[str, str]:
        """The headers of a new account's session."""
        return bearer((await self.sign_up())["access_token"])

    async def make_key(self, headers: dict[str, str], name: str = "a key") -> dict[str, Any]:
        answer = await self.client.post("/user/api-keys", json={"name": name}, headers=headers)
        assert answer.status_code == 201, answer.text
        key: dict[str, Any] = answer.json()
        return key

    def log_lines(self) -> list[dict[str, Any]]:
        """The log so far. Its thread writes a line up to 50 ms after the answer: `logged` waits for it."""
        return list(map(orjson.loads, (self.config.data_dir.parent / "log").read_bytes().splitlines()))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Fail a test in which one step of the application blocked the event loop for over 100 ms of CPU time."""
    WATCHDOG.stalls.clear()
    with WATCHDOG.watching():
        yield
    assert not WATCHDOG.stalls, "the event loop stood still"


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def config(tmp_path: Path, clocks: Clocks) -> Iterator[Config]:
    """Cheap password hashes, no discovery of local model servers, the log in a file. A test module may override it."""
    log = (tmp_path / "log").open("ab", buffering=0)
    yield Config(
        log_fd=log.fileno(),
        data_dir=tmp_path / "data",
        discover=False,
        clock=lambda: clocks.now,
        monotonic=lambda: clocks.ticks,
        list_tools_seconds=2.0,
        argon2_memory_kib=8,
        argon2_time_cost=1,
    )
    log.close()


@cache
def _new_database() -> bytes:
    """The file that the first start makes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service.db"
        prepare(path, *newest_schema())
        return path.read_bytes()


@contextlib.asynccontextmanager
async def serving(config: Config, clocks: Clocks, catalog: str | None = None) -> AsyncIterator[Service]:
    """The application for `config`, with its lifespan. A new folder gets a copy of a new database: to make one takes
    longer than most tests. `catalog` is the text of a catalog file."""
    if catalog is not None:
        path = config.data_dir.parent / "catalog.toml"
        path.write_text(catalog)
        config = dataclasses.replace(config, catalog=path)
    if not config.data_dir.exists():
        config.data_dir.mkdir(mode=0o700, parents=True)
        (config.data_dir / "service.db").write_bytes(_new_database())
    app = create_app(config)
    async with app.router.lifespan_context(app) as state:
        served = _WithState(app, state)
        transport = httpx.ASGITransport(served, raise_app_exceptions=False)
        hooks: dict[str, Any] = {"response": [_hold_against_the_document]}
        async with _Client(transport=transport, base_url=config.base_url, event_hooks=hooks) as client:
            yield Service(served, client, transport, dict(vars(state["service"])), config, clocks)


@pytest.fixture
async def service(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks) as service:
        yield service


class _Client(httpx.AsyncClient):
    """httpx takes longer to build a request than the application to answer it. This client joins each path with the
    base address once, and finds the cookies for an address once.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cookies = _FewCookies()
        self._base = str(self.base_url)

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        request = super().build_request(method, url, **options)
        if self._cookies and not options.get("cookies"):
            self._cookies.set_cookie_header(request)
        return request

    def _merge_url(self, url: httpx.URL | str) -> httpx.URL:
        if not isinstance(url, str) or len(url) > 200:
            return super()._merge_url(url)
        if (self._base, url) not in _JOINED:
            _JOINED[self._base, url] = super()._merge_url(url)
        return _JOINED[self._base, url]

    def _merge_cookies(self, cookies: Any = None) -> Any:
        return super()._merge_cookies(cookies) if cookies else None  # `build_request` adds the others


_JOINED: dict[tuple[str, str], httpx.URL] = {}


class _FewCookies(httpx.Cookies):
    """httpx builds two objects of the standard library for each response, to find no cookie in nearly all of them, and
    one for each request.
    """

    def extract_cookies(self, response: httpx.Response) -> None:
        if "set-cookie" in response.headers:
            super().extract_cookies(response)

    def set_cookie_header(self, request: httpx.Request) -> None:
        if "cookie" in request.headers:
            return
        address = request.url.scheme, request.url.netloc, request.url.path
        key = (*address, *((one.name, one.value, one.domain, one.path, one.expires) for one in self.jar))
        if key not in _SENT:
            super().set_cookie_header(request)
            _SENT[key] = request.headers.get("cookie")
        elif (sent := _SENT[key]) is not None:
            request.headers["cookie"] = sent


_SENT: dict[tuple[Any, ...], str | None] = {}  # expired cookies too: no test waits so long


async def _hold_against_the_document(answer: httpx.Response) -> None:
    await answer.aread()
    check(answer)


@dataclass
class _WithState:
    """Put the lifespan's state into each request, as uvicorn does and httpx's transport does not."""

    app: Callable[..., Any]
    state: Any

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = f"{scope['method']} {scope['path']}"
        await WATCHDOG.drive(self.app({**scope, "state": dict(self.state)}, receive, send), name)
