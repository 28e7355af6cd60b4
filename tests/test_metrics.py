"""Counters in Prometheus' text format: what was counted, by route and status."""

import re

from svc.metrics import Metrics

LINE = re.compile(r'(# TYPE [a-z_]+ (counter|gauge)|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)')


def test_requests_are_counted_by_method_route_and_status_and_their_time_by_route() -> None:
    metrics = Metrics()
    for status in (200, 200, 404):
        metrics.count("GET", "/projects/{project_id}", status, 0.25)
    text = metrics.text({})
    assert 'svc_requests_total{method="GET",route="/projects/{project_id}",status="200"} 2\n' in text
    assert 'svc_requests_total{method="GET",route="/projects/{project_id}",status="404"} 1\n' in text
    assert 'svc_request_seconds_total{method="GET",route="/projects/{project_id}"} 0.750000\n' in text


def test_what_the_operator_lost_is_counted_in_calls_and_in_micros() -> None:
    metrics = Metrics()
    metrics.count_overrun(30)
    metrics.count_overrun(12)
    text = metrics.text({})
    assert "\nsvc_overruns_total 2\n" in text and "\nsvc_overrun_micros_total 42\n" in text


def test_every_line_is_prometheus_text_and_each_name_is_typed_once() -> None:
    metrics = Metrics()
    metrics.count("POST", "/v1/chat/completions", 200, 1.5)
    lines = metrics.text({"svc_open_answers": 3, "svc_uptime_seconds": 12.5}).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(typed)) == len(typed) and {re.split(r"[{ ]", line)[0] for line in lines if line[0] != "#"} == set(typed)
