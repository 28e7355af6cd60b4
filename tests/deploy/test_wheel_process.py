"""The README's first steps work with the wheel in a new environment."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from svc.version import VERSION
from tests.deploy.test_wheel import wheel
from tests.support.pages import EXAMPLES
from tests.support.server import RunningServer, running_server_sync

__all__ = ["wheel"]  # a fixture
# `running_server` starts this environment's Python; it becomes what its arguments say.
BECOME = ("-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])")


@dataclass
class Installed:
    """The environment `folder` in which the wheel is installed."""

    folder: Path

    def run(self, name: str, *arguments: str) -> str:
        """Return the output of a program of the environment, started from an empty folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "PYTHON"))}
        command = [self.folder / "bin" / name, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=env, check=True, capture_output=True, text=True, timeout=30
        ).stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A new environment with the wheel alone; it sees the dependencies of the tests' environment, which come after its
    own.
    """
    folder = tmp_path_factory.mktemp("installed") / "environment"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, timeout=60)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return Installed(folder)


@pytest.fixture
def server(installed: Installed, tmp_path: Path) -> Iterator[RunningServer]:
    program = (*BECOME, str(installed.folder / "bin" / "svc"), "serve")
    with running_server_sync(tmp_path, {"PYTHONPATH": ""}, program, cwd=tmp_path) as running:
        yield running


def test_first_steps_of_the_readme_work_with_the_wheel(
    server: RunningServer, installed: Installed, tmp_path: Path
) -> None:
    where = installed.run("python", "-c", "import app, svc; print(app.__file__, svc.__file__)")
    assert where.count(str(installed.folder)) == 2
    script = EXAMPLES["curl"].replace("https://127.0.0.1:8443", server.base_url)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert (
        '"id":"builtin/assistant"' in done.stdout and "84" in done.stdout and done.stdout.endswith("data: [DONE]\n\n")
    )
    page = httpx.get(server.base_url, verify=server.tls or False)
    (style,) = re.findall(r'href="(/static/[\w./-]+\.css)"', page.text)[:1]
    assert httpx.get(server.base_url + style, verify=server.tls or False).status_code == 200


def test_commands_of_the_wheel_work(installed: Installed) -> None:
    assert VERSION in installed.run("svc", "version")
    assert '"/v1/chat/completions"' in installed.run("svc", "openapi")
