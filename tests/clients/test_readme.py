"""The section "Use it with Codex and Claude Code" of README.md works as it is printed."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.clients.conftest import Lab
from tests.support.clients import environment, needed, npm_packages, run
from tests.support.pages import EXAMPLES

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]


async def test_readme_settings_for_coding_agents_work(lab: Lab, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = environment(lab.server, lab.person, home)
    env = {name: env[name] for name in ("HOME", "LANG", "KEY")}
    (home / ".codex").mkdir()
    address = ("https://127.0.0.1:8443", lab.server.base_url)
    (home / ".codex" / "config.toml").write_text(EXAMPLES["codex"].replace(*address))
    (tmp_path / "data").symlink_to(lab.server.data_dir)
    env["PATH"] = f"{needed(npm_packages)}/.bin:{os.environ['PATH']}"
    script = EXAMPLES["coding-agents"].replace(*address)
    output, shown = await asyncio.to_thread(run, ["bash", "-euo", "pipefail", "-c", script], env, tmp_path)
    assert output.count("84") >= 2
    assert "model: builtin/assistant" in shown and "doesn't recognize" not in output + shown
