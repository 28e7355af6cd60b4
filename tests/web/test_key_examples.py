"""The settings for programs on the page "API keys": each runs as it is shown."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.support.browser import WITH_BROWSER, signed_in
from tests.support.clients import needed, npm_packages
from tests.support.server import RunningServer, running_server

pytestmark = [*WITH_BROWSER, pytest.mark.timeout(400)]
STARTED_BY = {"example.py": "python3 example.py", "example.mjs": "node example.mjs"}
Blocks = dict[str, str]  # by title: a file, or "Terminal"
Examples = tuple[dict[str, Blocks], dict[str, Blocks], str]


async def examples_in(part: Locator) -> dict[str, Blocks]:
    """The blocks of each tab."""
    await expect(part.get_by_role("tab").first).to_be_visible()
    found = {}
    for tab in await part.get_by_role("tab").all():
        await tab.click()
        panel = part.get_by_role("tabpanel")
        titles = await panel.locator("p:has(+ .example)").all_inner_texts()
        found[await tab.inner_text()] = dict(zip(titles, await panel.locator("code").all_inner_texts(), strict=True))
    return found


def run_example(blocks: Blocks, folder: Path, path: str) -> str:
    """Do in `folder` what the example says, and return what it prints."""
    (folder / ".codex").mkdir(parents=True)
    for title, code in blocks.items():
        if title != "Terminal":
            (folder / title.replace("~/", "")).write_text(code)
    lines = [blocks["Terminal"], *(STARTED_BY[title] for title in blocks if title in STARTED_BY)]
    env = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-euc", "\n".join(lines)],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def examples(server: RunningServer, browser: Browser) -> Examples:
    """The examples before there is a key, those with a new key, and that key."""
    async with signed_in(browser, server, "/#/keys") as page:
        shown = await examples_in(page.locator("main"))
        await page.get_by_role("button", name="New key").first.click()
        await page.get_by_label("Name").fill("my laptop")
        await page.get_by_role("button", name="Create key").click()
        key = await page.locator(".secret code").inner_text()
        return shown, await examples_in(page.get_by_role("dialog")), key


async def run_examples(examples: dict[str, Blocks], folder: Path, names: set[str], path: str) -> None:
    assert names <= examples.keys()
    outputs = await asyncio.gather(
        *(asyncio.to_thread(run_example, examples[name], folder / name, path) for name in sorted(names))
    )
    assert [name for name, output in zip(sorted(names), outputs, strict=True) if "84" not in output] == []


async def test_examples_for_curl_and_python_run_as_shown(examples: Examples, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    await run_examples(examples[1], tmp_path, {"curl", "OpenAI Python", "Anthropic Python"}, path)


@pytest.mark.slow
async def test_examples_for_coding_agents_and_javascript_run_as_shown(examples: Examples, tmp_path: Path) -> None:
    packages = needed(npm_packages)
    (tmp_path / "node_modules").symlink_to(packages)
    names = {"Codex", "Claude Code", "OpenAI JS", "Anthropic JS"}
    await run_examples(examples[1], tmp_path, names, f"{packages}/.bin:/usr/local/bin:/usr/bin:/bin")


async def test_page_shows_the_same_examples_without_a_key(examples: Examples) -> None:
    shown, with_key, key = examples
    assert str(shown).replace("YOUR_KEY", key) == str(with_key) and key not in str(shown)


@pytest.mark.slow
async def test_only_a_local_certificate_is_named(
    examples: Examples, server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    assert str(server.ca) in str(examples[0])
    tls = server.data_dir / "tls"
    files = {"SVC_TLS": "files", "SVC_TLS_CERT": str(tls / "cert.pem"), "SVC_TLS_KEY": str(tls / "key.pem")}
    async with running_server(tmp_path, files) as trusted:
        trusted.ca = server.ca
        async with signed_in(browser, trusted, "/#/keys") as page:
            assert "CERT" not in str(await examples_in(page.locator("main"))).upper()
            await expect(page.locator("main")).not_to_contain_text("certificate")


CATALOG = """
default_model = "lab/small"
[[providers]]
name = "lab"
base_url = "http://127.0.0.1:9/v1"
[[providers.models]]
id = "small"
{context_length}
"""


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [8192, None])
async def test_coding_agents_get_the_context_length_of_the_model_or_none(
    browser: Browser, tmp_path: Path, tokens: int | None
) -> None:
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(CATALOG.format(context_length=f"context_length = {tokens}" if tokens else ""))
    async with (
        running_server(tmp_path, {"SVC_CATALOG": str(catalog)}) as server,
        signed_in(browser, server, "/#/keys") as page,
    ):
        shown = await examples_in(page.locator("main"))
    assert 'model = "lab/small"' in shown["Codex"]["~/.codex/config.toml"]
    texts = (shown["Codex"]["~/.codex/config.toml"], shown["Claude Code"]["Terminal"])
    for text, name in zip(texts, ("model_context_window = ", "CLAUDE_CODE_MAX_CONTEXT_TOKENS="), strict=True):
        assert f"{name}{tokens} #" in text if tokens else name not in text
