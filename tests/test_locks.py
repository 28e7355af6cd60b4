"""The lock files: every dependency of pyproject.toml stands there at one version within its bounds, with hashes."""

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.cases import each

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
SERVICE = PROJECT["dependencies"] + EXTRAS["voice"] + EXTRAS["documents"] + EXTRAS["local"]
LOCKS = {
    "svc/requirements.lock": SERVICE,
    "tests/requirements.lock": SERVICE + EXTRAS["test"],
    "tests/clients/requirements.lock": (ROOT / "tests/clients/requirements.in").read_text().split(),
}


ENTRY = re.compile(r"^([a-z0-9-]+)==(\S+)[^\n]*((?:\n    --hash=sha256:[0-9a-f]{64}[^\n]*)*)", re.MULTILINE)


def locked(lock: str) -> dict[str, str]:
    """The versions in a lock file; fails for one without a hash."""
    entries = ENTRY.findall((ROOT / lock).read_text())
    assert entries and all(hashes for _, _, hashes in entries)
    return {name: version for name, version, _ in entries}


@each("lock", LOCKS)
def test_lock_file_has_each_dependency_within_its_bounds(lock: str) -> None:
    versions = locked(lock)
    for text in LOCKS[lock]:
        wanted = Requirement(text)
        name = wanted.name.lower().replace("_", "-")
        assert name in versions, f"{name} is not locked: run the command in tests/README.md"
        assert wanted.specifier.contains(versions[name]), f"{name} {versions[name]} is not {wanted.specifier}"


def test_tests_lock_the_same_runtime_versions() -> None:
    assert locked("svc/requirements.lock").items() <= locked("tests/requirements.lock").items()


def test_clients_lock_the_same_versions_as_the_tests() -> None:
    shared, ours = locked("tests/requirements.lock"), locked("tests/clients/requirements.lock")
    assert {name: version for name, version in ours.items() if shared.get(name, version) != version} == {}


def test_every_npm_package_is_locked_at_one_version_with_its_hash() -> None:
    wanted = json.loads((ROOT / "tests/clients/package.json").read_text())["devDependencies"]
    packages = json.loads((ROOT / "tests/clients/package-lock.json").read_text())["packages"]
    own = packages.pop("")
    assert own["devDependencies"] == wanted == {name: packages[f"node_modules/{name}"]["version"] for name in wanted}
    assert all("integrity" in package for package in packages.values())
