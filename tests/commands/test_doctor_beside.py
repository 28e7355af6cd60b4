"""`svc doctor` beside a running service: the service's settings are examined, not those of the shell."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from svc.certificates import tls_files
from svc.config import Config, from_environ
from svc.server.status import settings
from tests.conftest import Clocks, serving
from tests.support.people import command_on


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the service's settings name, a catalog and a certificate, and with a secret
    file.
    """
    files = tls_files(tmp_path, ["ai.example", "127.0.0.1", "localhost"], 1_790_000_000.0)
    files.cert.rename(tmp_path / "cert.pem")
    files.key.rename(tmp_path / "key.pem")
    (tmp_path / "token").write_text("a token of the operator's")
    (tmp_path / "catalog.toml").write_text(
        '[[providers]]\nname = "closed"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "CLOSED_KEY"\n'
        '[[providers.models]]\nid = "m"\n'
    )
    return tmp_path


async def test_the_settings_of_the_running_service_are_examined(folder: Path, config: Config, clocks: Clocks) -> None:
    environ = {
        "SVC_DATA_DIR": str(folder / "data"),
        "SVC_DISCOVER": "0",
        "SVC_BASE_URL": "https://ai.example",
        "SVC_TLS": "files",
        "SVC_TLS_CERT": str(folder / "cert.pem"),
        "SVC_TLS_KEY": str(folder / "key.pem"),
        "SVC_CATALOG": str(folder / "catalog.toml"),
        "CLOSED_KEY": "sk-closed-0123456789",
        "SVC_METRICS_TOKEN_FILE": str(folder / "token"),
        "SVC_SMTP_URL": "smtp://127.0.0.1:9",
    }

    async def doctor(**settings: str) -> str:
        """Print what the command says, in a shell with these settings only."""
        done = await asyncio.to_thread(command_on, folder / "data", "doctor", SVC_DISCOVER="0", **settings)
        return str(done.stdout)

    async with serving(replace(from_environ(environ), log_fd=config.log_fd), clocks):
        told = await doctor()
        lines = told.splitlines()
        assert lines[0] == "ok    settings: those of the running server are examined"
        assert any(line.startswith("ok    certificate: it is for ai.example, ") for line in lines)
        assert any(line.startswith("wrong provider closed: it cannot be reached") for line in lines)
        assert any(line.startswith("wrong mail:") for line in lines), (
            "the service has a mail server, this shell has none"
        )
        assert not any("switched off" in line for line in lines), "the service has a token for its metrics"
        assert "sk-closed" not in told and "token of" not in told
        other = await doctor(SVC_BASE_URL="https://other.example", SVC_SIGNUP="closed")
        differ = [line for line in other.splitlines() if line.startswith("look  settings")]
        assert len(differ) == 1 and "SVC_BASE_URL, SVC_SIGNUP of this command" in differ[0]
        assert "ok    certificate: it is for ai.example, " in other
    stopped = await doctor()
    assert "running server" not in stopped and "there is no mail server" in stopped


def test_service_tells_its_paths_as_absolute_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    told = settings(from_environ({"SVC_CATALOG": "catalog.toml"}))["environ"]
    assert told["SVC_CATALOG"] == str(folder / "catalog.toml"), "a command has another working directory"
