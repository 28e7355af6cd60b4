"""The metrics of a real server under a real Prometheus, and the dashboard and the alert rules that stand on them."""

import json
import re
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from svc.version import VERSION
from tests.support.agent_runs import add_accounts
from tests.support.pages import EXAMPLES
from tests.support.people import command
from tests.support.server import ROOT, RunningServer, running_server
from tests.support.waiting import logged

pytestmark = pytest.mark.needs("promtool", "prometheus")
OPS = ROOT / "svc" / "static" / "ops"
ALERTS = OPS / "alerts.yml"
PANELS: list[dict[str, Any]] = json.loads((OPS / "dashboard.json").read_text())["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
CONFIG = """
global: {{ scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }}
rule_files: ["{alerts}"]
scrape_configs:
  - job_name: svc
    scheme: https
    tls_config: {{ ca_file: "{ca}" }}
    static_configs: [{{ targets: ["{target}"] }}]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def used(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """A server that has been used in every way that is counted."""
    async with running_server(tmp_path_factory.mktemp("used")) as server:
        (account,) = add_accounts(server, 1, micros=50_000_000)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
            async with server.client(headers=account.headers) as client:
                await client.post("/user/providers", json={"name": "gone", "base_url": address, "models": ["m"]})
                for model in ("builtin/echo", "builtin/assistant-paid", "gone/m"):
                    body = {"model": model, "messages": [{"role": "user", "content": "What is 12 * 3?"}]}
                    answer = await client.post("/v1/chat/completions", json=body)
                    assert answer.status_code == (502 if model == "gone/m" else 200), answer.text
        async with server.client(headers=account.headers) as client:
            for goal, steps in (("Say hello", 3), ("Calculate 2 * 3", 1)):
                assert (await client.post("/v1/agents/run", json={"goal": goal, "max_steps": steps})).status_code == 200
        made = command(server, "backup", str(server.data_dir.parent / "backup.tar"))
        assert made.returncode == 0, made.stderr
        yield server


async def text(server: RunningServer) -> str:
    async with server.client() as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_calls_runs_faults_and_commits_are_counted(used: RunningServer) -> None:
    lines = (await text(used)).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    assert values['svc_upstream_faults_total{provider="byok",kind="unreachable"}'] == "1"
    assert values['svc_upstream_duration_seconds_count{provider="byok"}'] == "1"
    assert (
        values['svc_runs_total{status="final",reason=""}']
        == values['svc_runs_total{status="stopped",reason="max_steps"}']
        == "1"
    )
    assert int(values['svc_tokens_total{provider="builtin",kind="output"}']) > 0
    assert int(values['svc_cost_micros_total{provider="builtin"}']) > 0
    assert float(values['svc_upstream_first_answer_seconds_sum{provider="builtin"}']) > 0
    assert int(values["svc_writer_commit_duration_seconds_count"]) > 5
    assert 'svc_refusals_total{route="/v1/chat/completions",code="upstream_unreachable"}' in values
    assert 'svc_upstream_first_answer_seconds_count{provider="byok"}' not in values
    assert time.time() - float(values["svc_last_backup_timestamp_seconds"]) < 60
    assert (float(values["svc_certificate_expiry_timestamp_seconds"]) - time.time()) / 86400 == pytest.approx(
        397, abs=1
    )
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.asyncio(loop_scope="module")
async def test_first_log_line_has_the_version(used: RunningServer) -> None:
    first = (await logged(used.log_lines))[0]
    assert (first["event"], first["version"], first["base_url"]) == ("start", VERSION, used.base_url)


@pytest.mark.asyncio(loop_scope="module")
async def test_dashboard_and_alerts_use_existing_metrics(used: RunningServer) -> None:
    known = set(re.findall(r"^# TYPE (\w+)", await text(used), re.MULTILINE))
    for source in ("\n".join(QUERIES), re.sub("#.*", "", ALERTS.read_text())):
        named = set(re.findall(r"\b(?:svc|process)_\w+", source))
        assert len(named) > 10
        assert {re.sub("_(bucket|sum|count)$", "", name) for name in named} - known == set()


@pytest.mark.asyncio(loop_scope="module")
async def test_prometheus_evaluates_all_panels_and_rules(used: RunningServer, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(alerts=ALERTS, ca=used.ca, target=f"127.0.0.1:{used.port}"))
    arguments = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'db'}", f"--web.listen-address={listen}"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(["prometheus", *arguments], stderr=log) as prometheus:
        try:
            with httpx.Client(base_url=f"http://{listen}/api/v1", trust_env=False, timeout=10) as client:
                assert wait_for(client, 'rate(svc_requests_total{job="svc"}[5s])'), (tmp_path / "log").read_text()
                for query in QUERIES:
                    answer = client.get("/query", params={"query": query.replace("$__rate_interval", "1m")})
                    assert answer.status_code == 200, answer.text
                rules = [rule for group in client.get("/rules").json()["data"]["groups"] for rule in group["rules"]]
                assert len(rules) > 10 and {rule["health"] for rule in rules} == {"ok"}, rules
                assert client.get("/query", params={"query": "up"}).json()["data"]["result"][0]["value"][1] == "1"
        finally:
            prometheus.kill()


def wait_for(client: httpx.Client, query: str) -> bool:
    """Waits until Prometheus has an answer to `query` and has been through its rules; False after 30 seconds."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        try:
            known = client.get("/query", params={"query": query}).json()["data"]["result"]
            groups = client.get("/rules").json()["data"]["groups"]
            if known and all(rule["health"] != "unknown" for group in groups for rule in group["rules"]):
                return True
        except (httpx.HTTPError, KeyError, ValueError):
            pass  # it is still starting
        time.sleep(0.2)
    return False


@pytest.mark.parametrize("example", ["prometheus", "prometheus-proxy"])
def test_promtool_accepts_the_documented_configuration(tmp_path: Path, example: str) -> None:
    (tmp_path / "data" / "tls").mkdir(parents=True)
    for name, content in {
        "prometheus.yml": EXAMPLES[example],
        "alerts.yml": ALERTS.read_text(),
        "metrics-token": "t" * 16,
        "data/tls/ca.pem": "",
    }.items():
        (tmp_path / name).write_text(content)
    arguments = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    checked = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_accepts_and_tests_the_rules() -> None:
    cases = sorted((ROOT / "tests").glob("alerts*.test.yml"))
    for arguments in (["check", "rules", ALERTS], ["test", "rules", *cases]):
        checked = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, checked.stdout + checked.stderr
