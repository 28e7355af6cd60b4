"""The wheel contains everything that the service needs, and lists what it depends on."""

import subprocess
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from tests.support.server import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(made)


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
