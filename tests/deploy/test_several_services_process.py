"""The chapter "Several services by domain" of svc/GROWING.md: two units, two sites of one nginx, two real servers."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from svc.certificates import tls_files
from tests.deploy.test_proxies import NAME, replaced
from tests.deploy.test_proxies_process import Proxy, nginx_with_sites
from tests.deploy.test_several_services import SECOND, TOKEN, environment, machine
from tests.support.answers import assert_error
from tests.support.people import PASSWORD
from tests.support.server import free_port, running_server_sync

pytestmark = [pytest.mark.slow, pytest.mark.needs("nginx", "systemd-analyze")]
__all__ = ["machine"]  # a fixture
PERSON = {"email": "ada@example.com", "password": PASSWORD}


@pytest.fixture(scope="module")
def proxy(machine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("nginx")
    files = tls_files(folder, [NAME, SECOND], time.time())
    proxy, sites = Proxy(free_port(), free_port(), files.ca), {}
    with contextlib.ExitStack() as stack:
        for unit, name, port in (("svc", NAME, "8443"), ("svc-research", SECOND, "8444")):
            env = environment(machine, unit)
            assert env.get("SVC_PORT", "8443") == port and env["SVC_BASE_URL"] == f"https://{name}"
            (folder / unit).mkdir()
            server = stack.enter_context(running_server_sync(folder / unit, {**env, "SVC_PORT": "0"}))
            site = (machine / "etc/nginx/sites-enabled" / unit).read_text()
            sites[name] = replaced(site, {f"127.0.0.1:{port}": f"127.0.0.1:{server.port}"})
        stack.enter_context(nginx_with_sites(folder, proxy, files, sites))
        yield proxy


def test_systemd_verifies_both_units(machine: Path) -> None:
    for unit in ("svc", "svc-research"):
        copy = machine / f"{unit}.service"
        text = (machine / f"etc/systemd/system/{unit}.service").read_text()
        copy.write_text(text.replace("/opt/svc/bin/svc", str(Path(sys.executable).with_name("svc"))))
        done = subprocess.run(
            ["systemd-analyze", "--no-pager", "verify", copy], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_name_has_its_own_accounts_and_secrets(proxy: Proxy) -> None:
    with proxy.client() as first, proxy.client(name=SECOND) as second:
        session = first.post("/auth/signup", json=PERSON).raise_for_status().json()["access_token"]
        headers = {"authorization": f"Bearer {session}", "host": NAME}
        key = first.post("/user/api-keys", json={"name": "x"}, headers=headers).raise_for_status().json()["key"]
        assert_error(second.post("/auth/login", json=PERSON), 401, "invalid_credentials")
        for token in (session, key):
            other = {"authorization": f"Bearer {token}", "host": SECOND}
            assert second.get("/user/me", headers=other).status_code == 401
            assert first.get("/user/me", headers={**other, "host": NAME}).status_code == 200
        assert second.post("/auth/signup", json=PERSON).status_code == 201


def test_both_services_share_the_catalog_and_have_metrics(proxy: Proxy) -> None:
    for name in (NAME, SECOND):
        with proxy.client(name=name) as client:
            answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}", "host": name})
            assert answer.status_code == 200 and "svc_build_info{" in answer.text
            session = client.post("/auth/signup", json={**PERSON, "email": "bob@example.com"}).json()["access_token"]
            headers = {"authorization": f"Bearer {session}", "host": name}
            chat = {"messages": [{"role": "user", "content": "hi"}]}
            assert client.post("/v1/chat/completions", json=chat, headers=headers).json()["model"] == "builtin/echo"


def test_plain_http_of_each_name_redirects_to_its_own(proxy: Proxy) -> None:
    for name in (NAME, SECOND):
        sent = httpx.get(f"http://127.0.0.1:{proxy.http_port}/docs", headers={"host": name})
        assert (sent.status_code, sent.headers["location"]) == (308, f"https://{name}/docs")
