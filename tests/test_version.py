"""One version, wherever it is told: of the project, on the command line and over HTTP."""

import tomllib

from svc.version import VERSION
from tests.conftest import Service
from tests.support.server import ROOT


def test_the_version_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


async def test_health_and_metrics_tell_the_version(service: Service) -> None:
    assert (await service.client.get("/healthz")).json() == {"status": "ok", "version": VERSION}
    assert f'svc_build_info{{version="{VERSION}",' in (await service.client.get("/metrics")).text
