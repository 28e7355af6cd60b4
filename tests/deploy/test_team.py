"""The chapter "For a team" of svc/OPERATING.md: what its settings, catalog and commands mean."""

import shlex
from pathlib import Path

import pytest

from svc import cli
from svc.config import from_environ
from svc.inference.catalog_file import read_file
from tests.support.pages import EXAMPLES

SETTINGS = dict(line.split("=", 1) for line in EXAMPLES["team-settings"].splitlines())
CATALOG = EXAMPLES["team-catalog"]
ADMIN = "grace@corp.example"
RESEARCHERS = [f"r{number}@research.corp.example" for number in range(8)]
OFFICE = [f"o{number}@corp.example" for number in range(11)]
ALLOWANCES = {"research": 20_000_000, "office": 5_000_000}
# A chat has 7 + 5 tokens at the model server.
COSTS = {"lab/small": 6, "lab/large": 96}


def test_settings_of_the_example_are_valid_and_close_the_sign_up(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    config = from_environ({**SETTINGS, "SVC_CATALOG": str(tmp_path / "catalog.toml")})
    assert (config.base_url, config.signup) == ("https://ai.corp.example", "closed")
    assert [provider.name for provider in config.identity_providers] == ["corp"]


def test_groups_of_the_example_have_their_people_models_and_allowances(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    found = read_file(tmp_path / "catalog.toml", {})
    models, groups = found[0], found.groups
    assert groups is not None
    assert {model.id for model in models} == set(COSTS)
    for people, name in ((RESEARCHERS, "research"), (OFFICE, "office")):
        assert {groups.matching(email) for email in people} == {name}
        assert groups.of(name).allowance_micros == ALLOWANCES[name]
        assert groups.of(name).allows("lab/small") and groups.of(name).allows("lab/large") == (name == "research")
    assert groups.matching("eve@elsewhere.example") is None and not groups.of("office").own_providers
    assert not groups.of(None).allows("lab/large")


@pytest.mark.parametrize("line", [*EXAMPLES["team-commands"].splitlines(), *EXAMPLES["team-month"].splitlines()])
def test_commands_of_the_example_exist(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a data folder: only the words are checked."""
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "none"))
    program, *arguments = shlex.split(line)
    assert program == "svc" and cli.main(arguments) in (0, 1)
    assert "usage" not in capsys.readouterr().err
