"""Files of projects in imports. tests/content/test_imports.py has the round trip."""

from tests.conftest import Service
from tests.content.test_imports import exported, filled
from tests.routes.test_imports import imported
from tests.support import exports


async def test_files_of_projects_are_read_again_and_undo_removes_those_that_came_back(service: Service) -> None:
    _, archive = await filled(service)
    other = await service.bearer()
    await imported(service, other, archive)
    (project,) = (await service.client.get("/projects", headers=other)).json()["data"]
    path = f"/projects/{project['id']}/files"
    await exported(service, other)
    before = (await service.client.get(path, headers=other)).json()["data"]
    assert [(one["name"], one["status"]) for one in before] == [("a.txt", "ready"), ("c.txt", "failed")]
    assert (await service.client.delete(f"{path}/{before[0]['artifact_id']}", headers=other)).status_code == 204
    report = await imported(service, other, archive)
    after = (await service.client.get(path, headers=other)).json()["data"]
    assert [one["name"] for one in after] == ["c.txt", "a.txt"]
    assert (await service.client.delete(f"/user/import/{report['id']}", headers=other)).status_code == 204
    left = (await service.client.get(path, headers=other)).json()["data"]
    assert [one["name"] for one in left] == ["c.txt"]
    listed = (await service.client.get("/artifacts", headers=other)).json()["data"]
    assert len(listed) == 3, "they are those of the first import"


async def test_documents_of_a_project_of_claude_are_its_files(service: Service) -> None:
    headers = await service.bearer()
    await imported(service, headers, exports.claude())
    (project,) = (await service.client.get("/projects", headers=headers)).json()["data"]
    files = (await service.client.get(f"/projects/{project['id']}/files", headers=headers)).json()["data"]
    listed = await service.client.get(f"/artifacts?project_id={project['id']}", headers=headers)
    assert [one["artifact_id"] for one in files] == [one["id"] for one in listed.json()["data"]] != []
