"""svc/inference/fault_log.py: the operator reads the cause of a failure, and no text of a user."""

import re
import time
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer.upstream_errors import error_object
from svc.inference.fault_log import log_fields, without_callers_words
from svc.inference.passed_fields import DEMANDS, OTHER_LIMITS, PASSED
from tests.support.cases import each
from tests.support.server import ROOT

CANARY = "Zanzibar's hunter2 geheim кот 密码 4711 🦜"
CANARIES = ("anzibar", "hunter2", "geheim", "кот", "密码", "4711", "🦜", "u0437", "x9c")
SHAPES: list[Any] = [
    {"error": {"message": "Invalid value: SAID", "type": "invalid_request_error", "param": "SAID", "code": None}},
    {"error": {"message": "SAID", "type": "SAID", "param": "messages[0].SAID", "code": "SAID"}},
    {"error": "model output SAID is not valid JSON"},
    {"detail": [{"loc": ["body", "SAID"], "msg": "field required", "type": "missing", "input": "SAID"}]},
    {"detail": "Your input 'SAID' was flagged"},
    {"message": 'Unrecognized request argument supplied: "SAID"'},
    {"error": {"message": "Provider returned error", "code": 403, "metadata": {"raw": '{"error": "about SAID"}'}}},
    {"error": {"message": "Your input was flagged", "metadata": {"raw": "SAID", "flagged_input": "SAID"}}},
    {"error": {"message": "blocked", "innererror": {"message": "content: SAID"}}},
    {"errors": [{"message": "SAID"}, {"message": "`SAID`"}], "title": "SAID"},
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded: “SAID”"}},
    {"object": "error", "message": "last read: '<|im_start|>SAID<|im_end|>'; expected end of input", "code": 500},
    [{"error": {"code": 400, "message": "INVALID_ARGUMENT SAID", "status": "INVALID_ARGUMENT"}}],
    "failed to parse the request SAID",
]
FORMS = (
    CANARY,
    CANARY.upper(),
    CANARY[3:],
    CANARY.replace(" ", "_"),
    "".join(CANARY.split()),
    ascii(CANARY),
    orjson.dumps(CANARY).decode(),
    repr(CANARY.encode()),
)

LISTED = {*(ROOT / "svc/inference/error_words.txt").read_text().split(), *PASSED, *DEMANDS, *OTHER_LIMITS, ""}
LISTED |= {part for name in LISTED for part in name.split("_")}


def filled(shape: Any, said: str) -> Any:
    if isinstance(shape, dict):
        return {name: filled(value, said) for name, value in shape.items()}
    if isinstance(shape, list):
        return [filled(value, said) for value in shape]
    return shape.replace("SAID", said) if isinstance(shape, str) else shape


@each("shape", SHAPES)
@each("said", FORMS)
@each("status", [302, 400, 401, 403, 404, 422, 429, 500, 503])
def test_log_has_no_text_of_a_user_in_any_form_of_an_error(shape: Any, said: str, status: int) -> None:
    fault = UpstreamFault("status", status=status, error=error_object(filled(shape, said), "sk-key-of-the-operator"))
    logged = str(log_fields(fault, byok=False, model_name="small")).casefold()
    assert not [canary for canary in CANARIES if canary in logged], logged


@given(st.text() | st.lists(st.sampled_from(sorted(LISTED)) | st.text(max_size=9)).map(" ".join))
def test_log_has_only_listed_words_of_any_message(message: str) -> None:
    logged = without_callers_words(f"Invalid value: {message}", "").removesuffix("…")
    assert logged.replace("…", "").isascii()
    *words, last = re.findall(r"\w+", logged) or [""]  # the last one may be cut
    assert [word for word in words if not word.isdigit() and not LISTED.issuperset(word.casefold().split("_"))] == []
    rest = last.casefold().rpartition("_")[2]
    assert last.isdigit() or any(word.startswith(rest) for word in LISTED)


@each(
    ("message", "logged"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 12000 tokens.",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 12000 tokens.",
        ),
        ("You exceeded your current quota, please check your plan and billing details.", None),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", None),
        ("model 'llama3.2:70b' not found, try pulling it first", None),
        ("The model failed with status 503", None),
        ("Rate limit reached for organization org-abc on tokens per min", "Rate limit reached for organization … on"),
        ("Invalid value for 'temperature': my secret", "Invalid value for 'temperature': …"),
        ("Invalid value 'the model is not a user'", "Invalid value …"),
        ("my secret diary", "…"),
        ("limit " * 100, f"{'limit ' * 49}limit…"),
    ],
)
def test_log_has_the_cause_in_the_words_of_the_model_server(message: str, logged: str | None) -> None:
    told = without_callers_words(message, "llama3.2:70b")
    assert told.startswith(logged or message) and len(told) <= 300


@each("part", ["“", "' ", '"a', "… ", "1", "status ", "\\", "a_", "'`\""])
def test_any_message_is_read_quickly(part: str) -> None:
    began = time.thread_time()
    assert len(without_callers_words(part * 10_000, "")) <= 300
    assert time.thread_time() - began < 0.1


def test_log_has_code_type_and_param_of_an_error() -> None:
    error = {"message": "bad request", "type": "invalid_request_error", "param": "max_tokens", "code": "E12"}
    fault = UpstreamFault("status", status=400, error=error)
    assert log_fields(fault, byok=False, model_name="") == {
        "upstream_fault": "status",
        "upstream_status": 400,
        "upstream_code": "E12",
        "upstream_type": "invalid_request_error",
        "upstream_param": "max_tokens",
        "upstream_error": "bad request",
    }


def test_log_has_only_kind_and_status_of_faults_of_users_own_servers() -> None:
    error = {"message": "the key is expired", "type": "t", "param": "p", "code": "c"}
    fault = UpstreamFault("status", status=401, error=error)
    assert log_fields(fault, byok=True, model_name="") == {"upstream_fault": "status", "upstream_status": 401}
    assert log_fields(UpstreamFault("cut"), byok=False, model_name="") == {"upstream_fault": "cut"}
