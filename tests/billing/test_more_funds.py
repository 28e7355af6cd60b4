"""An empty wallet says when the allowance renews and whom to ask, in every format."""

import dataclasses

from svc.config import Config
from tests.billing.test_allowances import ASK, CHAT
from tests.conftest import Clocks, bearer, serving
from tests.support.cases import each


@each(
    ("payments", "access", "advice"),
    [
        ("none", "", "To get more funds, ask the operator of this service."),
        ("none", "contact = 'Ada, room 4'", "To get more funds, ask Ada, room 4."),
        (
            "none",
            "allowance_micros = 10\ncontact = 'it@example.com'",
            "The monthly allowance of $0.00001 renews on 2026-10-01 (UTC). To get more funds, ask it@example.com.",
        ),
        (
            "sandbox",
            "allowance_micros = 10",
            "The monthly allowance of $0.00001 renews on 2026-10-01 (UTC). Add funds in the browser, at /checkout.",
        ),
        ("sandbox", "contact = 'it@example.com'", "Add funds in the browser, at /checkout."),
    ],
)
async def test_refusal_for_lack_of_funds_says_what_to_do(
    payments: str, access: str, advice: str, config: Config, clocks: Clocks
) -> None:
    config = dataclasses.replace(config, payments=payments)
    message = {"role": "user", "content": "2+2"}
    model = "builtin/assistant-paid"
    async with serving(config, clocks, f"[access]\n{access}\n") as service:
        headers = bearer((await service.sign_up(f"{len(access)}{payments}@example.com"))["access_token"])
        for path, body in (
            (CHAT, ASK),
            ("/v1/responses", {"model": model, "input": "2+2"}),
            ("/v1/messages", {"model": model, "max_tokens": 9, "messages": [message]}),
            ("/v1/agents/run", {"model": model, "goal": "2+2", "tools": []}),
            ("/v1/images/generations", {"model": "builtin/paint", "prompt": "a red circle", "size": "64x64"}),
        ):
            refused = await service.client.post(path, json=body, headers=headers)
            error = refused.json()["error"]
            assert refused.status_code == (400 if path == "/v1/responses" else 402)
            assert error["message"].endswith(f"is reserved for running requests. {advice}")
            renews_at = "2026-10-01T00:00:00.000Z" if "allowance" in access else None
            assert error.get("allowance_renews_at") == renews_at


async def test_wallet_says_whom_to_ask(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks, "[access]\ncontact = 'it@example.com'\n") as service:
        found = await service.client.get("/billing/account", headers=await service.bearer())
        assert found.json()["contact"] == "it@example.com"
