"""Saved prompts in an export of this service."""

from tests.conftest import Service
from tests.content.test_imports import filled
from tests.routes.test_imports import imported


async def test_prompts_come_back_once_and_undo_removes_them(service: Service) -> None:
    _, archive = await filled(service)
    headers = await service.bearer()

    async def texts() -> dict[str, str]:
        found = (await service.client.get("/prompts", headers=headers)).json()["data"]
        return {one["name"]: one["text"] for one in found}

    assert (await service.client.post("/prompts", json={"name": "Mine", "text": "x"}, headers=headers)).is_success
    reports = [await imported(service, headers, archive) for _ in range(2)]
    assert await texts() == {"Mine": "x", "0 Shorten": "Say it in few {{words}}."}
    assert [report["counts"]["failed"] for report in reports] == [0, 0]
    assert (await service.client.delete(f"/user/import/{reports[0]['id']}", headers=headers)).status_code == 204
    assert await texts() == {"Mine": "x"}
    await service.client.post("/prompts", json={"name": "0 Shorten", "text": "Mine, too"}, headers=headers)
    report = await imported(service, headers, archive)
    assert (await texts())["0 Shorten"] == "Mine, too", "what is there stays"
    (failed,) = [entry for entry in report["conversations"] if entry["status"] == "failed"]
    assert failed["title"] == "0 Shorten" and "a prompt with this name" in failed["reason"]
