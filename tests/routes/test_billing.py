"""The wallet as its owner reads it through HTTP."""

import dataclasses
import itertools
import sqlite3
from typing import Any

from svc.billing import wallet
from svc.billing.usage import add_call
from svc.config import Config
from svc.ids import day_of, new_id
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each

DAY_SECONDS = 86_400


async def funded(service: Service, micros: int = 10_000_000) -> tuple[str, dict[str, str]]:
    session = await service.sign_up()
    account_id: str = session["user"]["id"]
    await service.state["db"].write(
        wallet.book, account_id, micros, description="Added funds", now_seconds=service.clocks.now
    )
    return account_id, bearer(session["access_token"])


def spend(tx: sqlite3.Connection, account_id: str, micros: int, now_seconds: float, key_id: str | None = None) -> None:
    hold_id = new_id("hold", now_seconds)
    wallet.hold(tx, account_id, hold_id, micros, now_seconds, key_id)
    details: dict[str, Any] = {"model": "builtin/assistant-paid", "input_tokens": 12, "output_tokens": 34}
    details |= {"request_id": "req_1", "key_id": key_id}
    wallet.settle(tx, account_id, hold_id, micros, **details, now_seconds=now_seconds)


NO_ALLOWANCE = {"allowance_micros": 0, "allowance_due_micros": 0, "allowance_renews_at": None}
NO_LIMIT = {"monthly_limit_micros": None, "spent_this_month_micros": 0}


async def test_new_account_has_an_empty_wallet(service: Service) -> None:
    answer = await service.client.get("/billing/account", headers=await service.bearer())
    assert answer.json() == {
        "wallet_balance_micros": 0,
        "held_micros": 0,
        "available_micros": 0,
        **NO_ALLOWANCE,
        **NO_LIMIT,
        "stored_bytes": 0,
        "limit_bytes": 1024**3,
        "tier": "free",
        "currency": "usd",
        "payments": "sandbox",
        "key_with_least_left": None,
        "contact": None,
    }


async def test_session_and_key_see_balance_held_and_available(service: Service) -> None:
    account_id, headers = await funded(service)
    await service.state["db"].write(wallet.hold, account_id, "hold_1", 4_000_000, service.clocks.now)
    key = await service.make_key(headers)
    for who in (headers, bearer(key["key"])):
        assert (await service.client.get("/billing/account", headers=who)).json() == {
            "wallet_balance_micros": 10_000_000,
            "held_micros": 4_000_000,
            "available_micros": 6_000_000,
            **NO_ALLOWANCE,
            **NO_LIMIT,
            "stored_bytes": 261,  # the key, whose name is "a key"
            "limit_bytes": 1024**3,
            "tier": "pro",
            "currency": "usd",
            "payments": "sandbox",
            "key_with_least_left": None,
            "contact": None,
        }


async def test_wallet_shows_the_key_of_whose_limit_the_least_is_left(service: Service) -> None:
    account_id, headers = await funded(service)
    _, others = await funded(service)
    keys = []
    for who, limit_micros in ((headers, None), (headers, 900), (headers, 500), (others, 0)):
        body = {"name": "a key", "monthly_limit_micros": limit_micros}
        keys.append((await service.client.post("/user/api-keys", headers=who, json=body)).json())
    free, wide, tight, other = keys

    async def shown(who: dict[str, Any]) -> tuple[str, int]:
        answer = await service.client.get("/billing/account", headers=bearer(who["key"]))
        key = answer.json()["key_with_least_left"]
        return key["id"], key["spent_this_month_micros"]

    assert await shown(free) == (tight["id"], 0) and await shown(other) == (other["id"], 0)
    await service.state["db"].write(spend, account_id, 850, service.clocks.now, wide["id"])
    assert await shown(free) == (wide["id"], 850)
    service.clocks.now += 40 * DAY_SECONDS
    assert await shown(free) == (tight["id"], 0), "nothing is spent in a new month"


async def test_ledger_has_pages_newest_first(service: Service) -> None:
    account_id, headers = await funded(service)
    for number in range(1, 25):
        await service.state["db"].write(spend, account_id, number, service.clocks.now)  # all in one millisecond
    seen: list[dict[str, Any]] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        after = {"after": seen[-1]["id"]} if seen else {}
        page = (await service.client.get("/billing/ledger", params={"limit": 10, **after}, headers=headers)).json()
        assert page["object"] == "list" and len(page["data"]) in (10, 5)
        seen += page["data"]
    assert [row["amount_micros"] for row in seen] == [-number for number in range(24, 0, -1)] + [10_000_000]
    assert all(
        newer["balance_after_micros"] - older["balance_after_micros"] == newer["amount_micros"]
        for newer, older in itertools.pairwise(seen)
    )
    assert seen[-1] == {
        "id": seen[-1]["id"],
        "kind": "credit",
        "amount_micros": 10_000_000,
        "balance_after_micros": 10_000_000,
        "description": "Added funds",
        "reference": None,
        "model": None,
        "input_tokens": None,
        "output_tokens": None,
        "cached_input_tokens": None,
        "request_id": None,
        "key_id": None,
        "created_at": "2026-09-21T14:13:20.000Z",
    }
    assert len((await service.client.get("/billing/ledger", headers=headers)).json()["data"]) == 20


async def test_usage_counts_by_day_and_model(service: Service) -> None:
    account_id, headers = await funded(service)
    other, _ = await funded(service)
    now = service.clocks.now
    for days_ago in (0, 0, 1, 29, 30, 89, 90):
        day = day_of(now - days_ago * DAY_SECONDS)
        await service.state["db"].write(add_call, (account_id, None, "builtin/echo", day, ""), 3, 4, 5)
    await service.state["db"].write(add_call, (other, None, "builtin/echo", day_of(now), ""), 1, 1, 1)
    for query, days in (("", 3), ("?days=1", 1), ("?days=2", 2), ("?days=31", 4), ("?days=90", 5)):
        answer = (await service.client.get(f"/billing/usage{query}", headers=headers)).json()
        assert (answer["object"], answer["has_more"], len(answer["data"])) == ("list", False, days)
    today, yesterday = (await service.client.get("/billing/usage?days=2", headers=headers)).json()["data"]
    assert today == {
        "id": "2026-09-21:builtin/echo",
        "day": "2026-09-21",
        "model": "builtin/echo",
        "requests": 2,
        "input_tokens": 6,
        "output_tokens": 8,
        "cost_micros": 10,
        "cached_input_tokens": 0,
    }
    assert yesterday["day"] == "2026-09-20"


@each("by", ["model", "key"])
async def test_usage_continues_after_each_of_its_rows(service: Service, by: str) -> None:
    """tests/billing/test_usage.py has the length of a page."""
    account_id, headers = await funded(service)
    stranger_id, _ = await funded(service)
    names = ["", "a/b:c", "é🙂 &?", "m"]
    for day in (day_of(service.clocks.now - days_ago * DAY_SECONDS) for days_ago in range(4)):
        for name in names:
            used = (None, name or "builtin/echo") if by == "model" else (name or None, "builtin/echo")
            await service.state["db"].write(add_call, (account_id, *used, day, ""), 1, 1, 1)
            await service.state["db"].write(add_call, (account_id, *used, day, ""), 1, 1, 1)
            await service.state["db"].write(add_call, (stranger_id, None, "theirs", day, ""), 1, 1, 1)

    async def page(after: str | None) -> dict[str, Any]:
        params = {"by": by, **({"after": after} if after else {})}
        found: dict[str, Any] = (await service.client.get("/billing/usage", params=params, headers=headers)).json()
        return found

    rows = (await page(None))["data"]
    for place, row in enumerate(rows, 1):
        assert (await page(row["id"]))["data"] == rows[place:]
    assert len({row["id"] for row in rows}) == len(rows) == 16 and {row["requests"] for row in rows} == {2}
    days = [row["day"] for row in rows]
    assert days == sorted(days, reverse=True)
    for wrong in ("x", " ", "2026-09-21", "2026-09-21:theirs", ":", "9999:", "2026-09-21:\0", rows[0]["id"] + "x"):
        answer = await page(wrong)
        assert (answer["error"]["code"], answer["error"]["param"]) == ("invalid_value", "after"), wrong


@each("days", ["0", "91", "-1", "1.5", "x", "", "99999999999999999999"])
async def test_days_outside_1_to_90_is_400(service: Service, days: str) -> None:
    answer = await service.client.get("/billing/usage", params={"days": days}, headers=await service.bearer())
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "days"


async def test_token_cannot_add_funds(service: Service) -> None:
    _, headers = await funded(service)
    for path in ("/billing/account", "/billing/ledger", "/billing/usage"):
        assert (await service.client.post(path, json={"amount_micros": 5_000_000}, headers=headers)).status_code == 405
    service.client.cookies.clear()
    answer = await service.client.post(
        "/checkout", data={"amount": "25"}, headers={**headers, "origin": service.config.base_url}
    )
    assert answer.status_code == 401


async def test_start_releases_holds_of_a_crash(service: Service, config: Config, clocks: Clocks) -> None:
    account_id, headers = await funded(service)
    await service.state["db"].write(wallet.hold, account_id, "hold_1", 4_000_000, clocks.now)
    copy = config.data_dir.parent / "copy"  # what the disk has while the server still runs
    copy.mkdir()
    for name in ("service.db-wal", "service.db", "master.key"):  # the log first: it may be emptied into the file now
        (copy / name).write_bytes((config.data_dir / name).read_bytes())
    async with serving(dataclasses.replace(config, data_dir=copy), clocks) as revived:
        account = (await revived.client.get("/billing/account", headers=headers)).json()
    assert (account["held_micros"], account["available_micros"]) == (0, 10_000_000)


async def test_usage_by_key_and_spent_micros_are_exact(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    key, other = await service.make_key(headers, "one"), await service.make_key(headers, "other")
    now = service.clocks.now
    await service.state["db"].write(wallet.book, account_id, 10_000_000, description="", now_seconds=now)

    def spend(tx: sqlite3.Connection, number: int, key_id: str | None, model: str, micros: int) -> None:
        wallet.hold(tx, account_id, f"hold_{number}", micros, now)
        counts = {"model": model, "input_tokens": 1, "output_tokens": 2}
        wallet.settle(
            tx, account_id, f"hold_{number}", micros, **counts, request_id="r", key_id=key_id, now_seconds=now
        )
        add_call(tx, (account_id, key_id, model, day_of(now), ""), 1, 2, micros)

    paid = [(key["id"], "a", 7), (key["id"], "b", 11), (None, "a", 13), (other["id"], "a", 17), (key["id"], "a", 19)]
    for number, (key_id, model, micros) in enumerate(paid):
        await service.state["db"].write(spend, number, key_id, model, micros)
    rows = (await service.client.get("/billing/usage?by=key", headers=headers)).json()["data"]
    assert {row["key_id"]: (row["requests"], row["cost_micros"]) for row in rows} == {
        None: (1, 13),
        key["id"]: (3, 37),
        other["id"]: (1, 17),
    }
    by_model = (await service.client.get("/billing/usage", headers=headers)).json()["data"]
    assert {row["model"]: row["cost_micros"] for row in by_model} == {"a": 56, "b": 11}
    listed = (await service.client.get("/user/api-keys", headers=headers)).json()
    assert {row["id"]: row["spent_micros"] for row in listed} == {key["id"]: 37, other["id"]: 17}
    await service.client.delete(f"/user/api-keys/{key['id']}", headers=headers)
    rows = (await service.client.get("/billing/usage?by=key", headers=headers)).json()["data"]
    assert sum(row["cost_micros"] for row in rows) == 67, "a deleted key's usage stays"
    wrong = await service.client.get("/billing/usage?by=day", headers=headers)
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "by")
