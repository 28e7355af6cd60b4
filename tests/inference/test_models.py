"""The list of models of an account that has as many as it may."""

import orjson

from svc.ids import new_id
from tests.conftest import Service
from tests.support.turns import free_loop

PROVIDERS, MODELS = 100, 500


async def test_list_of_50_000_models_does_not_block_the_event_loop(service: Service) -> None:
    headers = await service.bearer()
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    names = orjson.dumps([f"model-{number}" + "x" * 250 for number in range(MODELS)]).decode()

    def add(tx: object) -> None:
        for number in range(PROVIDERS):
            tx.execute(  # type: ignore[attr-defined]
                "INSERT INTO providers (id, account_id, name, base_url, models, created_at) VALUES (?, ?, ?, "
                "'http://h', ?, 1)",
                (new_id("prov", number), account_id, f"own-{number}", names),
            )

    await service.state["db"].write(add)
    async with free_loop(0.1):
        answer = await service.client.get("/v1/models", headers=headers)
    assert answer.status_code == 200
    assert sum(model["byok"] for model in answer.json()["data"]) == PROVIDERS * MODELS
