"""The chapter "For a team" of svc/OPERATING.md, played from an empty folder with 20 people, over the end of a month."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.test_team import ADMIN, ALLOWANCES, CATALOG, COSTS, OFFICE, RESEARCHERS, SETTINGS
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact
from tests.support.oidc_provider import oidc_provider, visit
from tests.support.pages import EXAMPLES
from tests.support.people import Person, command, with_key
from tests.support.server import ROOT, RunningServer, running_server

pytestmark = pytest.mark.slow
PROGRAM = ROOT / "tests" / "support" / "moved_clock_app.py"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with oidc_provider(tmp_path_factory.mktemp("provider")) as issuer:
        yield issuer


async def run(server: RunningServer, line: str, status: int = 0, **env: str) -> str:
    """Run a line of the chapter beside the server."""
    program, *arguments = line.split()
    assert program == "svc"
    done = await asyncio.to_thread(partial(command, server, *arguments, **env))
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


async def signed_in(server: RunningServer, issuer: str, email: str) -> httpx.Response:
    """Sign in at the identity provider, and return the answer with the session."""
    user = {"email": email, "email_verified": True, "name": email.partition("@")[0]}
    async with httpx.AsyncClient(trust_env=False, verify=False) as outside, server.client() as browser:
        (await outside.put(f"{issuer}/users/{email}", json=user)).raise_for_status()
        [provider] = (await browser.get("/auth/oauth")).json()["data"]
        _, fragment = await visit(browser, provider["url"], {"sub": email})
        return await browser.post("/auth/oauth/session", json=fragment)


async def join(server: RunningServer, issuer: str, email: str) -> Person:
    session = await signed_in(server, issuer, email)
    assert session.status_code == 200, session.text
    async with server.client() as client:
        return await with_key(client, email, session.json()["access_token"])


class Team:
    """What the team spends, counted beside the service."""

    def __init__(self, server: RunningServer) -> None:
        self.client = server.client()
        self.spent: Counter[str] = Counter()  # micros by address, in this month

    async def chat(self, person: Person, model: str) -> int:
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
        answer = await self.client.post("/v1/chat/completions", json=body, headers=person.headers)
        if answer.status_code == 200:
            assert int(answer.headers["x-service-cost-micros"]) == COSTS[model]
            self.spent[person.email] += COSTS[model]
        return answer.status_code

    async def wallet(self, person: Person) -> dict[str, Any]:
        answer = await self.client.get("/billing/account", headers=person.headers)
        assert answer.status_code == 200
        return dict(answer.json())

    async def usage(self, admin: dict[str, str], month: str, by: str) -> dict[str, int]:
        answer = await self.client.get("/admin/usage", params={"month": month, "by": by}, headers=admin)
        assert answer.status_code == 200, answer.text
        found = {row["key"]: row["cost_micros"] for row in answer.json()["data"] if row["cost_micros"]}
        assert answer.json()["total"]["cost_micros"] == sum(found.values())
        return found


async def test_the_example_of_a_team_works_over_the_end_of_a_month(tmp_path: Path, issuer: str) -> None:
    clock, file = tmp_path / "clock", tmp_path / "catalog.toml"
    clock.write_text("0")
    async with ModelServer(models=("small", "large")) as lab:
        catalog = CATALOG.replace("http://10.0.0.5:8000/v1", lab.base_url)
        file.write_text(catalog)
        settings = {name: value for name, value in SETTINGS.items() if name != "SVC_BASE_URL"}
        settings |= {"SVC_CATALOG": str(file), "SVC_OAUTH_CORP_ISSUER": issuer}
        env = {**settings, "CLOCK": str(clock), "PYTHONPATH": str(ROOT)}
        async with running_server(tmp_path, env, command=(PROGRAM,)) as server:
            add, admin, doctor = EXAMPLES["team-commands"].splitlines()
            password = (await run(server, add)).partition("password: ")[2].strip()
            await run(server, admin)
            assert "corp" in await run(server, doctor, **settings)
            await play(server, issuer, password, file, clock, settings)


async def play(
    server: RunningServer, issuer: str, password: str, file: Path, clock: Path, settings: dict[str, str]
) -> None:
    reload, report, check = EXAMPLES["team-month"].splitlines()
    team = Team(server)
    outsider = await signed_in(server, issuer, "eve@elsewhere.example")
    assert outsider.status_code == 400
    people = await asyncio.gather(*(join(server, issuer, email) for email in (*RESEARCHERS, *OFFICE)))
    researchers, office = people[: len(RESEARCHERS)], people[len(RESEARCHERS) :]

    log_in = await team.client.post("/auth/login", json={"email": ADMIN, "password": password})
    grace = {"authorization": f"Bearer {log_in.json()['access_token']}"}
    users = (await team.client.get("/admin/users", params={"limit": 100}, headers=grace)).json()["data"]
    groups = Counter(user["group"] for user in users if user["email"] != ADMIN)
    assert len(users) == 20 and groups == {"research": len(RESEARCHERS), "office": len(OFFICE)}

    # The first month: everybody's first calls at the same time, and models only within the group.
    month = datetime.now(UTC).strftime("%Y-%m")
    assert set(await asyncio.gather(*(team.chat(person, "lab/small") for person in people * 2))) == {200}
    assert set(await asyncio.gather(*(team.chat(person, "lab/large") for person in researchers))) == {200}
    assert set(await asyncio.gather(*(team.chat(person, "lab/large") for person in office))) == {404}
    for person in people:
        wallet, group = await team.wallet(person), "research" if person in researchers else "office"
        assert wallet["allowance_micros"] == ALLOWANCES[group]
        assert wallet["wallet_balance_micros"] == ALLOWANCES[group] - team.spent[person.email]
    by_group = {
        "research": sum(team.spent[person.email] for person in researchers),
        "office": sum(team.spent[person.email] for person in office),
    }
    assert await team.usage(grace, month, "group") == by_group
    assert sum((await team.usage(grace, month, "user")).values()) == sum(by_group.values())
    shown = await run(server, report)
    assert all(group in shown for group in by_group)

    # A raise in the middle of the month, without a restart; a wrong file changes nothing.
    catalog = file.read_text()
    file.write_text(catalog.replace("5_000_000", "6_000_000").replace("[[groups]]", "[[gruops]]", 1))
    assert "gruops" in await run(server, reload, status=1)
    assert (await team.wallet(office[0]))["allowance_micros"] == ALLOWANCES["office"]
    file.write_text(catalog.replace("= 5_000_000", "= 6_000_000"))
    await run(server, reload)
    assert await team.chat(office[0], "lab/small") == 200
    assert (await team.wallet(office[0]))["wallet_balance_micros"] == 6_000_000 - team.spent[office[0].email]

    # Somebody leaves.
    gone = next(user["id"] for user in users if user["email"] == office[1].email)
    suspended = await team.client.patch(f"/admin/users/{gone}", json={"status": "suspended"}, headers=grace)
    assert suspended.status_code == 200 and await team.chat(office[1], "lab/small") == 403
    spent = team.spent.total()

    # The next month: what is left over stays, and only what was spent is added.
    now = datetime.now(UTC)
    begins = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, 1, tzinfo=UTC)
    clock.write_text(repr(begins.timestamp() - time.time()))
    team.spent.clear()
    staying = [person for person in people if person is not office[1]]
    assert set(await asyncio.gather(*(team.chat(person, "lab/small") for person in staying))) == {200}
    for person in staying:
        allowance = ALLOWANCES["research"] if person in researchers else 6_000_000
        assert (await team.wallet(person))["wallet_balance_micros"] == allowance - COSTS["lab/small"]
    log_in = await team.client.post("/auth/login", json={"email": ADMIN, "password": password})
    grace = {"authorization": f"Bearer {log_in.json()['access_token']}"}
    assert sum((await team.usage(grace, month, "group")).values()) == spent
    assert sum((await team.usage(grace, f"{begins:%Y-%m}", "group")).values()) == team.spent.total()
    actions = {row["action"] for row in (await team.client.get("/admin/audit", headers=grace)).json()["data"]}
    assert {"user.add", "user.change"} <= actions
    await team.client.aclose()
    await run(server, check)
    assert_exact(server.data_dir / "service.db")
