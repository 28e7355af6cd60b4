"""The service in front of a scripted model server, for real clients. A call of its models costs 96 micros: 7 tokens in,
5 out.
"""

import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from svc.billing import wallet
from svc.schema import command_connection
from tests.support.format_events import chat_form
from tests.support.format_server import FormatServer
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
# The format of a model server is the name of its provider. Those models of `lab` have no other format.
OTHER_FORMATS = {
    api: ["script", "script+reasoning", "cut-after-5-chunks", "script+context-50000"]
    for api in ("responses", "messages")
}
Services = tuple[RunningServer, FormatServer]


def in_soak(*models: str) -> list[Any]:
    """Return parameters for the long run: plain tests prove the same of each format without the client's process."""
    return [pytest.param(model, marks=pytest.mark.soak) for model in models]


@dataclass
class Lab:
    """The service, the model server behind it, and an account with 50 dollars."""

    server: RunningServer
    upstream: FormatServer
    person: Person

    def asked(self, since: int, model: str = "") -> list[dict[str, Any]]:
        """Return the requests after the first `since`, in the form of chat. `model` begins with its server's format."""
        api = model.partition("/")[0]
        return [
            chat_form(api if api in OTHER_FORMATS else "chat", seen.body) for seen in self.upstream.requests[since:]
        ]

    def refused_as_too_long(self, asked_before: int, model: str = "") -> list[bool]:
        """Return for each request since whether the model `small` refused it."""
        sizes = [len(json.dumps(body)) // 4 for body in self.asked(asked_before, model)]
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
async def served(folder: Path, models: Mapping[str, Sequence[str]], more: str = "") -> AsyncIterator[Services]:
    """The service in front of a model server with `models`: the aliases of each name. `more` is of the catalog."""
    async with FormatServer() as upstream:
        at = f'base_url = "{upstream.base_url}"\ntimeout_seconds = 10\n'
        text = f'{more}[[providers]]\nname = "lab"\n{at}' + "".join(
            f'[[providers.models]]\nid = "{name}"\naliases = {list(aliases)}\n{PRICES}'
            for name, aliases in models.items()
        )
        for api, names in OTHER_FORMATS.items():
            text += f'[[providers]]\nname = "{api}"\napi = "{api}"\n{at}'
            text += "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in names)
        (folder / "catalog.toml").write_text(text)
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
