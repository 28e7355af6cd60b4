"""Codex and Claude Code behind a model server that misbehaves: they end, nothing stays held, and the
ledger is exact.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.clients.conftest import Lab, Services, served
from tests.clients.test_claude_code_process import claude
from tests.clients.test_codex_process import codex

pytestmark = [pytest.mark.soak, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]
ANSWERED = [
    "no-ids",
    "no-usage",
    "odd-usage",
    "usage-always",
    "no-finish",
    "no-done",
    "two-done",
    "comments",
    "crlf",
    "cr-only",
    "bytewise",
    "json-for-stream",
    "stream-for-json",
    "gzip",
    "drip-50ms",
    "odd-fields",
    "late-usage-300ms",
    "until-close",
    "refuses-reasoning_effort",
    "strict",
]
BROKEN = [
    "error-mid-stream",
    "cut-after-1-chunks",
    "cut-after-4-chunks",
    "reset-after-2-chunks",
    "broken-json",
    "mid-event",
    "mid-line",
]
REFUSED = [
    "length",
    "content_filter",
    "status-400",
    "status-401",
    "status-429",
    "status-503",
    "html-200",
    "error-200",
    "too-large",
    "refuses-tools",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    models: dict[str, list[str]] = {name: [] for name in ANSWERED + BROKEN + REFUSED}
    async with served(tmp_path_factory.mktemp("clients"), models) as running:
        yield running


@pytest.mark.parametrize("model", ANSWERED)
async def test_agents_get_the_answer(lab: Lab, tmp_path: Path, model: str) -> None:
    assert (await codex(lab, tmp_path / "codex", f"lab/{model}", "Hello"))[0] == "Hello, world!"
    assert (await claude(lab, tmp_path / "claude", f"lab/{model}", "Hello")).endswith("Hello, world!")
    assert await lab.spent() > 0


@pytest.mark.parametrize("model", BROKEN)
async def test_codex_shows_an_error_and_claude_code_retries(lab: Lab, tmp_path: Path, model: str) -> None:
    assert (await codex(lab, tmp_path / "codex", f"lab/{model}", "Hello", status=1))[0] == ""
    assert (await claude(lab, tmp_path / "claude", f"lab/{model}", "Hello")).endswith("Hello, world!")
    await lab.spent()


@pytest.mark.parametrize("model", REFUSED)
async def test_agents_show_the_error(lab: Lab, tmp_path: Path, model: str) -> None:
    assert (await codex(lab, tmp_path / "codex", f"lab/{model}", "Hello", status=1))[0] == ""
    await claude(lab, tmp_path / "claude", f"lab/{model}", "Hello", status=1)
    assert bool(await lab.spent()) == (model in ("length", "content_filter"))
