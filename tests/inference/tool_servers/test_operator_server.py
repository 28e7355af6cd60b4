"""Who may use a tool server of the operator."""

from dataclasses import replace

from svc.groups import Group
from svc.inference.tool_servers.operator_server import OperatorServer

SERVER = OperatorServer("wiki", "http://x/", {"authorization": "Bearer a-secret"}, None, None, 0, None)


def test_server_is_for_all_accounts_or_for_its_groups() -> None:
    assert SERVER.allows(None) and SERVER.allows(Group("staff"))
    narrowed = replace(SERVER, groups=("staff", "lab"))
    assert narrowed.allows(Group("lab")) and not narrowed.allows(Group("guests"))
    assert not narrowed.allows(Group()) and not narrowed.allows(None)


def test_settings_differ_with_what_an_operator_changes_and_hold_no_secret() -> None:
    others = (
        replace(SERVER, url="http://y/"),
        replace(SERVER, groups=("a",)),
        replace(SERVER, tools=frozenset("a")),
        replace(SERVER, micros_per_call=1),
        replace(SERVER, ask=True),
        replace(SERVER, headers={}),
    )
    assert len({SERVER.settings, *(other.settings for other in others)}) == 7 and "a-secret" not in SERVER.settings
