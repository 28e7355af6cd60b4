"""`svc models …`: files are added, listed and removed in the folder that the service reads."""

import contextlib
import os
from pathlib import Path

import pytest

from svc import cli
from svc.commands import models
from svc.schema import command_connection, newest_schema
from tests.support.databases import prepare


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "models"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.gguf"
    path.write_bytes(b"GGUF" + bytes(5 * 1024 * 1024))
    return path


def test_added_file_is_listed_and_removed(folder: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "add", str(source)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"added {folder}/source.gguf. The model is local/source" and "100 %" in lines[-2]
    assert 2 <= len(lines) <= 12, "one line each 10 %"
    assert folder.stat().st_mode & 0o077 == 0 and (folder / "source.gguf").stat().st_mode & 0o077 == 0
    (folder / "bad.gguf").write_bytes(b"PK")
    assert cli.main(["models", "list"]) == 0
    assert capsys.readouterr().out == "bad.gguf\tis no GGUF file\nlocal/source\t5 MiB\tnot in use\n"
    assert cli.main(["models", "remove", "local/source"]) == 0
    assert not (folder / "source.gguf").exists()
    assert cli.main(["models", "remove", "source"]) == 1


def test_refusals_are_one_line(folder: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "add", str(source), "--name", "one"]) == 0
    for arguments in (
        [str(source), "--name", "one"],
        [str(source), "--name", "a/b"],
        [str(source), "--name", "two", "--sha256", "0" * 64],
        [str(source), "--name", "two", "--sha256", "x"],
        ["/nowhere.gguf"],
        ["https://user:secret@example.com/x.gguf"],
    ):
        capsys.readouterr()
        assert cli.main(["models", "add", *arguments]) == 1
        error = capsys.readouterr().err
        assert error.startswith("svc: not added: ") and error.count("\n") == 1 and "secret" not in error
    assert cli.main(["models", "add", str(source), "--name", "one", "--replace"]) == 0
    assert sorted(path.name for path in folder.glob("*.gguf")) == ["one.gguf"]


def test_folder_of_the_catalog_is_used(
    folder: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "catalog.toml").write_text(f"[local]\nfolder = '{tmp_path / 'elsewhere'}'\n")
    monkeypatch.setenv("SVC_CATALOG", str(tmp_path / "catalog.toml"))
    assert cli.main(["models", "add", str(source)]) == 0
    assert (tmp_path / "elsewhere" / "source.gguf").exists() and not folder.exists()


def test_changes_are_in_the_audit_log(folder: Path, source: Path) -> None:
    database = folder.parent / "service.db"
    folder.parent.mkdir()
    prepare(database, *newest_schema())
    assert cli.main(["models", "add", str(source)]) == 0
    assert cli.main(["models", "remove", "source"]) == 0
    with command_connection(database) as tx:
        rows = [tuple(row) for row in tx.execute("SELECT actor, action, details FROM audit ORDER BY seq")]
    assert rows == [
        ("operator", "model.add", '{"file":"source.gguf"}'),
        ("operator", "model.remove", '{"file":"source.gguf"}'),
    ]


def test_without_the_extra_the_command_says_what_to_install(
    folder: Path, source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "is_installed", lambda config: False)
    assert cli.main(["models", "add", str(source)]) == 0
    assert "svc[local]" in capsys.readouterr().out


def test_terminal_shows_a_bar(folder: Path, source: Path) -> None:
    shown, terminal = os.openpty()
    with open(terminal, "w") as out, contextlib.redirect_stdout(out):
        assert cli.main(["models", "add", str(source)]) == 0
    text = b""
    while b"local/source" not in text:  # the last line
        text += os.read(shown, 10_000)
    os.close(shown)
    first, *_, last = text.decode().split("\r[")[1:]
    assert first == f"{'#' * 7:<40}] 1 of 5 MiB, 19 %"
    assert last.startswith(f"{'#' * 40}] 5 of 5 MiB, 100 %\r\n")


def test_suggested_models_have_address_size_licence_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "suggest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert all("GB" in line and "memory" in line and "licence" in line for line in lines[::2])
    assert all(line.strip().startswith("svc models add https://") and line.endswith(".gguf") for line in lines[1::2])
