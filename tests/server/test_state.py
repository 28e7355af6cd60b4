"""Settings decide what the state opens."""

import dataclasses
import sys
from typing import Any

import pytest

from svc.config import GITHUB, Config, IdentityProvider
from tests.conftest import Clocks, Service, serving
from tests.support.cases import each


async def test_default_settings_open_no_mail_and_no_identity_provider(service: Service) -> None:
    assert service.state["mail"] is None and service.state["identity_providers"] == {}
    assert service.state["payments"].mode == "sandbox", "the tests run in local posture"


@each(
    "settings, imported",
    [
        ({}, False),
        ({"identity_providers": (IdentityProvider("github", GITHUB, "id", "secret"),)}, True),
        ({"payments": "stripe", "stripe_secret_key": "sk_test", "stripe_webhook_secret": "whsec_test"}, True),
    ],
)
async def test_httpx_is_imported_at_the_start_where_it_is_needed(
    config: Config, clocks: Clocks, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], imported: bool
) -> None:
    monkeypatch.delitem(sys.modules, "svc.outbound.json_requests", raising=False)
    async with serving(dataclasses.replace(config, **settings), clocks):
        assert ("svc.outbound.json_requests" in sys.modules) is imported
