"""What administrators do instead of commands: credits and debits, a backup, a reload, and the catalog as it is in use."""

import asyncio
import dataclasses
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc import cli
from svc.billing import wallet
from svc.config import Config
from tests.billing.test_wallet import findings
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.admins import ask, log_of
from tests.support.cases import each

CATALOG = """
default_model = "lab/small"

[[providers]]
name = "lab"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "LAB_SECRET_NAME"
timeout_seconds = 7

[[providers.models]]
id = "small"
aliases = ["tiny"]
input_micros_per_million_tokens = 5
output_micros_per_million_tokens = 6

[[providers]]
name = "own-list"
base_url = "http://127.0.0.1:9/v1"

[search]
engine = "tavily"
api_key_env = "LAB_SECRET_NAME"
micros_per_search = 8

[access]
contact = "it@example.com"
users_may_delete_themselves = false

[[groups]]
name = "research"
models = ["lab/*"]
allowance_micros = 20
emails = ["*@research.example"]
"""
KEY = "sk-operators-own-0123456789"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups"


@pytest.fixture
async def service(config: Config, clocks: Clocks, folder: Path) -> AsyncIterator[Service]:
    config = dataclasses.replace(config, environ={"LAB_SECRET_NAME": KEY}, backup_dir=folder)
    async with serving(config, clocks, CATALOG) as service:
        yield service
        assert await service.state["db"].read(findings) == []


@pytest.fixture
async def admin(service: Service) -> dict[str, str]:
    """The session of the first account, which is an administrator."""
    return await service.bearer()


async def balance(service: Service, account_id: str) -> int:
    micros: int = (await service.state["db"].read(wallet.balances, account_id))["wallet_balance_micros"]
    return micros


# --- credits and debits


async def test_credit_and_debit_are_booked_and_audited(service: Service, admin: dict[str, str]) -> None:
    session = await service.sign_up()
    account_id, path = session["user"]["id"], f"/admin/users/{session['user']['id']}"
    credit = await ask(service, "POST", f"{path}/credits", admin, amount_micros=5_000_000, note="Course")
    debit = await ask(service, "POST", f"{path}/debits", admin, amount_micros=1_000_000)
    assert (credit.status_code, debit.status_code) == (201, 201)
    assert (credit.json()["kind"], credit.json()["amount_micros"], credit.json()["description"]) == (
        "credit",
        5_000_000,
        "Course",
    )
    assert (debit.json()["amount_micros"], debit.json()["balance_after_micros"]) == (-1_000_000, 4_000_000)
    assert debit.json()["description"] == "Debit by an administrator"
    user = (await ask(service, "GET", path, admin)).json()
    assert (user["balance_micros"], user["tier"]) == (4_000_000, "pro"), "as with svc credit"
    headers = bearer(session["access_token"])
    ledger = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    assert ledger == [debit.json(), credit.json()]
    rows = (await ask(service, "GET", "/admin/audit", admin)).json()["data"]
    me = (await service.client.get("/user/me", headers=admin)).json()["id"]
    assert [(row["actor"], row["action"], row["subject"], row["details"]["amount_micros"]) for row in rows] == [
        (me, "debit", account_id, 1_000_000),
        (me, "credit", account_id, 5_000_000),
    ]


@each("kind", ["credits", "debits"])
async def test_repeated_id_is_booked_once(kind: str, service: Service, admin: dict[str, str]) -> None:
    one, other = [(await service.sign_up())["user"]["id"] for _ in range(2)]
    for account_id in (one, other):
        await ask(service, "POST", f"/admin/users/{account_id}/credits", admin, amount_micros=100)
    body: dict[str, Any] = {"amount_micros": 10, "id": f"click-{kind}"}
    path = f"/admin/users/{one}/{kind}"
    answers = await asyncio.gather(*(ask(service, "POST", path, admin, **body) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    due = 110 if kind == "credits" else 90
    assert await balance(service, one) == due
    assert len([1 for action, details in await log_of(service, admin) if details.get("id") == f"click-{kind}"]) == 1
    for wrong in (
        await ask(service, "POST", path, admin, amount_micros=11, id=f"click-{kind}"),
        await ask(service, "POST", f"/admin/users/{one}/{'debits' if kind == 'credits' else 'credits'}", admin, **body),
    ):
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "booking_mismatch")
    assert await balance(service, one) == due
    assert (await ask(service, "POST", f"/admin/users/{other}/{kind}", admin, **body)).status_code == 201


async def test_debit_takes_neither_more_than_there_is_nor_what_is_held(service: Service, admin: dict[str, str]) -> None:
    account_id, db = (await service.sign_up())["user"]["id"], service.state["db"]
    path = f"/admin/users/{account_id}"
    await ask(service, "POST", f"{path}/credits", admin, amount_micros=100)
    await db.write(wallet.hold, account_id, "hold_1", 60, service.clocks.now)
    for micros in (101, 41):
        refused = await ask(service, "POST", f"{path}/debits", admin, amount_micros=micros)
        assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
        assert "checkout" not in refused.json()["error"]["message"]
    assert (await ask(service, "POST", f"{path}/debits", admin, amount_micros=40)).status_code == 201
    assert [action for action, _ in await log_of(service, admin)] == ["debit", "credit"]


async def test_credit_over_the_bound_is_refused(service: Service, admin: dict[str, str]) -> None:
    path = f"/admin/users/{(await service.sign_up())['user']['id']}/credits"
    assert (await ask(service, "POST", path, admin, amount_micros=10**15)).status_code == 201
    assert (await ask(service, "POST", path, admin, amount_micros=1)).status_code == 400


@each(
    "body",
    [
        {},
        {"amount_micros": 0},
        {"amount_micros": -5},
        {"amount_micros": 1.5},
        {"amount_micros": "5"},
        {"amount_micros": True},
        {"amount_micros": 10**15 + 1},
        {"amount_micros": 1, "note": "x" * 201},
        {"amount_micros": 1, "note": "a\nb"},
        {"amount_micros": 1, "id": ""},
        {"amount_micros": 1, "id": "a b"},
        {"amount_micros": 1, "id": "x" * 101},
    ],
)
async def test_wrong_booking_is_400_and_books_nothing(
    body: dict[str, Any], service: Service, admin: dict[str, str]
) -> None:
    account_id = (await service.sign_up())["user"]["id"]
    for kind in ("credits", "debits"):
        answer = await service.client.post(f"/admin/users/{account_id}/{kind}", json=body, headers=admin)
        assert answer.status_code == 400, answer.text
    assert await balance(service, account_id) == 0 and await log_of(service, admin) == []


async def test_booking_for_a_deleted_account_is_404(service: Service, admin: dict[str, str]) -> None:
    account_id = (await service.sign_up())["user"]["id"]
    assert (await ask(service, "DELETE", f"/admin/users/{account_id}", admin)).status_code == 204
    for kind in ("credits", "debits"):
        answer = await ask(service, "POST", f"/admin/users/{account_id}/{kind}", admin, amount_micros=1)
        assert answer.status_code == 404


# --- backup


async def status_of(service: Service, admin: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = (await ask(service, "GET", "/admin/status", admin)).json()["backups"]
    return found


async def ended(service: Service, admin: dict[str, str]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (found := await status_of(service, admin))["last"]["running"]:
            await asyncio.sleep(0.05)
    last: dict[str, Any] = found["last"]
    return last


async def test_backup_is_written_into_the_folder_and_can_be_restored(
    service: Service, admin: dict[str, str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await status_of(service, admin) == {"folder": str(folder), "last": None}
    answers = await asyncio.gather(*(ask(service, "POST", "/admin/backup", admin) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409], "one at a time"
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} == {"already_active"}
    last = await ended(service, admin)
    (file,) = folder.glob("*.tar")
    assert (last["error"], last["percent"], last["file"], last["bytes"]) == (None, 100, str(file), file.stat().st_size)
    with tarfile.open(file) as archive:
        assert {"service.db", "master.key"} <= set(archive.getnames())
    assert ("backup", {}) in await log_of(service, admin)
    assert (await ask(service, "GET", "/admin/status", admin)).json()["last_backup_at"] is not None
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "restored"))
    assert await asyncio.to_thread(cli.main, ["restore", str(file)]) == 0
    assert (await ask(service, "POST", "/admin/backup", admin)).status_code == 202, "another one afterwards"
    await ended(service, admin)


async def test_failed_backup_says_why(service: Service, admin: dict[str, str], folder: Path) -> None:
    (service.config.data_dir / "master.key").write_bytes(b"x" * 32)
    assert (await ask(service, "POST", "/admin/backup", admin)).status_code == 202
    last = await ended(service, admin)
    assert "master.key is not the key of the database" in last["error"] and last["file"] is None
    assert list(folder.iterdir()) == []


@pytest.mark.slow
async def test_backup_ends_with_the_server(config: Config, clocks: Clocks, folder: Path) -> None:
    async with serving(dataclasses.replace(config, backup_dir=folder), clocks) as service:
        admin = await service.bearer()
        assert (await ask(service, "POST", "/admin/backup", admin)).status_code == 202
    assert service.state["backups"]._process is None
    assert not service.state["backups"].as_json()["last"]["running"]


@each(("missing", "told"), [(False, "set SVC_BACKUP_DIR"), (True, "gone, is missing")])
async def test_backup_without_a_folder_is_refused(
    missing: bool, told: str, config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    config = dataclasses.replace(config, backup_dir=gone if missing else None, data_dir=tmp_path / f"data{missing}")
    async with serving(config, clocks) as service:
        admin = await service.bearer()
        refused = await ask(service, "POST", "/admin/backup", admin)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "backup_not_set_up")
        assert told in refused.json()["error"]["message"] and not gone.exists()
        assert await log_of(service, admin) == []
        assert await status_of(service, admin) == {"folder": str(gone) if missing else None, "last": None}


# --- reload and catalog


def change_catalog(service: Service, old: str, new: str) -> None:
    path = service.config.catalog
    assert path is not None and old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


async def test_reload_reads_the_catalog_again(service: Service, admin: dict[str, str]) -> None:
    change_catalog(service, "allowance_micros = 20", "allowance_micros = 30")
    answer = await ask(service, "POST", "/admin/reload", admin)
    assert answer.status_code == 200 and answer.json()["errors"] == []
    assert "group research: it has no accounts" in answer.json()["notes"]
    assert (await ask(service, "GET", "/admin/catalog", admin)).json()["groups"][0]["allowance_micros"] == 30
    assert (await log_of(service, admin))[0] == ("reload", {"errors": 0, "notes": len(answer.json()["notes"])})


async def test_reload_of_a_wrong_catalog_changes_nothing(service: Service, admin: dict[str, str]) -> None:
    before = (await ask(service, "GET", "/admin/catalog", admin)).json()
    change_catalog(service, "allowance_micros = 20", "allowance_micros = -1")
    answer = await ask(service, "POST", "/admin/reload", admin)
    assert answer.status_code == 200 and "allowance_micros must be" in answer.json()["errors"][0]
    assert (await ask(service, "GET", "/admin/catalog", admin)).json() == before
    assert (await log_of(service, admin))[0] == ("reload", {"errors": 1, "notes": 0})


async def test_catalog_is_shown_with_its_file_and_without_keys(service: Service, admin: dict[str, str]) -> None:
    answer = await ask(service, "GET", "/admin/catalog", admin)
    found = answer.json()
    assert KEY not in answer.text and "LAB_SECRET_NAME" not in answer.text
    assert (found["file"], found["default_model"]) == (str(service.config.catalog), "lab/small")
    assert found["providers"] == [
        {
            "name": name,
            "base_url": "http://127.0.0.1:9/v1",
            "base_urls": ["http://127.0.0.1:9/v1"],
            "has_key": has_key,
            "timeout_seconds": seconds,
            "lists_models": lists,
        }
        for name, has_key, seconds, lists in (("lab", True, 7, False), ("own-list", False, 120, True))
    ]
    assert found["search"] == {
        "engine": "tavily",
        "base_url": "https://api.tavily.com",
        "has_key": True,
        "micros_per_search": 8,
    }
    by_id = {model["id"]: model for model in found["models"]}
    assert by_id["lab/small"] == {
        "id": "lab/small",
        "kind": "chat",
        "source": "catalog",
        "pricing": {"input_micros_per_million_tokens": 5, "output_micros_per_million_tokens": 6},
        "fallback": None,
        "aliases": ["tiny"],
        "context_length": None,
    }
    assert by_id["builtin/assistant"]["source"] == "builtin"
    (group,) = found["groups"]
    assert (group["name"], group["models"], group["allowance_micros"], group["emails"]) == (
        "research",
        ["lab/*"],
        20,
        ["*@research.example"],
    )
    assert found["access"]["models"] == ["*"] and found["contact"] == "it@example.com"
    assert found["users_may_delete_themselves"] is False


async def test_service_without_a_catalog_shows_its_models(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        found = (await ask(service, "GET", "/admin/catalog", await service.bearer())).json()
        assert (found["file"], found["access"], found["groups"], found["search"]) == (None, None, [], None)
        assert {model["source"] for model in found["models"]} == {"builtin"} and found["users_may_delete_themselves"]
