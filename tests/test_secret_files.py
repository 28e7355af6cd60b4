"""Secrets in files (svc/config.py): which files are accepted, and that no error quotes their content."""

import os
from pathlib import Path

import pytest

from svc.config import SECRET_FILE_BYTES, with_secret_files
from svc.errors import StartError
from tests.support.cases import each

SECRET = "hunter2-hunter2-hunter2"


def read(environ: dict[str, str]) -> dict[str, str]:
    return with_secret_files(environ)


@each("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n", SECRET + " " * (SECRET_FILE_BYTES - len(SECRET))])
def test_content_is_the_setting_without_the_newline(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_bytes(content.encode())
    environ = {
        "SVC_METRICS_TOKEN_FILE": f" {tmp_path / 'token'} ",
        "SVC_METRICS_TOKEN": " ",
        "SVC_PORT_FILE": "x",
        "HOME": "/",
    }
    assert read(environ) == {"SVC_METRICS_TOKEN": SECRET, "SVC_PORT_FILE": "x", "HOME": "/"}


def test_unnamed_file_is_not_set() -> None:
    assert read({"SVC_METRICS_TOKEN_FILE": " ", "SVC_METRICS_TOKEN": SECRET}) == {"SVC_METRICS_TOKEN": SECRET}


def test_setting_and_file_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    with pytest.raises(StartError, match="SVC_METRICS_TOKEN and SVC_METRICS_TOKEN_FILE are both set") as caught:
        read({"SVC_METRICS_TOKEN_FILE": str(tmp_path / "token"), "SVC_METRICS_TOKEN": SECRET})
    assert "hunter2" not in str(caught.value)


@each(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (SECRET.encode() + b"\xff", "UTF-8"),
        (SECRET.encode() * 1000, f"more than {SECRET_FILE_BYTES} bytes"),
    ],
)
def test_file_without_a_secret_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(StartError, match=f"^SVC_METRICS_TOKEN_FILE: .*{reason}") as caught:
        read({"SVC_METRICS_TOKEN_FILE": str(tmp_path / "token")})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("path", ["nowhere", ".", "pipe", "x" * 300, "loop", "/dev/zero", "a\0b", SECRET])
def test_path_without_a_file_is_refused_at_once(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StartError, match=r"^SVC_METRICS_TOKEN_FILE: ") as caught:
        read({"SVC_METRICS_TOKEN_FILE": str(tmp_path / path)})
    assert "hunter2" not in str(caught.value)


def test_unreadable_file_is_refused() -> None:
    with pytest.raises(StartError, match=r"^SVC_METRICS_TOKEN_FILE: the file cannot be read: "):
        read({"SVC_METRICS_TOKEN_FILE": "/proc/self/mem"})  # even root cannot read its first byte
