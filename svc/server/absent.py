"""Paths of OpenAI's and Anthropic's API that do not exist here, and what to use instead."""

from svc.errors import ApiError

_NOT_STORED = "Responses and chat completions are not stored here. Send the whole conversation with each request."
_SEGMENTS = 4  # the longest path in the table, after the first slash
# By path, also for all paths below it, and with a slash at the end only for those: what it is, and what replaces it.
ABSENT: dict[str, tuple[str, str]] = {
    "v1/completions": ("text completions endpoint", "Use POST /v1/chat/completions."),
    "v1/engines": ("engines endpoint", "Use GET /v1/models."),
    "v1/edits": ("edits endpoint", "Use POST /v1/chat/completions."),
    "v1/embeddings": ("embeddings endpoint", "Ask your model server for embeddings directly."),
    "v1/rerank": ("rerank endpoint", "Ask your model server directly."),
    "v1/moderations": ("moderations endpoint", ""),
    "v1/audio/translations": ("audio translations endpoint", "Use POST /v1/audio/transcriptions, and a chat model."),
    "v1/images/edits": ("image edits endpoint", "Use POST /v1/images/generations."),
    "v1/images/variations": ("image variations endpoint", "Use POST /v1/images/generations."),
    "v1/videos": ("videos endpoint", ""),
    "v1/files": ("files endpoint", "Use POST /artifacts, or send the text in the message."),
    "v1/uploads": ("uploads endpoint", "Use POST /artifacts."),
    "v1/batches": ("batches endpoint", "Send the requests one by one."),
    "v1/fine_tuning": ("fine-tuning endpoint", ""),
    "v1/fine-tunes": ("fine-tuning endpoint", ""),
    "v1/evals": ("evals endpoint", ""),
    "v1/assistants": ("assistants endpoint", "Use POST /v1/responses, or POST /v1/agents/run."),
    "v1/threads": ("threads endpoint", "Use POST /v1/responses, or the service's own /conversations."),
    "v1/conversations": ("/v1/conversations", "Use the service's own /conversations."),
    "v1/vector_stores": ("vector stores endpoint", "Send the text in the message."),
    "v1/containers": ("containers endpoint", ""),
    "v1/skills": ("skills endpoint", ""),
    "v1/chatkit": ("ChatKit endpoint", ""),
    "v1/organization": ("organization endpoint", "Administrators use /admin/users and /admin/usage."),
    "v1/organizations": ("organizations endpoint", "Administrators use /admin/users and /admin/usage."),
    "v1/realtime": ("realtime endpoint", "Use POST /v1/responses with stream: true."),
    "v1/chat/completions/": ("store of chat completions", _NOT_STORED),
    "v1/responses/": ("store of responses", _NOT_STORED),
    "v1/responses/compact": ("endpoint that compacts responses", "Ask the model for a summary."),
    "v1/responses/input_tokens": ("endpoint for the tokens of responses", "Use POST /v1/messages/count_tokens."),
    "v1/complete": ("text completions endpoint", "Use POST /v1/messages."),
    "v1/messages/batches": ("batches endpoint", "Send the requests one by one to POST /v1/messages."),
}
_API = frozenset({"chat", "responses", "messages", "models", "completions", "embeddings", "images", "audio"})


def not_found(path: str) -> ApiError:
    """Return the error for an unknown path."""
    parts = [part for part in path.split("/", _SEGMENTS + 1)[1 : _SEGMENTS + 1] if part]
    for count in range(len(parts), 1, -1):
        prefix = "/".join(parts[:count])
        if found := ABSENT.get(prefix) or (ABSENT.get(f"{prefix}/") if count < len(parts) else None):
            name, instead = found
            return ApiError("not_found", f"This service has no {name}. {instead}".strip())
    if parts[:1] and parts[0] in _API:
        return ApiError("not_found", "The API is below /v1. Add /v1 to the base URL of the client.")
    if parts[:2] == ["v1", "v1"]:
        return ApiError("not_found", "The path has /v1 twice. Remove /v1 from the base URL of the client.")
    return ApiError("not_found")
