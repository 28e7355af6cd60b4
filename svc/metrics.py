"""Counters for Prometheus: requests by route and status, and how long they took."""

from collections import Counter


class Metrics:
    """What has been counted since the start."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str]] = Counter()
        self._overruns = self._overrun_micros = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one request; `route` is the pattern, never the path."""
        self._requests[method, route, status] += 1
        self._seconds[method, route] += seconds  # type: ignore[assignment]

    def count_overrun(self, micros: int) -> None:
        """Counts a call that came to more than was held for it, by so many micros: the operator's loss."""
        self._overruns += 1
        self._overrun_micros += micros

    def text(self, gauges: dict[str, float]) -> str:
        """Everything in Prometheus' text format, with the `gauges` of the moment."""
        lines = ["# TYPE svc_requests_total counter"]
        for (method, route, status), number in sorted(self._requests.items()):
            lines.append(f'svc_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}')
        lines.append("# TYPE svc_request_seconds_total counter")
        for (method, route), seconds in sorted(self._seconds.items()):
            lines.append(f'svc_request_seconds_total{{method="{method}",route="{route}"}} {seconds:.6f}')
        for name, number in (("svc_overruns_total", self._overruns), ("svc_overrun_micros_total", self._overrun_micros)):
            lines += [f"# TYPE {name} counter", f"{name} {number}"]
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"
