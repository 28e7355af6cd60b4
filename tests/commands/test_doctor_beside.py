"""`svc doctor` beside a running server: the server's settings are examined, not those of the shell."""

from pathlib import Path

import pytest

from svc.certificates import tls_files
from tests.support.people import command
from tests.support.server import running_server_sync


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the server's settings name by relative paths, a catalog and a certificate, and with a secret
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


def test_the_settings_of_the_running_server_are_examined(folder: Path) -> None:
    env = {
        "SVC_BASE_URL": "https://ai.example",
        "SVC_TLS": "files",
        "SVC_TLS_CERT": "cert.pem",
        "SVC_TLS_KEY": "key.pem",
        "SVC_CATALOG": "catalog.toml",
        "CLOSED_KEY": "sk-closed-0123456789",
        "SVC_METRICS_TOKEN_FILE": "token",
        "SVC_SMTP_URL": "smtp://127.0.0.1:9",
        "PYTHONPATH": str(Path(__file__).parent.parent.parent),
    }
    with running_server_sync(folder, env, cwd=folder) as server:
        told = command(server, "doctor", SVC_DISCOVER="0", SVC_BASE_URL="")
        lines = told.stdout.splitlines()
        assert lines[0] == "ok    settings: those of the running server are examined"
        assert any(line.startswith("ok    certificate: it is for ai.example, ") for line in lines)
        assert any(line.startswith("wrong provider closed: it cannot be reached") for line in lines)
        assert any(line.startswith("wrong mail:") for line in lines), (
            "the server has a mail server, this shell has none"
        )
        assert not any("switched off" in line for line in lines), "the server has a token for its metrics"
        assert "sk-closed" not in told.stdout and "token of" not in told.stdout
        other = command(server, "doctor", SVC_DISCOVER="0", SVC_BASE_URL="https://other.example", SVC_SIGNUP="closed")
        differ = [line for line in other.stdout.splitlines() if line.startswith("look  settings")]
        assert len(differ) == 1 and "SVC_BASE_URL, SVC_SIGNUP of this command" in differ[0]
        assert "ok    certificate: it is for ai.example, " in other.stdout
    stopped = command(server, "doctor", SVC_DISCOVER="0", SVC_BASE_URL="")
    assert "running server" not in stopped.stdout and "there is no mail server" in stopped.stdout
