"""The records of agent runs as rows: opened, ended once, and listed in pages that fit in memory."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from svc.agents import run_records
from svc.agents.run_records import RunOutcome
from svc.auth import accounts
from svc.content import projects
from svc.errors import ApiError
from svc.schema import SCHEMA

NOW = 1_790_000_000.0
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
STEP = {"type": "step", "run_id": "run_1", "seq": 4, "step": 2}
EVENTS = b'{"seq":5,"finish_reason":"stop","artifacts":[]}\n' + orjson.dumps(STEP)


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA foreign_keys = ON")
    conn.executescript(SCHEMA.read_text())
    yield conn
    conn.close()


def account(conn: sqlite3.Connection, email: str = "ada@example.com") -> str:
    return str(accounts.add_account(conn, email, None, None, NOW).id)


def add(conn: sqlite3.Connection, account_id: str, run_id: str = "run_1", goal: str = "a goal", **fields: Any) -> None:
    run = {"id": run_id, "goal": goal, "model": "builtin/script", "max_steps": 6, "project_id": None, **fields}
    run_records.add_run(conn, account_id, run, NOW)


def test_run_ends_once_with_its_reason(conn: sqlite3.Connection) -> None:
    ada = account(conn)
    add(conn, ada)
    assert run_records.as_json(run_records.TABLE.by_id(conn, ada, "run_1"))["status"] == "running"
    assert run_records.update_run(conn, ada, "run_1", RunOutcome("final", 2, USAGE, 7, output="done"), NOW + 1, EVENTS)
    assert not run_records.update_run(
        conn, ada, "run_1", RunOutcome("stopped", 3, USAGE, 9, reason="requested"), NOW + 2, b"{}"
    )
    shown = run_records.as_json(run_records.TABLE.by_id(conn, ada, "run_1"))
    assert (shown["status"], shown["output"], shown["steps"], shown["usage"], shown["cost_micros"]) == (
        "final",
        "done",
        2,
        USAGE,
        7,
    )
    step, last = orjson.loads(run_records.with_events(run_records.TABLE.by_id(conn, ada, "run_1")))["events"]
    own = {"output": "done", "finish_reason": "stop", "artifacts": []}
    assert step == STEP
    assert last == {"type": "final", "run_id": "run_1", "seq": 5, **own, "steps": 2, "usage": USAGE, "cost_micros": 7}
    assert run_records.end_interrupted_runs(conn, NOW) == 0


def test_run_left_open_by_a_crash_is_an_interrupted_error(conn: sqlite3.Connection) -> None:
    ada = account(conn)
    add(conn, ada)
    assert run_records.end_interrupted_runs(conn, NOW + 5) == 1
    shown = run_records.as_json(run_records.TABLE.by_id(conn, ada, "run_1"))
    assert (
        shown["status"] == "error"
        and shown["error"]["code"] == "interrupted"
        and shown["finished_at"] == "2026-09-21T14:13:25.000Z"
    )
    (last,) = orjson.loads(run_records.with_events(run_records.TABLE.by_id(conn, ada, "run_1")))[
        "events"
    ]  # also one of an older release
    assert (last["type"], last["seq"], last["error"]) == ("error", 1, shown["error"])


def test_progress_is_visible_during_a_run_and_kept_after_a_crash(conn: sqlite3.Connection) -> None:
    ada = account(conn)
    add(conn, ada)
    run_records.update_run(conn, ada, "run_1", RunOutcome("running", 2, USAGE, 7), NOW, EVENTS)
    run_records.update_run(
        conn, account(conn, "bob@example.com"), "run_1", RunOutcome("running", 3, USAGE, 9), NOW, b"{}"
    )
    shown = run_records.as_json(run_records.TABLE.by_id(conn, ada, "run_1"))
    assert (shown["status"], shown["steps"], shown["usage"], shown["cost_micros"]) == ("running", 2, USAGE, 7)
    assert run_records.end_interrupted_runs(conn, NOW + 5) == 1
    run_records.update_run(conn, ada, "run_1", RunOutcome("running", 4, USAGE, 11), NOW, b"{}")
    shown = run_records.as_json(run_records.TABLE.by_id(conn, ada, "run_1"))
    assert (shown["status"], shown["steps"], shown["usage"], shown["cost_micros"]) == ("error", 2, USAGE, 7)


def test_run_of_a_deleted_account_is_refused_like_its_token(conn: sqlite3.Connection) -> None:
    with pytest.raises(ApiError) as raised:
        add(conn, "user_gone")
    assert raised.value.code == "invalid_api_key"


def test_project_of_another_account_is_not_found(conn: sqlite3.Connection) -> None:
    ada, bob = account(conn), account(conn, "bob@example.com")
    theirs = projects.add_project(conn, bob, projects.NewProject("p"), NOW).id
    for project_id in (theirs, "proj_unknown"):
        with pytest.raises(ApiError) as raised:
            add(conn, ada, project_id=project_id)
        assert (raised.value.code, raised.value.error["param"]) == ("not_found", "project_id")


def test_page_of_large_runs_is_shorter_without_loss(conn: sqlite3.Connection) -> None:
    ada = account(conn)
    for number in range(9):
        add(conn, ada, f"run_{number}", goal="x" * 1_500_000)
    seen: list[str] = []
    while True:
        listed = run_records.TABLE.page(conn, ada, 100, seen[-1] if seen else None)
        assert sum(len(row["goal"]) for row in listed.items) <= 8_000_000
        seen += [row["id"] for row in listed.items]
        if not listed.has_more:
            break
    assert seen == [f"run_{number}" for number in range(8, -1, -1)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_page_has_more_if_rows_follow(conn: sqlite3.Connection, count: int) -> None:
    ada = account(conn)
    for number in range(count):
        add(conn, ada, f"run_{number}")
    listed = run_records.TABLE.page(conn, ada, 3, None)
    assert len(listed.items) == min(count, 3) and listed.has_more is (count > 3)


def test_list_shortens_long_goals_and_outputs(conn: sqlite3.Connection) -> None:
    ada = account(conn)
    add(conn, ada, goal="g" * 10_001)
    run_records.update_run(conn, ada, "run_1", RunOutcome("final", 1, USAGE, 0, output="o" * 10_000), NOW, EVENTS)
    row = run_records.TABLE.by_id(conn, ada, "run_1")
    listed = run_records.in_a_list(row)
    assert listed["goal"] == "g" * 9_999 + "\u2026" and listed["output"] == "o" * 10_000
    assert run_records.as_json(row) == {**listed, "goal": "g" * 10_001}
    assert [dict(shown).keys() for shown in run_records.TABLE.page(conn, ada, 9, None).items] == [
        dict(row).keys() - {"events", "account_id"}
    ]
