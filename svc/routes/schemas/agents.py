"""Shapes of agent runs and their events."""

from typing import Any

from svc.agents import runs
from svc.agents.tools import TOOLS
from svc.routes.schemas.chat import COMPLETION_USAGE
from svc.routes.schemas.common import COUNT, ID, MICROS, RUN_HEADER, TIMESTAMP, id_of
from svc.server.error_schemas import ERROR_DETAIL
from svc.server.interface import Answer, Content, as_event, event_of
from svc.shapes import Fields, Shape, anything, boolean, json_object, list_of, mapping, nullable, one_of, string, tagged, whole

_STEPS = whole.about(example=6, minimum=1)
_REASON = string.about(
    "`max_steps`, `requested`, `shutdown`, `account_deleted`, `account_suspended` or `client_disconnected`.", "max_steps"
)
_TOTALS: Fields = {"steps": COUNT.about(example=2), "usage": COMPLETION_USAGE, "cost_micros": MICROS}
_CALL = {"id": string.about(example="call_01m3250v3vfsgzezy8ak224fj9"), "name": string.about(example="calculate")}
_RUN_ARTIFACT = json_object(
    "RunArtifact", {"id": ID, "name": string, "content_type": string, "size": COUNT.about("The size in bytes.")}
)


def _event(name: str, type: str, description: str, fields: Fields) -> Shape[dict[str, Any]]:
    number = whole.about("The event's number: 1, 2, 3 … without gaps.", 1, minimum=1)
    return json_object(name, {"type": one_of(type), "run_id": id_of("run"), "seq": number, **fields}, description)


_EVENTS = {
    "started": _event(
        "RunStarted",
        "started",
        "The first event.",
        {
            "model": string.about(example="builtin/assistant"),
            "max_steps": _STEPS,
            "tools": list_of(one_of(*TOOLS)).about(example=["calculate", "current_time"]),
        },
    ),
    "step": _event("RunStep", "step", "The model is called once more.", {"step": whole.about(example=1, minimum=1)}),
    "delta": _event("RunDelta", "delta", "A chunk of the model's text.", {"text": string.about(example="12 * (3 + 4) = 84")}),
    "tool_call": _event(
        "RunToolCall",
        "tool_call",
        "The model calls a tool.",
        {**_CALL, "arguments": mapping.about(example={"expression": "12 * (3 + 4)"})},
    ),
    "tool_result": _event(
        "RunToolResult",
        "tool_result",
        "The result of a tool. With `ok: false` it is the reason of the failure.",
        {**_CALL, "ok": boolean, "result": anything.about("Any JSON.", "84")},
    ),
    "final": _event(
        "RunFinal",
        "final",
        "The goal is reached. This is the last event.",
        {
            "output": string.about("The answer, or the text of the model's refusal.", "12 * (3 + 4) = 84"),
            "finish_reason": nullable(string).about(
                "Of the last step, as the model server sent it: `stop`, `length`, `content_filter`.", "stop"
            ),
            **_TOTALS,
            "artifacts": list_of(_RUN_ARTIFACT).about("The artifacts that the run wrote.", []),
        },
    ),
    "error": _event("RunError", "error", "The run failed. This is the last event.", {"error": ERROR_DETAIL, **_TOTALS}),
    "stopped": _event("RunStopped", "stopped", "The run was stopped. This is the last event.", {"reason": _REASON, **_TOTALS}),
}
_RUN_EVENT = tagged("type", _EVENTS).named("RunEvent")
_RUN: Fields = {
    "id": id_of("run"),
    "status": one_of(*runs.STATUSES).about(example="final"),
    "goal": string.about("In a list, goals and outputs are cut after 10,000 characters.", "Calculate 12 * (3 + 4)"),
    "model": string.about(example="builtin/assistant"),
    "max_steps": _STEPS,
    "output": nullable(string).about("The result of a `final` run.", "12 * (3 + 4) = 84"),
    "error": nullable(ERROR_DETAIL).about(
        "Why a run with status `error` failed. Code `interrupted`: the server stopped during the run."
    ),
    "reason": nullable(_REASON),
    **_TOTALS,
    "project_id": nullable(ID).about("The project that it belongs to."),
    "created_at": TIMESTAMP,
    "finished_at": nullable(TIMESTAMP).about(example="2026-09-21T14:13:20.456Z"),
}
RUN = json_object("Run", _RUN, "The record of an agent run.")
_TRUNCATED = json_object("RunTruncated", {"type": one_of("truncated")}, "Further events, up to the last one, are not kept.")
_KEPT = {**{type: shape for type, shape in _EVENTS.items() if type != "delta"}, "truncated": _TRUNCATED}
RUN_WITH_EVENTS = json_object(
    "RunWithEvents",
    {**_RUN, "events": list_of(tagged("type", _KEPT).named("KeptRunEvent")).about(example=[_EVENTS["started"].example])},
    "The record of an agent run with its events.",
)
EVENTS_TEXT = (
    "`events` are those of the stream except `delta`, whose texts are in `output`. The result of a tool is cut after 4,000 "
    "characters of its text or JSON. Events beyond 256 KiB are replaced by one `truncated`. The last event of an ended run is "
    "always there. If the server was killed during the run, the events since the last answer of the model are missing."
)
RUN_TEXT = (
    "The run is the stream. It plans with the model, runs tools and sends events. Each event is one line `data: {json}` and an "
    "empty line, without `event:` and `id:`, and there is no `[DONE]`. The stream ends with exactly one of `final`, `error` and "
    "`stopped`. If the client disconnects, the run is stopped. After 15 s of silence a comment block, `: ping`, is sent.\n\n"
    "A client cannot attach to a run again. If the connection is lost, `GET /v1/agents/runs` shows how the run ended.\n\n"
    "Limits: a run takes one admission from the account's chat bucket. Each step of a model with a price is paid from the wallet."
    "\n\n"
    "Errors are checked in this order: 401, 429, then 413, 415, 400 and 404, then 402. Errors of the model server are events."
)
RUN_ANSWER = Answer(
    "The events of the run. The last one is exactly one of `final`, `error` and `stopped`.",
    contents={
        "text/event-stream": Content(
            event_of("RunStreamEvent", "The event as JSON.", _RUN_EVENT),
            {type: as_event({**event.example, "seq": number}) for number, (type, event) in enumerate(_EVENTS.items(), 1)},
        )
    },
    headers={"x-service-run": RUN_HEADER},
)
