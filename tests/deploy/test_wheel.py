"""The wheel contains everything that the service needs, and the README's first steps work in a new environment."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from svc.version import VERSION
from tests.support.pages import EXAMPLES
from tests.support.server import ROOT, RunningServer, running_server_sync

# `running_server` starts this environment's Python; it becomes what its arguments say.
BECOME = ("-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True, timeout=60
    )
    (made,) = folder.glob("*.whl")
    return made


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


def test_wheel_has_exactly_the_files_of_the_service(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "svc", "app.py", "schema.sql"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {"app.py", "schema.sql", "svc/static/index.html", "svc/deploy/svc.service"} <= files
    assert files == {name for name in listed.stdout.split() if (ROOT / name).exists()}


def test_wheel_lists_its_dependencies(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
        entries = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    needed = {str(Requirement(text)) for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text}
    assert needed == {str(Requirement(text)) for text in project["dependencies"]}
    assert set(project["optional-dependencies"]) == set(metadata.get_all("Provides-Extra", []))
    assert "svc = svc.cli:main" in entries


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
