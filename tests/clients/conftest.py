"""The service in front of a scripted model server, for real clients. A call of its models costs 96 micros: 7 tokens in,
5 out.
"""

import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from svc.billing import wallet
from svc.schema import command_connection
from tests.support.model_server import ModelServer
from tests.support.people import Person, another_person
from tests.support.server import RunningServer, running_server

CALL_MICROS = 7 * 3 + 5 * 15
FUNDS_MICROS = 50_000_000
PRICES = "input_micros_per_million_tokens = 3000000\noutput_micros_per_million_tokens = 15000000\n"
MODELS = {  # name at the model server -> aliases; clients know some of these names, and treat them differently
    "script": ["coder", "gpt-5.5", "claude-opus-5"],
    "script+reasoning": ["thinker", "gpt-6.1-sol", "claude-sonnet-4-5"],
    "cut-after-3-chunks": ["broken"],
    "script+context-50000": ["small"],  # CONTEXT_TOKENS
    "script+window-40000": ["narrow"],
}
CONTEXT_TOKENS = 50_000  # of the model `small`
Services = tuple[RunningServer, ModelServer]


@dataclass
class Lab:
    """The service, the model server behind it, and an account with 50 dollars."""

    server: RunningServer
    upstream: ModelServer
    person: Person

    def refused_as_too_long(self, asked_before: int) -> list[bool]:
        """Return for each request since whether the model `small` refused it."""
        sizes = [len(json.dumps(seen.body)) // 4 for seen in self.upstream.requests[asked_before:]]
        return [size > CONTEXT_TOKENS for size in sizes]

    async def spent(self) -> int:
        """Return what the person has spent, after checking that nothing is held and that the ledger has
        no other rows.
        """
        async with self.server.client(headers=self.person.headers) as client:
            account = (await client.get("/billing/account")).json()
            ledger = (await client.get("/billing/ledger?limit=100")).json()["data"]
        assert account["held_micros"] == 0
        debits = -sum(row["amount_micros"] for row in ledger if row["kind"] == "debit")
        assert account["wallet_balance_micros"] == FUNDS_MICROS - debits
        return debits


@contextlib.asynccontextmanager
async def served(folder: Path, models: Mapping[str, Sequence[str]]) -> AsyncIterator[Services]:
    """The service in front of a model server with `models`: the aliases of each name."""
    async with ModelServer() as upstream:
        entries = "".join(
            f'[[providers.models]]\nid = "{name}"\naliases = {list(aliases)}\n{PRICES}'
            for name, aliases in models.items()
        )
        provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 10\n'
        (folder / "catalog.toml").write_text(provider + entries)
        async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
            yield server, upstream


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    async with served(tmp_path_factory.mktemp("clients"), MODELS) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def lab(services: Services) -> Lab:
    server, upstream = services
    person = await another_person(server)
    async with server.client(headers=person.headers) as client:
        account_id = (await client.get("/user/me")).json()["id"]
    with command_connection(server.data_dir / "service.db") as tx:  # as `svc credit` does, without its start
        wallet.book(tx, account_id, FUNDS_MICROS, description="Credit", now_seconds=time.time())
    return Lab(server, upstream, person)
