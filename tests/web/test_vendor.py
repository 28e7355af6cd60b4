"""The vendored libraries are those that the manifests name."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.vendor import MANIFEST, PACKAGES, PAGE, TESTS


@pytest.mark.parametrize("folder", [PAGE, TESTS])
def test_vendored_files_match_their_hashes(folder: Path) -> None:
    facts = json.loads((folder / MANIFEST).read_text())
    told = {f"{fact['name']}/{name}": value for fact in facts for name, value in fact["sha256"].items()}
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    there = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert there == told
    assert [(fact["name"], fact["version"]) for fact in facts] == [
        (package.name, package.version) for package in PACKAGES if package.folder == folder
    ]
    assert all(fact["licence"] and (folder / fact["name"] / "LICENSE").stat().st_size > 500 for fact in facts)
