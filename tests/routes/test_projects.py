"""Projects through HTTP, and the rules that the schema holds for them."""

import re
from typing import Any

from tests.conftest import Service
from tests.support.cases import each

FIELDS = {"id", "name", "instructions", "max_planner_steps", "created_at", "updated_at"}


async def make_project(service: Service, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    answer = await service.client.post("/projects", json={"name": "a project", **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    project: dict[str, Any] = answer.json()
    return project


async def test_project_is_returned_as_created(service: Service) -> None:
    headers = await service.bearer()
    made = await make_project(
        service, headers, name=" Über 🙂 </script> ", instructions="Line\n\0\u2028", max_planner_steps=20
    )
    assert set(made) == FIELDS and re.fullmatch(r"proj_[0-9a-z]{26}", made["id"])
    assert (made["name"], made["instructions"], made["max_planner_steps"]) == (
        " Über 🙂 </script> ",
        "Line\n\0\u2028",
        20,
    )
    assert made["created_at"] == made["updated_at"] == "2026-09-21T14:13:20.000Z"
    assert (await service.client.get(f"/projects/{made['id']}", headers=headers)).json() == made
    listed = (await service.client.get("/projects", headers=headers)).json()
    assert listed == {"object": "list", "data": [made], "has_more": False}


@each("body", [{}, {"instructions": None, "max_planner_steps": None}])
async def test_only_the_name_is_required(service: Service, body: dict[str, Any]) -> None:
    made = await make_project(service, await service.bearer(), **body)
    assert (made["instructions"], made["max_planner_steps"]) == ("", None)


async def test_change_keeps_missing_fields_and_null_resets(service: Service) -> None:
    headers = await service.bearer()
    made = await make_project(service, headers, instructions="Be brief.", max_planner_steps=3)
    for changes in (
        {"name": "new"},
        {"instructions": "x"},
        {"max_planner_steps": 1},
        {"instructions": None, "max_planner_steps": None},
    ):
        service.clocks.advance(1)
        before = (await service.client.get(f"/projects/{made['id']}", headers=headers)).json()
        answer = await service.client.patch(f"/projects/{made['id']}", json=changes, headers=headers)
        expected = {**before, **changes, "instructions": changes.get("instructions", before["instructions"]) or ""}
        assert answer.json() == {**expected, "updated_at": answer.json()["updated_at"]}
        assert (
            before["created_at"] == answer.json()["created_at"] and answer.json()["updated_at"] > before["updated_at"]
        )
        assert (await service.client.get(f"/projects/{made['id']}", headers=headers)).json() == answer.json()


WRONG = [
    *[("name", value) for value in ("", " \n", "\u2003", 5, True, ["x"], {}, "a\nb", "a\0", "x" * 201)],
    *[("instructions", value) for value in (5, False, ["x"], {}, "x" * 100_001)],
    *[("max_planner_steps", value) for value in (0, 21, -1, 5.5, 1e300, True, "5", [], {}, 2**63, 2**64)],
]


async def test_wrong_value_is_400_and_changes_nothing(service: Service) -> None:
    headers = await service.bearer()
    made = await make_project(service, headers)
    for field, value in WRONG:
        for method, path in (("POST", "/projects"), ("PATCH", f"/projects/{made['id']}")):
            answer = await service.client.request(method, path, json={"name": "x", field: value}, headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", field), (field, value)
        assert (await service.client.get("/projects", headers=headers)).json()["data"] == [made], (field, value)


async def test_name_is_required_and_cannot_be_null(service: Service) -> None:
    headers = await service.bearer()
    made = await make_project(service, headers)
    answers = [
        await service.client.post("/projects", json={}, headers=headers),
        await service.client.post("/projects", json={"name": None}, headers=headers),
        await service.client.patch(f"/projects/{made['id']}", json={"name": None}, headers=headers),
    ]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in answers] == [(400, "missing_field")] * 3


async def test_page_has_20_items_by_default(service: Service) -> None:
    headers = await service.bearer()
    made = []
    for number in range(25):
        service.clocks.advance(1)
        made.insert(0, await make_project(service, headers, name=f"project {number}"))
    first = (await service.client.get("/projects", headers=headers)).json()
    assert (first["data"], first["has_more"]) == (made[:20], True)
    rest = (await service.client.get(f"/projects?after={made[19]['id']}", headers=headers)).json()
    assert (rest["data"], rest["has_more"]) == (made[20:], False)
    exact = (await service.client.get(f"/projects?limit=5&after={made[19]['id']}", headers=headers)).json()
    assert (exact["data"], exact["has_more"]) == (made[20:], False)
    last = (await service.client.get(f"/projects?after={made[24]['id']}", headers=headers)).json()
    assert (last["data"], last["has_more"]) == ([], False)
    assert len((await service.client.get("/projects?limit=1000", headers=headers)).json()["data"]) == 25
