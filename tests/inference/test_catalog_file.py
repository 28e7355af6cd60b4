"""The catalog file: a wrong entry of a group stops the start. test_catalog.py reads its models and providers."""

from pathlib import Path

import pytest

from svc.errors import StartError
from svc.inference.catalog_file import read_file
from tests.support.cases import each


@each(
    ("text", "told"),
    [
        ("[access]\nemails = []", "access: 'emails' is not known"),
        ("[access]\nmodels = 'x'", "access.models must be a list"),
        ("[access]\nmodels = ['']", r"access.models\[0\] must be a string"),
        ("access = 1", "access must be an object"),
        ("[groups]\nname = 'a'", "groups must be a list"),
        ("[[groups]]\nmodels = []", "group 1.name is required"),
        ("[[groups]]\nname = 'A b'", "group 1.name must be a slug"),
        ("[[groups]]\nname = 'auto'", "the name 'auto' is reserved"),
        ("[[groups]]\nname = 'a'\n[[groups]]\nname = 'a'", "group 2: the name 'a' is used twice"),
        ("[[groups]]\nname = 'a'\nallowance_micros = -1", "group a.allowance_micros must be an integer from 0"),
        ("[[groups]]\nname = 'a'\nallowance_micros = 0.5", "group a.allowance_micros must be an integer"),
        ("[[groups]]\nname = 'a'\nchats_per_minute = 0", "group a.chats_per_minute must be an integer from 1"),
        ("[[groups]]\nname = 'a'\nown_providers = 1", "group a.own_providers must be true or false"),
        (
            "[[groups]]\nname = 'a'\nemails = ['research.example']",
            r"group a.emails\[0\] must be a pattern of addresses",
        ),
        ("[[groups]]\nname = 'a'\nallowance = 1", "group a: 'allowance' is not known"),
    ],
)
def test_wrong_group_stops_the_start_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    with pytest.raises(StartError, match=told):
        read_file(path, {})


def test_catalog_without_groups_restricts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text("default_model = 'builtin/echo'")
    assert read_file(path, {}).groups is None
    path.write_text("[[groups]]\nname = 'a'")
    groups = read_file(path, {}).groups
    assert groups is not None and groups.of(None) is groups.of("gone") is groups.access
    everything = (groups.access.allows("any/model"), groups.access.own_providers, groups.access.allowance_micros)
    assert everything == (True, True, 0) and not groups.access.has("ada@example.com")
