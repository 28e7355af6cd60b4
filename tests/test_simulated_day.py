"""A day of one process, under a clock that is moved by hours: limits, sessions, links and the use of each day."""

from collections import Counter
from typing import Any

from svc.billing import wallet
from tests.conftest import PASSWORD, Service, bearer
from tests.support.money import assert_exact

CHAT = "/v1/chat/completions"
ECHO = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
PAID = {**ECHO, "model": "builtin/assistant-paid"}
HOUR = 3600
MIDNIGHT = 1_790_035_200  # in UTC, 9 h 46 min after the clock of the tests begins


async def log_in(service: Service, email: str) -> dict[str, str]:
    answer = await service.client.post("/auth/login", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return bearer(answer.json()["access_token"])


async def usage(service: Service, headers: dict[str, str]) -> list[int]:
    """Requests by day, newest first."""
    answer = await service.client.get("/billing/usage", headers=headers)
    return [row["requests"] for row in answer.json()["data"]]


async def test_service_works_for_a_simulated_day(service: Service) -> None:
    clocks, began = service.clocks, service.clocks.now
    ada, _ = [await service.sign_up(f"{name}@example.com") for name in ("ada", "bob")]
    db = service.state["db"]
    await db.write(wallet.book, ada["user"]["id"], 1_000_000, description="", now_seconds=clocks.now)
    session = bearer(ada["access_token"])
    artifact: dict[str, Any] = (
        await service.client.post("/artifacts", json={"name": "n", "content": "x"}, headers=session)
    ).json()
    by_day: Counter[bool] = Counter()
    hours = (0.5, 1.5, 7.5, 8.5, 12, 24)
    for hour in hours:
        clocks.advance(began + hour * HOUR - clocks.now)
        own = await service.client.get("/user/me", headers=session)
        assert own.status_code == (200 if hour < 8 else 401), "a session has 8 hours"
        content = await service.client.get(artifact["content_url"])
        assert content.status_code == (200 if hour < 1 else 401), "a link to a content has one"
        today, other = await log_in(service, "ada@example.com"), await log_in(service, "bob@example.com")
        statuses = [(await service.client.post(CHAT, json=ECHO, headers=other)).status_code for _ in range(21)]
        assert statuses == [200] * 20 + [429], "each minute is a new window"
        by_day[clocks.now >= MIDNIGHT] += 20
        assert (await service.client.post(CHAT, json=PAID, headers=today)).status_code == 200
    later = sum(began + hour * HOUR >= MIDNIGHT for hour in hours)
    await service.state["engines"].usage.flush()
    found = [await usage(service, who) for who in (today, other)]
    assert found == [[later, len(hours) - later], [by_day[True], by_day[False]]]
    assert_exact(service.config.data_dir / "service.db")
