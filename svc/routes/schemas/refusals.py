"""Refusals that several operations share."""

from svc.routes.schemas.common import COUNT
from svc.server.interface import Refusal, header

MODEL_NOT_FOUND = Refusal("model_not_found", param="model")
PROJECT_NOT_FOUND = Refusal("not_found", "There is no such project.", "project_id", "The account has no such project.")
NO_ROOM = Refusal(
    "quota_exceeded",
    when="The account has too little storage left. The message names the bytes that are needed. A call that stores its answer "
    "reserves 32 bytes for each token of the output limit, at most 256 KiB, before the model is called.",
)
NO_FUNDS = Refusal(
    "insufficient_funds",
    "This needs $0.01 (9000 micros). The wallet has $0.00 (0 micros), of which $0.00 (0 micros) is reserved for running "
    "requests. Add funds in the browser, at /checkout.",
    when="The wallet does not cover this request. The message names the amount that is needed and the balance.",
)
OWN_ADDRESS = Refusal("address_not_allowed", when="The caller's own provider has an address that is not allowed.")
PERHAPS_RETRY_AFTER = header("The seconds to wait, if the model server sends them.", COUNT, 7, required=False)
STORAGE = Refusal("storage_unavailable")
# Errors of the model server before the first byte of an answer.
MODEL_SERVER = (
    Refusal(
        "unknown_parameter",
        "Unrecognized request argument supplied: tempo",
        "tempo",
        "The model server's own refusal, with its status and error object: an unsupported parameter, a context that is too long, "
        "a content filter.",
        status="4XX",
        type="invalid_request_error",
        headers={"retry-after": PERHAPS_RETRY_AFTER},
    ),
    Refusal(
        "invalid_api_key",
        "mine: Incorrect API key provided: ***.",
        when="The caller's own provider refused its key. The message begins with the provider's name.",
    ),
    Refusal("upstream_unreachable"),
    Refusal("upstream_error"),
    Refusal("upstream_invalid_response"),
    Refusal("upstream_timeout"),
    Refusal("upstream_error", status="503", when="The model server is busy."),
    Refusal("upstream_error", status="504"),
)
