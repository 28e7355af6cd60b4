"""Saved prompts through HTTP: own ones, their import, and those that administrators share with groups."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc import quota
from svc.config import Config
from svc.content import prompts
from svc.deletion.slices import begin_deletion
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.admins import ask, log_of

CATALOG = """
[access]
models = ["*"]
[[groups]]
name = "research"
"""


async def make(
    service: Service, headers: dict[str, str], name: str = "Translate", text: str = "Into {{language}}:"
) -> Any:
    answer = await ask(service, "POST", "/prompts", headers, name=name, text=text)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def names(service: Service, headers: dict[str, str], path: str = "/prompts?limit=100") -> list[str]:
    return [one["name"] for one in (await ask(service, "GET", path, headers)).json()["data"]]


async def stored_bytes(service: Service, headers: dict[str, str]) -> int:
    found: int = (await ask(service, "GET", "/billing/account", headers)).json()["stored_bytes"]
    return found


async def test_prompt_is_returned_as_created(service: Service) -> None:
    headers = await service.bearer()
    made = await make(service, headers, "Über 🙂 </script>", " {{a b}}\n\0\u2028")
    assert set(made) == {"id", "name", "text", "created_at", "updated_at"}
    assert re.fullmatch(r"prm_[0-9a-z]{26}", made["id"])
    assert (made["name"], made["text"]) == ("Über 🙂 </script>", " {{a b}}\n\0\u2028")
    assert (await ask(service, "GET", f"/prompts/{made['id']}", headers)).json() == made
    assert (await ask(service, "GET", "/prompts", headers)).json()["data"] == [made]


async def test_change_keeps_missing_fields(service: Service) -> None:
    headers = await service.bearer()
    made = await make(service, headers)
    path = f"/prompts/{made['id']}"
    for changes in ({"name": "new"}, {"text": "x"}, {"name": "n", "text": "y"}):
        service.clocks.advance(1)
        before = (await ask(service, "GET", path, headers)).json()
        changed = (await ask(service, "PATCH", path, headers, **changes)).json()
        assert changed == {**before, **changes, "updated_at": changed["updated_at"]}
        assert changed["updated_at"] > before["updated_at"]
        assert (await ask(service, "GET", path, headers)).json() == changed
    assert (await service.client.patch(path, json={}, headers=headers)).json() == changed


WRONG = [
    *[("name", value) for value in ("", " ", "a\nb", "x" * 101, 5, [])],
    *[("text", value) for value in ("", " \n", "x" * 8_001, 5, {})],
]


async def test_wrong_value_is_400_and_changes_nothing(service: Service) -> None:
    headers = await service.bearer()
    made = await make(service, headers)
    for field, value in WRONG:
        for method, path, body in (
            ("POST", "/prompts", {"name": "x", "text": "x", field: value}),
            ("PATCH", f"/prompts/{made['id']}", {field: value}),
            (
                "POST",
                "/prompts/import",
                {"prompts": [{"name": "y", "text": "y"}, {"name": "x", "text": "x", field: value}]},
            ),
        ):
            answer = await ask(service, method, path, headers, **body)
            param = f"prompts[1].{field}" if path.endswith("import") else field
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), (field, value)
        assert (await ask(service, "GET", "/prompts", headers)).json()["data"] == [made], (field, value)


async def test_name_is_used_once_in_an_account(service: Service) -> None:
    """So a repeated request stores nothing twice."""
    headers, other = await service.bearer(), await service.bearer()
    made, second = await make(service, headers), await make(service, headers, "Shorten", "x")
    for method, path in (("POST", "/prompts"), ("PATCH", f"/prompts/{second['id']}")):
        answer = await ask(service, method, path, headers, name="Translate", text="other")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "name_taken")
        assert answer.json()["error"]["param"] == "name"
    assert (await ask(service, "GET", "/prompts", headers)).json()["data"] == [second, made]
    await make(service, other)


async def test_prompts_count_as_stored_bytes_until_they_are_deleted(service: Service) -> None:
    headers = await service.bearer()
    before = await stored_bytes(service, headers)
    made = await make(service, headers, "ü", "ö" * 10)
    assert await stored_bytes(service, headers) == before + 256 + 22
    await ask(service, "PATCH", f"/prompts/{made['id']}", headers, text="x")
    assert await stored_bytes(service, headers) == before + 256 + 3
    assert (await ask(service, "DELETE", f"/prompts/{made['id']}", headers)).status_code == 204
    assert await stored_bytes(service, headers) == before
    assert (await ask(service, "GET", f"/prompts/{made['id']}", headers)).status_code == 404


async def test_prompt_that_finds_no_room_is_not_stored(service: Service) -> None:
    headers = await service.bearer()
    made = await make(service, headers, "a", "x")
    limit = await stored_bytes(service, headers)
    await service.state["db"].write(quota.set_limit, limit + 300)
    more = {"prompts": [{"name": "b", "text": "x"}, {"name": "c", "text": "x" * 100}]}
    for method, path, body in (
        ("POST", "/prompts", {"name": "b", "text": "x" * 100}),
        ("PATCH", f"/prompts/{made['id']}", {"text": "x" * 400}),
        ("POST", "/prompts/import", more),
    ):
        answer = await ask(service, method, path, headers, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "quota_exceeded"), path
    assert (await ask(service, "GET", "/prompts", headers)).json()["data"] == [made]


async def test_import_skips_names_that_exist_and_can_be_repeated(service: Service) -> None:
    headers = await service.bearer()
    made = await make(service, headers)
    file = [{"name": name, "text": "new", "id": "ignored"} for name in ("Shorten", "Translate", "Tone", "Tone")]
    answer = await ask(service, "POST", "/prompts/import", headers, prompts=file)
    assert (answer.status_code, answer.json()) == (200, {"imported": 2, "skipped": ["Translate", "Tone"]})
    assert await names(service, headers) == ["Tone", "Shorten", "Translate"]
    assert (await ask(service, "GET", f"/prompts/{made['id']}", headers)).json() == made
    again = await ask(service, "POST", "/prompts/import", headers, prompts=file)
    assert again.json()["imported"] == 0 and len(await names(service, headers)) == 3


async def test_import_takes_what_the_list_returns(service: Service) -> None:
    headers, other = await service.bearer(), await service.bearer()
    for number in range(3):
        await make(service, headers, f"p{number}", f"text {number}")
    listed = (await ask(service, "GET", "/prompts", headers)).json()["data"]
    assert (await ask(service, "POST", "/prompts/import", other, prompts=listed)).json()["imported"] == 3
    found = (await ask(service, "GET", "/prompts", other)).json()["data"]
    assert {(one["name"], one["text"]) for one in found} == {(one["name"], one["text"]) for one in listed}


async def test_account_has_at_most_500_prompts(service: Service) -> None:
    headers = await service.bearer()
    file = [{"name": f"p{number}", "text": "x"} for number in range(prompts.MOST)]
    assert (await ask(service, "POST", "/prompts/import", headers, prompts=file)).json()["imported"] == prompts.MOST
    answer = await ask(service, "POST", "/prompts", headers, name="one more", text="x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "quota_exceeded")
    assert "500" in answer.json()["error"]["message"]
    again = await ask(service, "POST", "/prompts/import", headers, prompts=file)
    assert again.json()["imported"] == 0, "a name that exists is skipped in a full account, too"
    more = await ask(service, "POST", "/prompts/import", headers, prompts=[*file[:10], {"name": "new", "text": "x"}])
    assert more.status_code == 413
    too_many = await ask(service, "POST", "/prompts/import", headers, prompts=[*file, file[0]])
    assert (too_many.status_code, too_many.json()["error"]["param"]) == (400, "prompts")


# --- shared with groups


@pytest.fixture
async def team(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG) as service:
        yield service


TONE = {"name": "Tone", "text": "As our handbook says."}
LAB = {"name": "Lab", "text": "{{sample}}"}


def shared(group: str | None, *prompts: dict[str, str]) -> list[dict[str, Any]]:
    return [{"group": group, **prompt} for prompt in prompts]


async def test_shared_prompts_reach_their_group_and_everyone(team: Service) -> None:
    admin, bob = await team.bearer(), await team.bearer()  # the first account is an administrator
    ada = bearer((await team.sign_up("ada@research.example"))["access_token"])
    ada_id = (await ask(team, "GET", "/user/me", ada)).json()["id"]
    await ask(team, "PATCH", f"/admin/users/{ada_id}", admin, group="research")
    for group, listed in ((None, [TONE]), ("research", [LAB])):
        answer = await ask(team, "PUT", "/admin/prompts", admin, group=group, prompts=listed)
        assert answer.status_code == 200, answer.text
    everything = [*shared("research", LAB), *shared(None, TONE)]
    assert answer.json()["data"] == everything
    assert (await ask(team, "GET", "/admin/prompts", admin)).json() == answer.json()
    for headers, expected in ((ada, everything), (bob, shared(None, TONE)), (admin, shared(None, TONE))):
        assert (await ask(team, "GET", "/prompts/shared", headers)).json() == {"object": "list", "data": expected}
        assert (await ask(team, "GET", "/prompts", headers)).json()["data"] == []


async def test_only_administrators_change_shared_prompts(team: Service) -> None:
    admin, bob = await team.bearer(), await team.bearer()
    key = bearer((await team.make_key(admin))["key"])
    for headers, status in ((bob, 404), (key, 403), ({}, 401)):
        assert (await ask(team, "PUT", "/admin/prompts", headers, group=None, prompts=[TONE])).status_code == status
        assert (await ask(team, "GET", "/admin/prompts", headers)).status_code == status
    assert await names(team, admin, "/prompts/shared") == []
    assert (await ask(team, "GET", "/prompts/shared", key)).status_code == 200


async def test_list_replaces_that_of_its_group_only_and_is_audited(team: Service) -> None:
    admin = await team.bearer()
    for group, listed in ((None, [TONE]), ("research", [LAB, TONE]), ("research", [TONE]), (None, [])):
        answer = await ask(team, "PUT", "/admin/prompts", admin, group=group, prompts=listed)
    assert answer.json()["data"] == shared("research", TONE)
    rows = [details["prompts"] for action, details in await log_of(team, admin) if action == "prompts.share"]
    assert rows == [[], ["Tone"], ["Lab", "Tone"], ["Tone"]]


WRONG_LISTS: list[tuple[dict[str, Any], int, str]] = [
    ({"group": "nobody", "prompts": [TONE]}, 400, "invalid_value"),
    ({"group": "Not a slug", "prompts": [TONE]}, 400, "invalid_value"),
    ({"group": None}, 400, "missing_field"),
    ({"prompts": [TONE, TONE]}, 409, "name_taken"),
    ({"prompts": [{"name": f"p{number}", "text": "x"} for number in range(101)]}, 400, "invalid_value"),
]


async def test_wrong_list_changes_nothing(team: Service) -> None:
    admin = await team.bearer()
    assert (await ask(team, "PUT", "/admin/prompts", admin, prompts=[LAB])).status_code == 200
    for body, status, code in WRONG_LISTS:
        answer = await ask(team, "PUT", "/admin/prompts", admin, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), body
        assert (await ask(team, "GET", "/prompts/shared", admin)).json()["data"] == shared(None, LAB)


async def test_prompts_of_a_group_that_is_gone_can_be_deleted(team: Service) -> None:
    admin = await team.bearer()
    assert (await ask(team, "PUT", "/admin/prompts", admin, group="research", prompts=[LAB])).status_code == 200
    catalog = team.state["models"].catalog
    catalog.groups = catalog.groups._replace(by_name={})
    assert (await ask(team, "GET", "/admin/prompts", admin)).json()["data"] == shared("research", LAB)
    assert (await ask(team, "PUT", "/admin/prompts", admin, group="research", prompts=[LAB])).status_code == 400
    assert (await ask(team, "PUT", "/admin/prompts", admin, group="research", prompts=[])).json()["data"] == []


async def test_prompts_stay_when_the_administrator_is_deleted(team: Service) -> None:
    first, second = await team.sign_up(), await team.bearer()
    admin = bearer(first["access_token"])
    await ask(team, "PUT", "/admin/prompts", admin, prompts=[TONE])
    await team.state["db"].write(begin_deletion, first["user"]["id"], 1.0, "operator")
    assert await names(team, second, "/prompts/shared") == ["Tone"]
