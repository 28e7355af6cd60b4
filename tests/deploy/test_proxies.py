"""svc/deploy/Caddyfile and svc/deploy/nginx.conf: what they send to the service, and their own errors."""

import json
import re

import pytest

from svc.config import from_environ
from svc.errors import ERRORS, ApiError
from svc.server.http.head import COMMON_HEADERS
from svc.server.http.protocol import Protocol
from tests.support.server import ROOT

NAME = "ai.example"
DEPLOY = ROOT / "svc" / "deploy"
SETTINGS = {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1", "SVC_BASE_URL": f"https://{NAME}"}


def replaced(text: str, changes: dict[str, str]) -> str:
    """`text` with what is this machine's own; everything that is replaced must be there."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_documented_proxy_settings_are_the_tested_ones() -> None:
    for name in ("Caddyfile", "nginx.conf"):
        assert " ".join(f"{setting}={value}" for setting, value in SETTINGS.items()) in (DEPLOY / name).read_text()


def site(name: str) -> str:
    """The text of a file without its comments."""
    return re.sub(r"^\s*#.*\n", "", (DEPLOY / name).read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["Caddyfile", "nginx.conf"])
def test_proxies_ask_the_address_of_the_settings(name: str) -> None:
    config = from_environ(SETTINGS)
    assert f"{config.host}:{config.port}" in site(name) and config.trusts("127.0.0.1")


@pytest.mark.parametrize("name", ["Caddyfile", "nginx.conf"])
def test_errors_of_proxies_have_the_error_shape_with_known_codes(name: str) -> None:
    errors = [json.loads(text)["error"] for text in re.findall(r"['`](\{\"error\".*\})['`]", site(name))]
    assert len(errors) >= 2
    for error in errors:
        assert set(error) == {"message", "type", "code", "param"} and error["param"] is None
        assert error["code"] == "service_unavailable" or error["type"] == ApiError(error["code"]).error["type"]
    assert {error["code"] for error in errors} <= {*ERRORS, "service_unavailable"}
    hsts = COMMON_HEADERS["strict-transport-security"]
    assert hsts in site(name) and "x-request-id" in site(name).lower()


def test_nginx_keeps_no_idle_connection_as_long_as_the_service() -> None:
    for name, directive in (("Caddyfile", "keepalive"), ("nginx.conf", "keepalive_timeout")):
        [seconds] = re.findall(rf"\b{directive} (\d+)s", site(name))
        assert int(seconds) < Protocol.idle_seconds


def test_nginx_passes_streams_and_bodies_on_at_once_and_never_sends_a_request_twice() -> None:
    for directive in (
        "proxy_buffering off",
        "proxy_request_buffering off",
        "client_max_body_size 0",
        "proxy_next_upstream off",
        "proxy_http_version 1.1",
        "proxy_set_header Host $host",
        "proxy_set_header X-Forwarded-For $remote_addr",
        "proxy_set_header X-Forwarded-Proto $scheme",
    ):
        assert f"{directive};" in site("nginx.conf"), directive


def test_plain_http_redirects_with_308_and_other_names_are_421() -> None:
    assert "redir https://ai.example{uri} 308" in site("Caddyfile")
    assert "return 308 https://$server_name$request_uri;" in site("nginx.conf")
    assert site("nginx.conf").count("if ($host != $server_name) {\n            return 421;") == 2
    assert re.search(r"http://, https:// \{[^}]*respond `[^`]*` 421", site("Caddyfile"))
