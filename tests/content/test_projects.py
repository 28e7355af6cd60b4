"""What projects may be, and what becomes of them: the rules of the schema."""

import sqlite3
from typing import Any

from tests.conftest import Service, bearer


async def make_project(service: Service, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    answer = await service.client.post("/projects", json={"name": "a project", **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    project: dict[str, Any] = answer.json()
    return project


async def test_deleted_project_is_not_found(service: Service) -> None:
    headers = await service.bearer()
    made, stays = await make_project(service, headers), await make_project(service, headers)
    answer = await service.client.delete(f"/projects/{made['id']}", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    for method in ("GET", "PATCH", "DELETE"):
        answer = await service.client.request(method, f"/projects/{made['id']}", json={}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await service.client.get("/projects", headers=headers)).json()["data"] == [stays]


async def test_contents_are_detached_from_a_project_in_short_transactions(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    going, staying = await make_project(service, headers), await make_project(service, headers)
    db, commits = service.state["db"], [0]

    def fill(tx: sqlite3.Connection) -> None:
        numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)"
        values = "SELECT 'a' || n, ?, iif(n % 2, ?, ?), 1, 1"
        for table, columns, more in (
            ("conversations", "created_at, updated_at", ""),
            ("runs", "created_at, finished_at, status, output, goal, model, max_steps", ", 'final', 'x', 'x', 'm', 1"),
        ):
            columns = f"id, account_id, project_id, {columns}"
            query = f"{numbers} INSERT INTO {table} ({columns}) {values}{more} FROM numbers"
            tx.execute(query, (account_id, going["id"], staying["id"]))
        tx.set_trace_callback(lambda sql: commits.append(1) if sql == "COMMIT" else None)

    await db.write(fill)
    assert (await service.client.delete(f"/projects/{going['id']}", headers=headers)).status_code == 204
    assert sum(commits) > 5
    for table in ("conversations", "runs"):
        found = f"SELECT project_id, count(*) FROM {table} GROUP BY 1 ORDER BY 1"
        rows = await db.read(lambda conn, query: [tuple(row) for row in conn.execute(query)], found)
        assert rows == [(None, 10_000), (staying["id"], 10_000)]


async def test_longest_values_are_accepted(service: Service) -> None:
    name, instructions = "🙂" * 200, "ü" * 100_000
    made = await make_project(
        service, await service.bearer(), name=name, instructions=instructions, max_planner_steps=1
    )
    assert (made["name"], made["instructions"]) == (name, instructions)
