"""Counters, histograms and gauges in Prometheus' text format, as its own tool takes them."""

import re
import subprocess

import pytest

from svc.errors import ERRORS
from svc.metrics import GAUGES, Metrics
from tests.support.server import ROOT

SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def test_requests_and_their_time_are_counted_by_method_route_and_status() -> None:
    metrics = Metrics()
    for status in (200, 200, 404):
        metrics.count("GET", "/projects/{project_id}", status, 0.25)
    text = metrics.text([])
    assert 'svc_requests_total{method="GET",route="/projects/{project_id}",status="200"} 2\n' in text
    assert 'svc_requests_total{method="GET",route="/projects/{project_id}",status="404"} 1\n' in text
    labels = 'method="GET",route="/projects/{project_id}",status="200"'
    assert f'svc_request_duration_seconds_bucket{{{labels},le="0.1"}} 0\n' in text
    assert f'svc_request_duration_seconds_bucket{{{labels},le="0.25"}} 2\n' in text, "a bound counts what equals it"
    assert f'svc_request_duration_seconds_bucket{{{labels},le="+Inf"}} 2\n' in text
    assert f"svc_request_duration_seconds_sum{{{labels}}} 0.5\n" in text
    assert f"svc_request_duration_seconds_count{{{labels}}} 2\n" in text


def test_slow_request_is_counted_in_the_last_bucket() -> None:
    metrics = Metrics()
    metrics.count_commit(1000, 9.0)
    text = metrics.text([])
    assert 'svc_writer_batch_jobs_bucket{le="256"} 0\nsvc_writer_batch_jobs_bucket{le="+Inf"} 1\n' in text


def test_error_label_is_a_known_code_or_other() -> None:
    metrics = Metrics()
    for code in (*ERRORS, "their own", ["no", "text"], 7, None):
        metrics.count("POST", "/v1/chat/completions", 400, 0.1, code)
    text = metrics.text([])
    assert set(re.findall(r'svc_refusals_total\{.*code="(\w+)"\}', text)) == {*ERRORS, "other"}
    assert 'code="other"} 3\n' in text


def test_operator_losses_are_counted_in_calls_and_micros() -> None:
    metrics = Metrics()
    assert "\nsvc_overruns_total 0\n" in metrics.text([]), "a counter begins at 0, so that its first increase shows"
    metrics.count_overrun(30)
    metrics.count_overrun(12)
    text = metrics.text([])
    assert "\nsvc_overruns_total 2\n" in text and "\nsvc_overrun_micros_total 42\n" in text


def full() -> str:
    metrics = Metrics()
    metrics.count("POST", "/v1/chat/completions", 429, 1.5, "rate_limit_exceeded")
    metrics.count_commit(3, 0.0004)
    metrics.runs.add("stopped", "max_steps")
    metrics.upstream_seconds.observe(1.5, ("ollama",))
    metrics.first_answer_seconds.observe(0.5, ("ollama",))
    metrics.faults.add("ollama", "timeout")
    metrics.server_calls.add("ollama", "http://gpu1:8000/v1", by=2)
    metrics.server_failures.add("ollama", "http://gpu1:8000/v1")
    metrics.count_call("ollama", 10, 20, 5, 30)
    return metrics.text([(name, {"of": 'a "\\ \n'} if name == "svc_workers" else {}, 1.5) for name in GAUGES])


def test_metrics_are_prometheus_text_with_one_help_and_type_each() -> None:
    lines = full().splitlines()
    explained = [line.split()[2] for line in lines if line.startswith("# HELP")]
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert explained == typed and len(set(typed)) == len(typed)
    samples = [line for line in lines if line[0] != "#"]
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == ['svc_workers{of="a \\"\\\\ \\n"} 1.5']
    assert {re.sub(r"_(bucket|sum|count)$", "", re.split(r"[{ ]", line)[0]) for line in samples} == set(typed)


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_metrics() -> None:
    for text in (full(), Metrics().text([])):
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_each_alert_rule_is_tested_firing_and_silent() -> None:
    rules = re.findall(r"- alert: (\w+)", (ROOT / "svc" / "static" / "ops" / "alerts.yml").read_text())
    files = sorted((ROOT / "tests").glob("alerts*.test.yml"))
    cases = [case for file in files for case in file.read_text().split('\n  - name: "')[1:]]
    fires, quiet = set(), set()
    for case in cases:
        rule = case.partition(" ")[0]
        assert f'alertname="{rule}",alertstate="firing"' in case
        (fires if case.startswith(f"{rule} fires: ") and "exp_samples: [{ value: 1" in case else quiet).add(rule)
        assert ("exp_samples" in case) == case.startswith(f"{rule} fires: "), case
    assert fires == quiet == set(rules)
