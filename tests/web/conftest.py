"""One browser for all tests of the page, and a server with and one without mail and a catalog."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browser import chromium
from tests.support.firefox import WITH_MICROPHONE, Firefox, firefox
from tests.support.mail_server import PASSWORD, USER, MailBox, mail_server
from tests.support.server import RunningServer, running_server

# A monthly allowance, and a model with an alias.
CATALOG = """
[access]
allowance_micros = 4_000_000

[[providers]]
name = "lab"
base_url = "http://127.0.0.1:9/v1"
models = [{ id = "gpt-large", aliases = ["gpt-5"] }]
"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running_firefox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Firefox]:
    async with firefox(tmp_path_factory.mktemp("firefox"), WITH_MICROPHONE) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def fox(running_firefox: Firefox) -> AsyncIterator[Firefox]:
    """Firefox with a new person, who sees no error."""
    await running_firefox.renew()
    yield running_firefox
    assert running_firefox.errors == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def equipped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[RunningServer, MailBox]]:
    """A server with a catalog, a mail server, and a retention of 30 days for agent runs."""
    folder = tmp_path_factory.mktemp("equipped")
    (folder / "catalog.toml").write_text(CATALOG)
    async with mail_server(folder / "mail") as box:
        settings = {
            "SVC_CATALOG": str(folder / "catalog.toml"),
            "SVC_SMTP_URL": f"smtp://{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@127.0.0.1:{box.port}",
            "SVC_KEEP_RUNS_DAYS": "30",
            "SSL_CERT_FILE": str(box.ca),
        }
        async with running_server(folder, settings) as running:
            yield running, box
