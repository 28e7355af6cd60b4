"""What administrators see of the whole service: spending, state, and the audit log."""

import csv
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from svc import audit, cli
from svc.billing import spending, usage, wallet
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.admins import ask

CATALOG = """
[access]
models = ["builtin/*"]

[[groups]]
name = "research"
emails = ["*@research.example"]
"""
CHAT = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "hi"}]}
KINDS = tuple(spending.KINDS)


@pytest.fixture
async def service(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG) as service:
        yield service


async def spend(service: Service, email: str, group: str | None = None) -> tuple[str, int]:
    """An account with that address makes paid calls, in a session and by key: its id and the cost."""
    session = await service.sign_up(email)
    account_id, headers = session["user"]["id"], bearer(session["access_token"])
    await service.state["db"].write(
        partial(wallet.book, description="", now_seconds=service.clocks.now), account_id, 3_000_000
    )
    key = bearer((await service.make_key(headers))["key"])
    answers = [await ask(service, "POST", "/v1/chat/completions", each, **CHAT) for each in (headers, key, key)]
    await ask(service, "POST", "/v1/chat/completions", key, **{**CHAT, "model": "builtin/echo"})
    return account_id, sum(int(answer.headers["x-service-cost-micros"]) for answer in answers)


async def test_spending_equals_the_ledger_also_of_deleted_accounts(service: Service) -> None:
    admin = await service.bearer()
    (ada, ada_cost), (_, bob_cost) = (
        await spend(service, "ada@example.com"),
        await spend(service, "=bob@research.example"),
    )
    debits = await service.state["db"].read(
        lambda conn: conn.execute("SELECT -sum(amount_micros) FROM ledger WHERE model IS NOT NULL").fetchone()[0]
    )
    assert debits == ada_cost + bob_cost

    async def shown(by: str) -> dict[str, Any]:
        answer = (await ask(service, "GET", f"/admin/usage?month=2026-09&by={by}", admin)).json()
        names = ("requests", "input_tokens", "output_tokens", "cost_micros")
        assert {name: sum(row[name] for row in answer["data"]) for name in names} == {
            name: answer["total"][name] for name in names
        }
        assert (answer["total"]["cost_micros"], answer["total"]["requests"]) == (debits, 8)
        return {row["key"]: row["cost_micros"] for row in answer["data"]}

    assert await shown("user") == {"ada@example.com": ada_cost, "=bob@research.example": bob_cost}
    assert await shown("model") == {"builtin/assistant-paid": debits, "builtin/echo": 0}
    assert await shown("day") == {"2026-09-21": debits}
    assert len(await shown("key")) == 3 and len(await shown("group")) == 1
    csv_answer = await ask(service, "GET", "/admin/usage?by=user", {**admin, "accept": "text/csv"})
    assert csv_answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(csv_answer.text.splitlines()))
    assert {row["key"] for row in rows} == {"ada@example.com", "'=bob@research.example"}
    assert sum(int(row["cost_micros"]) for row in rows) == debits
    assert (await ask(service, "DELETE", f"/admin/users/{ada}", admin)).status_code == 204
    users = (await ask(service, "GET", "/admin/usage?by=user", admin)).json()
    assert users["total"]["cost_micros"] == debits and "ada@example.com" not in str(users)
    for wrong in ("month=2026-13", "month=x", "by=name"):
        assert (await ask(service, "GET", f"/admin/usage?{wrong}", admin)).status_code == 400


async def test_spending_by_user_and_model_in_a_range_of_days(service: Service) -> None:
    admin = await service.bearer()
    (_, first_cost), (bob, _) = await spend(service, "ada@example.com"), await spend(service, "bob@example.com")

    def move(tx: sqlite3.Connection) -> int:
        tx.execute("UPDATE usage_days SET day = '2026-09-22' WHERE account_id = ?", (bob,))
        return int(tx.execute("SELECT sum(cost_micros) FROM usage_days WHERE account_id = ?", (bob,)).fetchone()[0])

    await ask(service, "GET", "/admin/usage", admin)  # it stores the free calls
    second_cost = await service.state["db"].write(move)
    path = "/admin/usage?by=user,model"
    for days, costs in (
        ("from=2026-09-21&to=2026-09-22", {"ada@example.com": first_cost, "bob@example.com": second_cost}),
        ("to=2026-09-21", {"ada@example.com": first_cost}),
        ("from=2026-09-22&to=2026-09-22", {"bob@example.com": second_cost}),
        ("from=2026-09-23&to=2026-10-02", {}),
    ):
        found = (await ask(service, "GET", f"{path}&{days}", admin)).json()
        shown = {(row["user"], row["model"]): row["cost_micros"] for row in found["data"]}
        assert shown == {
            (user, model): cost
            for user, paid in costs.items()
            for model, cost in (("builtin/assistant-paid", paid), ("builtin/echo", 0))
        }
        assert found["total"]["cost_micros"] == sum(costs.values()) and found["month"] is None
        lines = (await ask(service, "GET", f"{path}&{days}", {**admin, "accept": "text/csv"})).text.splitlines()
        assert lines[0].startswith("user,model,requests,") and len(lines) == 1 + len(shown)
    for wrong in ("from=2026-09-22&to=2026-09-21", "from=x", "month=2026-09&to=2026-09-21", "by=user,user", "by=user,"):
        refused = await ask(service, "GET", f"/admin/usage?{wrong}", admin)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_value"), wrong


async def test_csv_of_many_users_is_whole_and_json_says_that_it_is_cut(service: Service) -> None:
    admin = await service.bearer()

    def fill(tx: sqlite3.Connection) -> None:
        for number in range(1_234):
            tx.execute(
                "INSERT INTO accounts (id, email, email_key, created_at) VALUES (?1, ?1, ?1, 1.0)", (f"u{number:05}",)
            )
            usage.add_call(tx, (f"u{number:05}", None, "m", "2026-09-21", ""), 3, 4, 5)

    await service.state["db"].write(fill)
    found = (await ask(service, "GET", "/admin/usage?by=user", admin)).json()
    assert (len(found["data"]), found["has_more"], found["total"]["cost_micros"]) == (1_000, True, 6_170)
    assert not (await ask(service, "GET", "/admin/usage?by=model", admin)).json()["has_more"]
    text = (await ask(service, "GET", "/admin/usage?by=user", {**admin, "accept": "text/csv"})).text
    lines = list(csv.DictReader(text.splitlines()))
    assert len({row["key"] for row in lines}) == len(lines) == 1_234
    assert sum(int(row["cost_micros"]) for row in lines) == 6_170


async def test_group_of_the_call_counts(service: Service) -> None:
    admin = await service.bearer()
    made = (await ask(service, "POST", "/admin/users", admin, email="ada@research.example")).json()
    token = made["invite_url"].partition("#")[2]
    await ask(service, "POST", "/auth/password-reset/confirm", {}, token=token, password=PASSWORD)
    session = (await ask(service, "POST", "/auth/login", {}, email="ada@research.example", password=PASSWORD)).json()
    headers = bearer(session["access_token"])
    for group in ("research", None):
        await ask(service, "PATCH", f"/admin/users/{made['id']}", admin, group=group)
        assert (
            await ask(service, "POST", "/v1/chat/completions", headers, model="builtin/echo", messages=CHAT["messages"])
        ).is_success
    groups = (await ask(service, "GET", "/admin/usage?by=group", admin)).json()["data"]
    assert {row["key"]: row["requests"] for row in groups} == {"research": 1, "(no group)": 1}


async def test_status_shows_work_money_providers_and_findings(service: Service) -> None:
    admin = await service.bearer()
    await spend(service, "ada@example.com")
    status = (await ask(service, "GET", "/admin/status", admin)).json()
    assert status["wallets"] == 2 and status["holds"] == 0 and 0 < status["balance_micros"] < 3_000_000
    assert status["gauges"]["svc_open_answers"] == 0 and status["gauges"]["svc_database_bytes"] > 0
    assert {"certificate", "disk", "backup", "payments"} <= {one["about"] for one in status["findings"]}
    assert status["last_backup_at"] is None and status["providers"] == [] and status["draining"] is False
    assert status["groups"] == ["research"]


async def test_log_lists_what_commands_did(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = await service.bearer()
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    bob = (await service.sign_up("bob@example.com"))["user"]["id"]
    for line in ("user admin bob@example.com on", "credit bob@example.com 2.50", "debit bob@example.com 1"):
        assert cli.main(line.split()) == 0
    listed = (await ask(service, "GET", "/admin/audit?limit=2", admin)).json()
    assert [(row["actor"], row["action"], row["subject"]) for row in listed["data"]] == [
        ("operator", "debit", bob),
        ("operator", "credit", bob),
    ]
    assert listed["data"][1]["details"] == {"email": "bob@example.com", "amount_micros": 2_500_000}
    after = (await ask(service, "GET", f"/admin/audit?after={listed['data'][1]['id']}", admin)).json()
    assert after["data"][0]["details"] == {"email": "bob@example.com", "admin": True} and not after["has_more"]


async def test_audit_log_is_filtered_by_action_actor_subject_and_day(service: Service) -> None:
    admin = await service.bearer()
    (me,) = (await ask(service, "GET", "/admin/users", admin)).json()["data"]
    bob = (await service.sign_up("bob@example.com"))["user"]["id"]
    now = service.clocks.now
    for days, actor, action, subject in (
        (-1, me["id"], "user.change", bob),
        (0, me["id"], "user.change", None),
        (0, "operator", "credit", bob),
        (1, "operator", "reload", None),
    ):
        await service.state["db"].write(audit.add, now + days * 86_400, actor, action, subject, {"text": "=1+1"})
    for query, actions in (
        ("", ["reload", "credit", "user.change", "user.change"]),
        ("action=user.change", ["user.change"] * 2),
        (f"actor={me['id']}", ["user.change"] * 2),
        (f"subject={bob}", ["credit", "user.change"]),
        (f"subject={bob}&actor=operator", ["credit"]),
        ("from=2026-09-21", ["reload", "credit", "user.change"]),
        ("to=2026-09-21", ["credit", "user.change", "user.change"]),
        ("from=2026-09-20&to=2026-09-20&action=user.change", ["user.change"]),
        ("from=2026-09-23", []),
    ):
        found = (await ask(service, "GET", f"/admin/audit?{query}", admin)).json()["data"]
        assert [row["action"] for row in found] == actions, query
        csv_answer = await ask(service, "GET", f"/admin/audit?limit=1&{query}", {**admin, "accept": "text/csv"})
        lines = list(csv.DictReader(csv_answer.text.splitlines()))
        assert [row["action"] for row in lines] == actions, "CSV is whole"
        assert [row["id"] for row in lines] == [row["id"] for row in found]
    first = (await ask(service, "GET", "/admin/audit?action=user.change&limit=1", admin)).json()
    second = (
        await ask(service, "GET", f"/admin/audit?action=user.change&after={first['data'][0]['id']}", admin)
    ).json()
    assert first["has_more"] and len(second["data"]) == 1 and not second["has_more"]
    for wrong in ("from=2026-02-30", "to=x", f"action={'x' * 101}", "after=x"):
        assert (await ask(service, "GET", f"/admin/audit?{wrong}", admin)).status_code == 400, wrong


async def test_csv_of_a_long_log_is_whole(service: Service) -> None:
    admin = await service.bearer()

    def fill(tx: sqlite3.Connection) -> None:
        for _ in range(2_345):
            audit.add(tx, service.clocks.now, audit.OPERATOR, "credit", "wallet", {"amount_micros": 1})

    await service.state["db"].write(fill)
    text = (await ask(service, "GET", "/admin/audit", {**admin, "accept": "text/csv"})).text
    assert len({row["id"] for row in csv.DictReader(text.splitlines())}) == 2_345
