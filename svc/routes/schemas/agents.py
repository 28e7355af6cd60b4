"""Schemas of agent runs and their events."""

from svc.agents.tools import TOOLS
from svc.routes.schemas.chat import COMPLETION_USAGE
from svc.routes.schemas.common import ID, TIMESTAMP
from svc.routes.schemas.headers import RUN_HEADER
from svc.server.error_schemas import ERROR_DETAIL
from svc.server.interface import (
    Answer,
    Content,
    array,
    as_event,
    boolean,
    choice,
    integer,
    or_null,
    page_of,
    record,
    string,
    tagged,
)

RUN_ARTIFACT = record("RunArtifact", {"id": ID, "name": string(), "content_type": string(), "size": integer("Bytes.", minimum=0)})
RUN_STARTED = record(
    "RunStarted",
    {
        "type": choice("started"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "model": string(),
        "max_steps": integer(minimum=1),
        "tools": array(choice(*TOOLS)),
    },
    description="The first event.",
)
RUN_STEP = record(
    "RunStep",
    {"type": choice("step"), "run_id": ID, "seq": integer("1, 2, 3 … without gaps.", minimum=1), "step": integer(minimum=1)},
    description="The model is asked once more.",
)
RUN_DELTA = record(
    "RunDelta",
    {"type": choice("delta"), "run_id": ID, "seq": integer("1, 2, 3 … without gaps.", minimum=1), "text": string()},
    description="A piece of what the model says.",
)
RUN_TOOL_CALL = record(
    "RunToolCall",
    {
        "type": choice("tool_call"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "id": string(),
        "name": string(),
        "arguments": {"type": "object", "additionalProperties": True},
    },
    description="The model calls a tool.",
)
RUN_TOOL_RESULT = record(
    "RunToolResult",
    {
        "type": choice("tool_result"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "id": string(),
        "name": string(),
        "ok": boolean(),
        "result": {"description": "Any JSON."},
    },
    description="What the tool answered; with `ok: false` the reason why it could not.",
)
RUN_FINAL = record(
    "RunFinal",
    {
        "type": choice("final"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "output": string("The answer; where the model refused, the text that says so."),
        "finish_reason": or_null(string("Of the last step, as the model server gave it: `stop`, `length`, `content_filter`.")),
        "steps": integer(minimum=0),
        "usage": COMPLETION_USAGE,
        "cost_micros": integer("What the run cost, in millionths of a US dollar.", minimum=0),
        "artifacts": array(RUN_ARTIFACT, "What it wrote."),
    },
    description="The goal is reached: the last event.",
)
RUN_ERROR = record(
    "RunError",
    {
        "type": choice("error"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "error": ERROR_DETAIL,
        "steps": integer(minimum=0),
        "usage": COMPLETION_USAGE,
        "cost_micros": integer("What the run cost, in millionths of a US dollar.", minimum=0),
    },
    description="The run failed: the last event.",
)
RUN_STOPPED = record(
    "RunStopped",
    {
        "type": choice("stopped"),
        "run_id": ID,
        "seq": integer("1, 2, 3 … without gaps.", minimum=1),
        "reason": string("`max_steps`, `requested`, `shutdown`, `account_deleted`, `client_disconnected`."),
        "steps": integer(minimum=0),
        "usage": COMPLETION_USAGE,
        "cost_micros": integer("What the run cost, in millionths of a US dollar.", minimum=0),
    },
    description="The run was stopped: the last event.",
)
RUN_EVENT = tagged(
    "RunEvent", "type", RUN_STARTED, RUN_STEP, RUN_DELTA, RUN_TOOL_CALL, RUN_TOOL_RESULT, RUN_FINAL, RUN_ERROR, RUN_STOPPED
)
RUN_STREAM_EVENT = record(
    "RunStreamEvent",
    {"data": string("The event as JSON.", contentMediaType="application/json", contentSchema=RUN_EVENT)},
    description="One event: a line `data: …` and an empty line.",
    example=as_event(
        {
            "type": "started",
            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
            "seq": 1,
            "model": "builtin/assistant",
            "max_steps": 6,
            "tools": ["calculate", "current_time"],
        }
    ),
)
RUN = record(
    "Run",
    {
        "id": ID,
        "status": choice("running", "final", "error", "stopped"),
        "goal": string("In a list the first 10,000 characters of a longer one, as of the output."),
        "model": string(),
        "max_steps": integer(minimum=1),
        "steps": integer(minimum=0),
        "output": or_null(string("The result of a `final` run.")),
        "error": or_null(
            ERROR_DETAIL, "Why a run with status `error` failed; code `interrupted`: the server stopped in the middle."
        ),
        "reason": or_null(
            string(
                "Why a `stopped` run was stopped: `max_steps`, `requested`, `shutdown`, `account_deleted`, `client_disconnected`."
            )
        ),
        "usage": COMPLETION_USAGE,
        "cost_micros": integer("What the run cost, in millionths of a US dollar.", minimum=0),
        "project_id": or_null(ID, "The project under which it is filed."),
        "created_at": TIMESTAMP,
        "finished_at": or_null(TIMESTAMP),
    },
    description="The record of an agent run.",
    example={
        "id": "run_01m3250v3vn4qvxnatpwzmywwn",
        "status": "final",
        "goal": "Calculate 12 * (3 + 4)",
        "model": "builtin/assistant",
        "max_steps": 6,
        "steps": 2,
        "output": "12 * (3 + 4) = 84",
        "error": None,
        "reason": None,
        "usage": {"prompt_tokens": 210, "completion_tokens": 25, "total_tokens": 235},
        "cost_micros": 0,
        "project_id": None,
        "created_at": "2026-09-21T14:13:20.123Z",
        "finished_at": "2026-09-21T14:13:20.456Z",
    },
)
RUN_LIST = page_of(RUN)
RUN_TEXT = (
    "The run is the stream: it plans with the model, runs tools and sends events, each one line `data: "
    "{json}` and an empty line, without `event:` and `id:`, and without `[DONE]`. It ends on exactly one of "
    "`final`, `error` and `stopped`; a client that goes away stops it. After 15 s of silence comes a comment "
    "block, `: ping`.\n\n"
    "It cannot be attached to again: where a connection was lost, `GET /v1/agents/runs` tells how the run "
    "ended.\n\n"
    "Limits: one admission from the account's chat bucket. Each step of a model with a price is paid from the"
    " wallet.\n\n"
    "Refusals come in this order: 401, 429, then 413, 415, 400 and 404, then 402. Faults of the model server "
    "are events."
)
RUN_ANSWER = Answer(
    "The run: events up to exactly one of `final`, `error` and `stopped`, which is the last.",
    contents={
        "text/event-stream": Content(
            RUN_STREAM_EVENT,
            {
                "started": (
                    "started",
                    as_event(
                        {
                            "type": "started",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 1,
                            "model": "builtin/assistant",
                            "max_steps": 6,
                            "tools": ["calculate", "current_time"],
                        }
                    ),
                ),
                "step": ("step", as_event({"type": "step", "run_id": "run_01m3250v3vn4qvxnatpwzmywwn", "seq": 2, "step": 1})),
                "tool_call": (
                    "tool_call",
                    as_event(
                        {
                            "type": "tool_call",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 3,
                            "id": "call_01m3250v3vfsgzezy8ak224fj9",
                            "name": "calculate",
                            "arguments": {"expression": "12 * (3 + 4)"},
                        }
                    ),
                ),
                "tool_result": (
                    "tool_result",
                    as_event(
                        {
                            "type": "tool_result",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 4,
                            "id": "call_01m3250v3vfsgzezy8ak224fj9",
                            "name": "calculate",
                            "ok": True,
                            "result": "84",
                        }
                    ),
                ),
                "delta": (
                    "delta",
                    as_event(
                        {"type": "delta", "run_id": "run_01m3250v3vn4qvxnatpwzmywwn", "seq": 6, "text": "12 * (3 + 4) = 84"}
                    ),
                ),
                "final": (
                    "final",
                    as_event(
                        {
                            "type": "final",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 7,
                            "output": "12 * (3 + 4) = 84",
                            "finish_reason": "stop",
                            "steps": 2,
                            "usage": {"prompt_tokens": 210, "completion_tokens": 25, "total_tokens": 235},
                            "cost_micros": 0,
                            "artifacts": [],
                        }
                    ),
                ),
                "error": (
                    "error",
                    as_event(
                        {
                            "type": "error",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 3,
                            "error": {
                                "message": "The model server cannot be reached. Try again later.",
                                "type": "upstream_error",
                                "code": "upstream_unreachable",
                                "param": None,
                            },
                            "steps": 1,
                            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
                            "cost_micros": 0,
                        }
                    ),
                ),
                "stopped": (
                    "stopped",
                    as_event(
                        {
                            "type": "stopped",
                            "run_id": "run_01m3250v3vn4qvxnatpwzmywwn",
                            "seq": 9,
                            "reason": "max_steps",
                            "steps": 6,
                            "usage": {"prompt_tokens": 210, "completion_tokens": 25, "total_tokens": 235},
                            "cost_micros": 0,
                        }
                    ),
                ),
            },
        )
    },
    headers={"x-service-run": RUN_HEADER},
)
