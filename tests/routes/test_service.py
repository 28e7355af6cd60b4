"""Health, readiness, metrics and the interface document."""

import dataclasses

import httpx

from app import create_app
from svc.config import Config
from tests.conftest import Service, _WithState
from tests.support.cases import each


async def test_metrics_are_labelled_by_route(service: Service) -> None:
    for path in ("/healthz", "/healthz", "/static/secret-name", "/secret-path"):
        await service.client.get(path)
    text = (await service.client.get("/metrics")).text
    assert 'svc_requests_total{method="GET",route="/healthz",status="200"} 2' in text
    assert 'route="/static/{path:path}",status="404"} 1' in text and "secret" not in text


@each(("token", "sent", "status"), [(None, "", 404), ("t" * 16, "", 401), ("t" * 16, "Bearer " + "t" * 16, 200)])
async def test_metrics_need_the_operator_token_unless_local(
    config: Config, token: str | None, sent: str, status: int
) -> None:
    app = create_app(dataclasses.replace(config, base_url="https://ai.example", metrics_token=token))
    async with app.router.lifespan_context(app) as state:
        transport = httpx.ASGITransport(_WithState(app, state))
        async with httpx.AsyncClient(transport=transport, base_url="https://ai.example") as client:
            assert (await client.get("/metrics", headers={"authorization": sent})).status_code == status
