"""What is counted for Prometheus, and its text format (version 0.0.4): counters and histograms since the start, gauges of now.

To count is a look-up and an addition, without a lock: each series has one thread that writes it, and a reader may see the sum of
a histogram one observation ahead of its buckets. No label holds what a caller chose: the series would grow without end.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, product

from svc.errors import ERRORS

# Answers come within milliseconds, or as streams that last for minutes.
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_UPSTREAM_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_COMMIT_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_BATCH_JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

# What is read at the moment of a scrape; a reading that there is none of (no certificate behind a proxy) is left out.
GAUGES = {
    "svc_build_info": "Always 1; the labels tell which version runs, and on which Python.",
    "svc_open_answers": "Answers being given that stay open: event streams, and calls of models.",
    "svc_open_runs": "Agent runs under way.",
    "svc_writer_waiting_jobs": "Transactions that wait for the database's writer.",
    "svc_reader_waiting_jobs": "Reads that wait for one of the database's readers.",
    "svc_body_bytes": "Memory taken by request bodies of over 64 KiB.",
    "svc_workers": "Helper processes at work, by what they make.",
    "svc_holds": "Holds of paid calls under way.",
    "svc_held_micros": "Sum of the holds, in millionths of a US dollar.",
    "svc_certificate_expiry_timestamp_seconds": "When the server's certificate expires, in Unix time.",
    "svc_last_backup_timestamp_seconds": "When 'svc backup' last made a backup, in Unix time; 0 for never.",
    "svc_database_bytes": "Size of the database's file.",
    "svc_wal_bytes": "Size of the database's write-ahead log.",
    "svc_disk_free_bytes": "Room left on the disk of the data folder.",
    "process_start_time_seconds": "When the process began to serve, in Unix time.",
    "process_cpu_seconds_total": "CPU time of the process, user and system.",
    "process_resident_memory_bytes": "Memory of the process.",
    "process_open_fds": "Open file descriptors.",
    "process_max_fds": "Most file descriptors that may be open.",
}
_MAIL_OUTCOMES = ("sent", "refused", "failed")
_PAYMENT_KINDS = {"charge.refunded": "refund", "charge.dispute.created": "dispute", "": "payment"}
# A gauge's name, its labels, its value.
Reading = tuple[str, Mapping[str, str], float]


class Tally:
    """A counter, for each combination of its labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        # By the values of its labels. Without labels there is one series, which begins at 0 and not when it is first needed: so
        # its first increase shows.
        self.sums: defaultdict[tuple[str, ...], int] = defaultdict(int, {} if labels else {(): 0})

    def add(self, *values: str, by: int = 1) -> None:
        """Adds to the series of these label values."""
        self.sums[values] += by

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, "counter", self._about)
        for values, number in sorted(self.sums.items()):
            yield f"{self._name}{_labelled(zip(self._labels, values, strict=True))} {number}"


class Histogram:
    """How often an observation was at most each of `bounds`, for each combination of its labels."""

    def __init__(self, name: str, about: str, bounds: tuple[float, ...], *labels: str) -> None:
        self._name = name
        self._about = about
        self._bounds = bounds
        self._labels = labels
        self._series: dict[tuple[str | int, ...], list[float]] = {} if labels else {(): [0] * (len(bounds) + 2)}

    def observe(self, value: float, values: tuple[str | int, ...] = ()) -> None:
        """Counts one observation in the series of these label values."""
        try:
            series = self._series[values]
        except KeyError:
            series = self._series[values] = [0] * (len(self._bounds) + 2)
        series[0] += value  # before the buckets stands the sum
        series[bisect_left(self._bounds, value) + 1] += 1

    def totals(self, name: str, about: str) -> Iterator[str]:
        """A counter of all observations, out of the same numbers."""
        yield from _head(name, "counter", about)
        for values, (_, *counts) in sorted(self._series.items()):
            yield f"{name}{_labelled(zip(self._labels, values, strict=True))} {sum(counts)}"

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, "histogram", self._about)
        bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for values, (total, *counts) in sorted(self._series.items()):
            labels = tuple(zip(self._labels, values, strict=True))
            number = 0.0
            for bound, number in zip(bounds, accumulate(counts), strict=True):
                yield f"{self._name}_bucket{_labelled((*labels, ('le', bound)))} {number}"
            yield f"{self._name}_sum{_labelled(labels)} {total!r}"
            yield f"{self._name}_count{_labelled(labels)} {number}"


class Metrics:
    """What has been counted since the start. `provider` is an operator's (as the catalog names it), `builtin` or `byok`."""

    def __init__(self) -> None:
        self._requests = Histogram(
            "svc_request_duration_seconds",
            "From a request's head to the end of its answer.",
            _REQUEST_SECONDS,
            "method",
            "route",
            "status",
        )
        self._refusals = Tally(
            "svc_refusals_total",
            "Requests that ended in an error, by its code: rate_limit_exceeded, overloaded and quota_exceeded are limits hit.",
            "route",
            "code",
        )
        self.runs = Tally("svc_runs_total", "Agent runs that have ended; reason: why one was stopped.", "status", "reason")
        self._batch_jobs = Histogram("svc_writer_batch_jobs", "Callers' transactions in each commit of the writer.", _BATCH_JOBS)
        self._commit_seconds = Histogram(
            "svc_writer_commit_duration_seconds", "Until the disk has a commit of the writer.", _COMMIT_SECONDS
        )
        self.upstream_seconds = Histogram(
            "svc_upstream_duration_seconds",
            "From asking a model server to the end of its answer, for each try.",
            _UPSTREAM_SECONDS,
            "provider",
        )
        self.first_answer_seconds = Histogram(
            "svc_upstream_first_answer_seconds",
            "From asking a model server to the first part of its answer.",
            _UPSTREAM_SECONDS,
            "provider",
        )
        self.faults = Tally(
            "svc_upstream_faults_total",
            "Tries that failed, by how: unreachable, timeout, status, invalid, cut.",
            "provider",
            "kind",
        )
        self._tokens = Tally("svc_tokens_total", "Tokens of finished calls.", "provider", "direction")
        self._cost = Tally("svc_cost_micros_total", "What callers paid for calls, in millionths of a US dollar.", "provider")
        self._overruns = Tally("svc_overruns_total", "Paid calls that came to more than was held for them.")
        self._overrun_micros = Tally(
            "svc_overrun_micros_total", "What overruns came to, the operator's loss, in millionths of a US dollar."
        )
        self._payments = Tally(
            "svc_unbooked_payment_events_total",
            "Events of the payment processor that the operator has to book; known: whether it names a checkout of this service.",
            "kind",
            "known",
        )
        self.mails = Tally("svc_mails_total", "E-mails; refused: the mail server rejects the recipient's address.", "outcome")
        # These begin at 0, so that the first event shows as an increase.
        for outcome in _MAIL_OUTCOMES:
            self.mails.add(outcome, by=0)
        for kind, known in product(_PAYMENT_KINDS.values(), ("true", "false")):
            self._payments.add(kind, known, by=0)
        self._byok_errors = Tally(
            "svc_byok_errors_total", "Answers with a status of 500 or more that an account's own provider caused."
        )

    def count(self, method: str, route: str, status: int, seconds: float, code: object = None, byok: object = None) -> None:
        """Counts one request. `route` is the pattern, never the path; `code` its error's, which may be a model server's own;
        `byok`: whether the error is of an account's own provider."""
        self._requests.observe(seconds, (method, route, status))
        if code is not None:
            self._refusals.add(route, code if isinstance(code, str) and code in ERRORS else "other")
            if byok and status >= 500:
                self._byok_errors.add()

    def count_commit(self, jobs: int, seconds: float) -> None:
        """Counts one commit of the database's writer, on its thread."""
        self._batch_jobs.observe(jobs)
        self._commit_seconds.observe(seconds)

    def count_call(self, provider: str, input_tokens: int, output_tokens: int, cost_micros: int) -> None:
        """Counts what a finished call of a model has used, and what its caller paid."""
        tokens = self._tokens.sums
        tokens[provider, "input"] += input_tokens
        tokens[provider, "output"] += output_tokens
        self._cost.sums[provider,] += cost_micros

    def count_overrun(self, micros: int) -> None:
        """Counts a call that came to more than was held for it, by so many micros: the operator's loss."""
        self._overruns.add()
        self._overrun_micros.add(by=micros)

    def count_payment(self, event_type: str, *, known: bool) -> None:
        """Count an event of the payment processor that the operator has to book."""
        self._payments.add(_PAYMENT_KINDS.get(event_type, "payment"), "true" if known else "false")

    def text(self, readings: Iterable[Reading]) -> str:
        """Everything in the text format, with the gauges' `readings`."""
        lines = [*self._requests.totals("svc_requests_total", "HTTP requests answered.")]
        lines += [line for family in vars(self).values() for line in family.lines()]
        given = list(readings)
        for name, about in GAUGES.items():
            lines += _head(name, "counter" if name.endswith("_total") else "gauge", about)
            lines += [f"{name}{_labelled(labels.items())} {value!r}" for own, labels, value in given if own == name]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _labelled(labels: Iterable[tuple[str, str | int]]) -> str:
    text = ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels)
    return f"{{{text}}}" if text else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
