"""Metrics in Prometheus' text format (version 0.0.4): counters and histograms since the start, and gauges.

One thread writes each series, so counting needs no lock. A reader may find the sum of a histogram one observation
ahead of its buckets. No label holds a caller's text, which would make the number of series unlimited.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product
from typing import Any

from svc.errors import ERRORS

# Most answers take milliseconds, and streams last for minutes.
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_UPSTREAM_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_COMMIT_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_BATCH_JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

_HELP = {
    "svc_requests_total": "HTTP requests answered.",
    "svc_request_duration_seconds": "Time from the head of a request to the end of its answer.",
    "svc_refusals_total": "Requests that ended in an error, by error code, such as rate_limit_exceeded or overloaded.",
    "svc_runs_total": "Agent runs that have ended, by status; reason: why a run was stopped.",
    "svc_writer_batch_jobs": "Transactions of callers in each commit of the database writer.",
    "svc_writer_commit_duration_seconds": "Time until a commit of the database writer is on disk.",
    "svc_upstream_duration_seconds": (
        "Time from a request to a model server to the end of its answer, for each attempt."
    ),
    "svc_upstream_first_answer_seconds": "Time from a request to a model server to the first part of its answer.",
    "svc_upstream_faults_total": (
        "Failed attempts to call a model server, by kind: unreachable, timeout, status, invalid, cut."
    ),
    "svc_server_calls_total": "Attempts to call each server of a provider with several addresses.",
    "svc_server_failures_total": "Those for which the server was down: unreachable, timeout, or status 502 to 504.",
    "svc_tokens_total": "Tokens of finished calls. Cached ones are a part of the input.",
    "svc_cost_micros_total": "Amount that callers paid for calls, in millionths of a US dollar.",
    "svc_overruns_total": "Paid calls that cost more than their hold.",
    "svc_overrun_micros_total": "Cost over the holds, which the operator pays, in millionths of a US dollar.",
    "svc_unbilled_answers_total": "Answers of models with a price that were free: the model server counted no tokens.",
    "svc_unbooked_payment_events_total": "Payment events that the operator must book; known: the checkout is ours.",
    "svc_mails_total": "Emails by outcome; refused: the mail server rejected the recipient's address.",
    "svc_sign_ins_total": "Sign-ins by way (password or the identity provider) and code: ok, or why it was refused.",
    "svc_byok_errors_total": "Answers with status 500 or more that an account's own provider caused.",
}
# They are read at each scrape. One without a value is left out.
GAUGES = {
    "svc_build_info": "Always 1; the labels are the versions of the service and of Python.",
    "svc_open_answers": "Answers in progress that may take long: event streams and calls of models.",
    "svc_open_runs": "Agent runs in progress.",
    "svc_writer_waiting_jobs": "Transactions that wait for the database writer.",
    "svc_reader_waiting_jobs": "Reads that wait for a database reader.",
    "svc_body_bytes": "Memory of request bodies over 64 KiB.",
    "svc_workers": "Worker processes in use, by product.",
    "svc_server_skipped": "1 if a server of a provider with several addresses is skipped because it has just failed.",
    "svc_holds": "Holds of paid calls in progress.",
    "svc_held_micros": "Sum of the holds, in millionths of a US dollar.",
    "svc_certificate_expiry_timestamp_seconds": "Expiry of the server's certificate, in Unix time.",
    "svc_last_backup_timestamp_seconds": "Time of the last backup by svc backup, in Unix time; 0 if there is none.",
    "svc_database_bytes": "Size of the database file.",
    "svc_wal_bytes": "Size of the database's write-ahead log.",
    "svc_disk_free_bytes": "Free space on the disk of the data folder.",
    "process_start_time_seconds": "Start of the service, in Unix time.",
    "process_cpu_seconds_total": "CPU time of the process, user and system.",
    "process_resident_memory_bytes": "Resident memory of the process.",
    "process_open_fds": "Open file descriptors.",
    "process_max_fds": "Maximum number of open file descriptors.",
}
_PAYMENT_KINDS = {"charge.refunded": "refund", "charge.dispute.created": "dispute", "": "payment"}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
# A gauge's name, its labels, its value.
Reading = tuple[str, Mapping[str, str], float]


class Tally:
    """A counter for each combination of its labels. Those in `begin` are shown before they are counted."""

    def __init__(self, name: str, *labels: str, begin: Iterable[tuple[str, ...]] = ()) -> None:
        self._name = name
        self._labels = labels
        self.sums: defaultdict[tuple[str, ...], int] = defaultdict(int, dict.fromkeys(begin if labels else [()], 0))

    def add(self, *values: str, by: int = 1) -> None:
        self.sums[values] += by

    def lines(self) -> Iterator[str]:
        return _counter(self._name, self._labels, self.sums)


class Histogram:
    """The number of observations up to each of `bounds`, for each combination of its labels."""

    def __init__(self, name: str, bounds: tuple[float, ...], *labels: str) -> None:
        self._name = name
        self._bounds = bounds
        self._labels = labels
        empty: list[float] = [0] * (len(bounds) + 2)  # the sum of the observations, then the number in each bucket
        self._series = defaultdict[tuple[str | int, ...], list[float]](empty.copy, {} if labels else {(): empty.copy()})

    def observe(self, value: float, values: tuple[str | int, ...] = ()) -> None:
        series = self._series[values]
        series[0] += value
        series[bisect_left(self._bounds, value) + 1] += 1

    def totals(self, name: str) -> Iterator[str]:
        """Yield the lines of a counter `name` of all observations."""
        return _counter(name, self._labels, {values: sum(counts) for values, (_, *counts) in self._series.items()})

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, "histogram", _HELP[self._name])
        bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for values, (total, *counts) in sorted(self._series.items()):
            labels = tuple(zip(self._labels, values, strict=True))
            number = 0.0
            for bound, number in zip(bounds, accumulate(counts), strict=True):
                yield f"{self._name}_bucket{_label_set((*labels, ('le', bound)))} {number}"
            yield f"{self._name}_sum{_label_set(labels)} {total!r}"
            yield f"{self._name}_count{_label_set(labels)} {number}"


class Metrics:
    """The counts since the start. `provider` is the name of an operator's provider, `builtin` or `byok`."""

    def __init__(self) -> None:
        self._requests = Histogram("svc_request_duration_seconds", _REQUEST_SECONDS, "method", "route", "status")
        self._refusals = Tally("svc_refusals_total", "route", "code")
        self.runs = Tally("svc_runs_total", "status", "reason")
        self._batch_jobs = Histogram("svc_writer_batch_jobs", _BATCH_JOBS)
        self._commit_seconds = Histogram("svc_writer_commit_duration_seconds", _COMMIT_SECONDS)
        self.upstream_seconds = Histogram("svc_upstream_duration_seconds", _UPSTREAM_SECONDS, "provider")
        self.first_answer_seconds = Histogram("svc_upstream_first_answer_seconds", _UPSTREAM_SECONDS, "provider")
        self.faults = Tally("svc_upstream_faults_total", "provider", "kind")
        self.server_calls = Tally("svc_server_calls_total", "provider", "server")
        self.server_failures = Tally("svc_server_failures_total", "provider", "server")
        self._tokens = Tally("svc_tokens_total", "provider", "kind")
        self._cost = Tally("svc_cost_micros_total", "provider")
        self._overruns = Tally("svc_overruns_total")
        self._overrun_micros = Tally("svc_overrun_micros_total")
        self.unbilled_answers = Tally("svc_unbilled_answers_total")
        kinds = product(_PAYMENT_KINDS.values(), ("true", "false"))
        self._payments = Tally("svc_unbooked_payment_events_total", "kind", "known", begin=kinds)
        self.mails = Tally("svc_mails_total", "outcome", begin=[("sent",), ("refused",), ("failed",)])
        begin = [("password", code) for code in ("ok", "invalid_credentials", "account_suspended")]
        self.sign_ins = Tally("svc_sign_ins_total", "way", "code", begin=begin)
        self._byok_errors = Tally("svc_byok_errors_total")

    def count(
        self, method: str, route: str, status: int, seconds: float, code: object = None, byok: object = None
    ) -> None:
        """Count a request. `route` is the pattern, `code` that of an error; `byok`: an own provider caused it."""
        self._requests.observe(seconds, (method, route, status))
        if code is not None:
            self._refusals.add(route, code if isinstance(code, str) and code in ERRORS else "other")
            if byok and status >= 500:
                self._byok_errors.add()

    def count_commit(self, jobs: int, seconds: float) -> None:
        """Count a commit of the database writer, on its thread."""
        self._batch_jobs.observe(jobs)
        self._commit_seconds.observe(seconds)

    def count_call(
        self, provider: str, input_tokens: int, output_tokens: int, cached_input_tokens: int, cost_micros: int
    ) -> None:
        tokens = self._tokens.sums
        tokens[provider, "input"] += input_tokens
        tokens[provider, "output"] += output_tokens
        tokens[provider, "cached"] += cached_input_tokens
        self._cost.sums[provider,] += cost_micros

    def count_overrun(self, micros: int) -> None:
        self._overruns.add()
        self._overrun_micros.add(by=micros)

    def count_payment(self, event_type: str, *, known: bool) -> None:
        self._payments.add(_PAYMENT_KINDS.get(event_type, "payment"), "true" if known else "false")

    def text(self, readings: Iterable[Reading]) -> str:
        lines = [*self._requests.totals("svc_requests_total")]
        lines += [line for family in vars(self).values() for line in family.lines()]
        given = list(readings)
        for name, about in GAUGES.items():
            lines += _head(name, "counter" if name.endswith("_total") else "gauge", about)
            lines += [f"{name}{_label_set(labels.items())} {value!r}" for own, labels, value in given if own == name]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _counter(name: str, labels: Sequence[str], sums: Mapping[tuple[Any, ...], float]) -> Iterator[str]:
    yield from _head(name, "counter", _HELP[name])
    for values, number in sorted(sums.items()):
        yield f"{name}{_label_set(zip(labels, values, strict=True))} {number}"


def _label_set(labels: Iterable[tuple[str, str | int]]) -> str:
    text = ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{text}}}" if text else ""
