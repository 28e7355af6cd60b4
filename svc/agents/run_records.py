"""The records of agent runs."""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from svc import json_text, quota
from svc.content import file_search, history
from svc.ids import fields_as_json
from svc.tables import Table, delete_found, refusals

GOAL_LENGTH = 1_000_000
EVENTS_BYTES = 256 * 1024  # of the events that are kept, besides the last one
_OF_LAST_EVENT = {"final": ("output", "finish_reason", "artifacts"), "error": ("error",), "stopped": ("reason",)}
_FIELDS = "id status goal model max_steps steps output reason cost_micros project_id created_at finished_at"
_IN_A_LIST = ", ".join([*_FIELDS.split(), "error", "prompt_tokens", "completion_tokens"])
_TEXTS = ("goal", "output", "error", "events")
TABLE = Table[sqlite3.Row]("runs", lambda row: row, "run", "run", at_once=1, listed=_IN_A_LIST, texts=_TEXTS)
_LISTED_CHARACTERS = 10_000
STATUSES = ("running", *_OF_LAST_EVENT)
_STOPPED = "The server stopped in the middle of this run. Start it again."
_INTERRUPTED = {"message": _STOPPED, "type": "api_error", "code": "interrupted", "param": None}


class RunOutcome(NamedTuple):
    """The status of a run: `running`, or `final`, `error` or `stopped`, each with its field.

    The end of a run has no steps, usage and cost before these are known.
    """

    status: str
    steps: int = 0
    usage: Mapping[str, int] = {}
    cost_micros: int = 0
    output: str | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None


def add_run(tx: sqlite3.Connection, account_id: str, run: dict[str, Any], now_seconds: float) -> None:
    """Store a new run.

    Raises ApiError `not_found` for a project that is not the account's, `invalid_api_key` if the account was deleted.
    """
    quota.check_row(tx, account_id, run["goal"])
    with refusals(run["project_id"]):
        TABLE.insert(tx, {**run, "account_id": account_id, "created_at": now_seconds})


def update_run(
    tx: sqlite3.Connection, account_id: str, run_id: str, outcome: RunOutcome, now_seconds: float, events: bytes
) -> bool:
    """Store what a running run has done and cost so far, or how it ended. Return False if it had ended already.

    `events` are lines of JSON: first the fields that only the last event has, and the sources. The events before it
    follow.
    """
    error = None if outcome.error is None else orjson.dumps(outcome.error).decode()
    ended_at = None if outcome.status == "running" else now_seconds
    values = {**outcome._asdict(), **outcome.usage, "error": error, "account_id": account_id, "id": run_id}
    updated = tx.execute(
        """
        UPDATE runs SET status = :status, steps = :steps, output = :output, error = :error, reason = :reason,
            prompt_tokens = :prompt_tokens, completion_tokens = :completion_tokens, cost_micros = :cost_micros,
            finished_at = :ended_at, events = :events
        WHERE account_id = :account_id AND id = :id AND status = 'running'
        """,
        {**values, "ended_at": ended_at, "events": events.decode()},
    )
    return updated.rowcount == 1


def end_interrupted_runs(tx: sqlite3.Connection, now_seconds: float) -> int:
    """End the runs that a crash left open with the error `interrupted`, and return their number."""
    return tx.execute(
        "UPDATE runs SET status = 'error', error = ?, finished_at = ? WHERE status = 'running'",
        (orjson.dumps(_INTERRUPTED).decode(), now_seconds),
    ).rowcount


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    usage = {name: row[name] for name in ("prompt_tokens", "completion_tokens")}
    usage["total_tokens"] = sum(usage.values())
    error = orjson.loads(row["error"] or "null")
    return {**fields_as_json(dict(row), _FIELDS), "error": error, "usage": usage}


def last_event(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `final`, `error` or `stopped` event of a run out of its fields."""
    status = fields["status"]
    names = (*_OF_LAST_EVENT[status], "steps", "usage", "cost_micros")
    return {"type": status, **{name: fields[name] for name in names}}


def with_events(row: sqlite3.Row, until_now: Sequence[bytes] | None = None) -> bytes:
    """Return a run as JSON with its sources, the citations of its output, and its events.

    `until_now` are the events of a run in progress, by default the stored ones.
    """
    run = as_json(row)
    first, *events = (row["events"] or '{"seq":1,"finish_reason":null,"artifacts":[]}').encode().split(b"\n")
    own = orjson.loads(first)
    run["sources"] = own.pop("sources", [])
    run["citations"] = file_search.citations_of(run["output"] or "", run["sources"])
    if run["status"] == "running":
        events = events if until_now is None else list(until_now)
    else:
        numbered = {"type": run["status"], "run_id": run["id"], "seq": own["seq"]}
        events.append(json_text.dumps(numbered | last_event(run | own)))
    return b'%b,"events":[%b]}' % (json_text.dumps(run)[:-1], b",".join(events))


def in_a_list(row: sqlite3.Row) -> dict[str, Any]:
    """Return a run in the form of a list, with a long goal or output shortened."""
    run = as_json(row)
    for name in ("goal", "output"):
        if run[name] is not None and len(run[name]) > _LISTED_CHARACTERS:
            run[name] = run[name][: _LISTED_CHARACTERS - 1] + "\u2026"
    return run


def _delete_with_messages(tx: sqlite3.Connection, account_id: str, rowid: int, run_id: str) -> None:
    if not history.delete_some(tx, account_id, run_id=run_id):
        TABLE.delete_row(tx, account_id, rowid)


_OLD = "SELECT account_id, rowid, id FROM runs WHERE finished_at < ? ORDER BY finished_at LIMIT 1"
delete_old = partial(delete_found, _OLD, _delete_with_messages)
_ENDED = "SELECT account_id, rowid FROM runs WHERE account_id = ? AND status <> 'running' LIMIT 1"
delete_some = partial(delete_found, _ENDED, TABLE.delete_row)  # of an account that is being deleted
