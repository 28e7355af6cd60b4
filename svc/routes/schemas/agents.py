"""Shapes of agent runs and their events."""

from typing import Any

from svc.agents import runs
from svc.agents.tools import TOOLS
from svc.routes.schemas.chat import COMPLETION_USAGE
from svc.routes.schemas.common import COUNT, ID, MICROS, TIMESTAMP, example_id, id_of
from svc.server.error_schemas import ERROR_DETAIL
from svc.server.interface import Answer, Content, as_event, event_of, kind_of, named_header, variants
from svc.shapes import Fields, Shape, anything, boolean, json_object, list_of, mapping, nullable, one_of, string, whole

_STEPS = whole.about(example=6, minimum=1)
_REASON = string.about(
    "`max_steps`, `requested`, `shutdown`, `account_deleted`, `account_suspended` or `client_disconnected`.",
    "max_steps",
)
_TOTALS: Fields = {"steps": COUNT.about(example=2), "usage": COMPLETION_USAGE, "cost_micros": MICROS}
_CALL = {"id": string.about(example="call_01m3250v3vfsgzezy8ak224fj9"), "name": string.about(example="calculate")}
_RUN_ARTIFACT = json_object(
    "RunArtifact", id=ID, name=string, content_type=string, size=COUNT.about("The size in bytes.")
)


def _event(title: str, kind: str, description: str, /, **fields: Shape[Any]) -> Shape[dict[str, Any]]:
    number = whole.about("The event's number: 1, 2, 3 … without gaps.", 1, minimum=1)
    return kind_of(title, kind, description, run_id=id_of("run"), seq=number, **fields)


_STARTED = _event(
    "RunStarted",
    "started",
    "The first event.",
    model=string.about(example="builtin/assistant"),
    max_steps=_STEPS,
    tools=list_of(one_of(*TOOLS)).about(example=["calculate", "current_time"]),
)
_STEP = _event("RunStep", "step", "The model is called once more.", step=whole.about(example=1, minimum=1))
_DELTA = _event("RunDelta", "delta", "A chunk of the model's text.", text=string.about(example="12 * (3 + 4) = 84"))
_FURTHER = (
    _event(
        "RunToolCall",
        "tool_call",
        "The model calls a tool.",
        **_CALL,
        arguments=mapping.about(example={"expression": "12 * (3 + 4)"}),
    ),
    _event(
        "RunToolResult",
        "tool_result",
        "The result of a tool. With `ok: false` it is the reason of the failure.",
        **_CALL,
        ok=boolean,
        result=anything.about("Any JSON.", "84"),
    ),
    _event(
        "RunFinal",
        "final",
        "The goal is reached. This is the last event.",
        output=string.about("The answer, or the text of the model's refusal.", "12 * (3 + 4) = 84"),
        finish_reason=nullable(string).about(
            "Of the last step, as the model server sent it: `stop`, `length`, `content_filter`.", "stop"
        ),
        **_TOTALS,
        artifacts=list_of(_RUN_ARTIFACT).about("The artifacts that the run wrote.", []),
    ),
    _event("RunError", "error", "The run failed. This is the last event.", error=ERROR_DETAIL, **_TOTALS),
    _event("RunStopped", "stopped", "The run was stopped. This is the last event.", reason=_REASON, **_TOTALS),
)
_EVENTS = (_STARTED, _STEP, _DELTA, *_FURTHER)
_TRUNCATED = kind_of("RunTruncated", "truncated", "Further events, up to the last one, are not kept.")
_KEPT = variants(_STARTED, _STEP, *_FURTHER, _TRUNCATED).named("KeptRunEvent")
RUN = json_object(
    "Run",
    "The record of an agent run.",
    id=id_of("run"),
    status=one_of(*runs.STATUSES).about(example="final"),
    goal=string.about("In a list, goals and outputs are cut after 10,000 characters.", "Calculate 12 * (3 + 4)"),
    model=string.about(example="builtin/assistant"),
    max_steps=_STEPS,
    output=nullable(string).about("The result of a `final` run.", "12 * (3 + 4) = 84"),
    error=nullable(ERROR_DETAIL).about(
        "Why a run with status `error` failed. Code `interrupted`: the server stopped during the run."
    ),
    reason=nullable(_REASON),
    **_TOTALS,
    project_id=nullable(ID).about("The project that it belongs to."),
    created_at=TIMESTAMP,
    finished_at=nullable(TIMESTAMP).about(example="2026-09-21T14:13:20.456Z"),
)
RUN_WITH_EVENTS = json_object(
    "RunWithEvents",
    "The record of an agent run with its events.",
    RUN,
    events=list_of(_KEPT).about(example=[_STARTED.example]),
)
RUN_ANSWER = Answer(
    "The events of the run. The last one is exactly one of `final`, `error` and `stopped`.",
    contents={
        "text/event-stream": Content(
            event_of("RunStreamEvent", "The event as JSON.", variants(*_EVENTS).named("RunEvent")),
            {one.example["type"]: as_event({**one.example, "seq": number}) for number, one in enumerate(_EVENTS, 1)},
        )
    },
    headers={"x-service-run": named_header("Run", "The run's id.", ID, example_id("run"))},
)
