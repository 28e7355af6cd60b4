"""Mutated HTTP over sockets to the application in this process, in short: `python -m tests.fuzz` sends a million."""

import random

import pytest

from tests.conftest import Service
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.wire import REQUESTS, exchange, written
from tests.support.wire import listening_sockets

COUNT = 200


async def test_mutated_http_bytes_cause_no_500(service: Service, pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--seed")
    print(f"seed {seed}")
    chance, found = random.Random(seed), []
    token = (await service.sign_up())["access_token"]
    good = [written("127.0.0.1", token, *request) for request in REQUESTS]
    async with listening_sockets(service.app, connections_per_address=COUNT) as wire:
        for _ in range(COUNT):
            data = b"".join(mutated_bytes(chance.choice(good), chance) for _ in range(2))
            await exchange(wire.address[1], data, found)
    assert found == []
    assert (await service.client.get("/readyz")).status_code == 200
    log = (service.config.data_dir.parent / "log").read_text()
    assert '"level":"error"' not in log
