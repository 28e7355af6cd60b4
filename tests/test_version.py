"""One version everywhere: of the project, on the command line and over HTTP."""

import re
import tomllib

from svc.version import VERSION
from tests.conftest import Service
from tests.support.server import ROOT


def test_project_version_is_that_of_the_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"] and "version" not in project["project"]
    place = project["tool"]["hatch"]["version"]
    found = re.search(place["pattern"], (ROOT / place["path"]).read_text())
    assert found is not None and found["version"] == VERSION


async def test_health_and_metrics_have_the_version(service: Service) -> None:
    assert (await service.client.get("/healthz")).json() == {"status": "ok", "version": VERSION}
    assert f'svc_build_info{{version="{VERSION}",' in (await service.client.get("/metrics")).text
