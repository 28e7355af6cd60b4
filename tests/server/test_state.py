"""Settings decide what the state opens."""

from tests.conftest import Service


async def test_default_settings_open_no_mail_and_no_identity_provider(service: Service) -> None:
    assert service.state["mail"] is None and service.state["identity_providers"] == {}
    assert service.state["payments"].mode == "sandbox", "the tests run in local posture"
