"""Refusals that several parts of the interface share."""

from svc.server.interface import Refusal, header, integer

MODEL_NOT_FOUND = Refusal("model_not_found", param="model")
PROJECT_NOT_FOUND = Refusal("not_found", "There is no such project.", "project_id", "The account has no such project.")
NO_ROOM = Refusal(
    "quota_exceeded",
    when="The account lacks the room for what is stored; the message says how many bytes it needs. A call that stores its answer "
    "reserves 32 bytes a token of the output limit, at most 256 KiB, before the model is asked.",
)
NO_FUNDS = Refusal(
    "insufficient_funds",
    "This needs $0.01 (9000 micros). The wallet has $0.00 (0 micros), of which $0.00 (0 micros) is held for requests under way. "
    "Add funds in the browser, at /checkout.",
    when="The wallet does not cover this request; the message tells what is needed and what is there.",
)
OWN_ADDRESS = Refusal("address_not_allowed", when="The caller's own provider is at an address that may not be reached.")
PERHAPS_RETRY_AFTER = header("Seconds to wait, where the model server tells them.", integer(minimum=0), 7, required=False)
STORAGE = Refusal("storage_unavailable")
# What comes of a model server, before the first byte of an answer.
MODEL_SERVER = (
    Refusal(
        "unknown_parameter",
        "Unrecognized request argument supplied: tempo",
        "tempo",
        "The model server's own refusal, with its status and its error object: a parameter that it does not take, a context that "
        "is too long, a content filter.",
        status="4XX",
        type="invalid_request_error",
        headers={"retry-after": PERHAPS_RETRY_AFTER},
    ),
    Refusal(
        "invalid_api_key",
        "mine: Incorrect API key provided: ***.",
        when="A provider of the caller's own refused the key that it was given; its name stands in front.",
    ),
    Refusal("upstream_unreachable"),
    Refusal("upstream_error"),
    Refusal("upstream_invalid_response"),
    Refusal("upstream_timeout"),
    Refusal("upstream_error", status="503", when="The model server is busy."),
    Refusal("upstream_error", status="504"),
)
