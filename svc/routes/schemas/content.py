"""Shapes of projects, artifacts, conversations and live support."""

from svc.content.artifacts import PROMPT_LENGTH
from svc.content.conversations import MAX_OUTPUT_TOKENS, TEMPERATURE
from svc.content.history import STATUSES
from svc.content.projects import MOST_STEPS
from svc.routes.schemas.common import COUNT, ID, TIMESTAMP, example_id, id_of
from svc.server.error_schemas import ERROR_DETAIL
from svc.shapes import boolean, integer, json_object, list_of, nullable, one_of, optional, string

_TIMES = {"created_at": TIMESTAMP, "updated_at": TIMESTAMP}
_PROJECT_ID = nullable(ID).about("The project that it belongs to.")
PROJECT = json_object(
    "Project",
    id=id_of("proj"),
    name=string.about(example="Thesis"),
    instructions=string.about(example="Answer in British English."),
    max_planner_steps=nullable(integer(1, MOST_STEPS)).about(example=10),
    **_TIMES,
)
CONTENT_URL = (
    f"https://127.0.0.1:8443/artifacts/{example_id('art')}/content?account={example_id('user')}"
    "&expires=1790003600&signature=V1dWMn0dqRxDSmVwZb0m2mTfHGDbBgg9qK4BxP0mR3E"
)
SHA256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
ARTIFACT = json_object(
    "Artifact",
    "A file, without its content.",
    id=id_of("art"),
    name=string.about(example="note.md"),
    content_type=string.about(example="text/markdown"),
    size=COUNT.about("The size in bytes.", 11),
    sha256=string.about("The hash of the content, in hexadecimal.", SHA256, pattern="^[0-9a-f]{64}$"),
    project_id=_PROJECT_ID,
    run_id=nullable(ID).about("The agent run that wrote it."),
    prompt=nullable(string).about(f"Of a generated image, its first {PROMPT_LENGTH:,} characters.", maxLength=PROMPT_LENGTH),
    content_url=string.about("A link to the content that works for an hour without a token.", CONTENT_URL, format="uri"),
    **_TIMES,
)
CONVERSATION = json_object(
    "Conversation",
    id=id_of("conv"),
    title=nullable(string).about(example="Trains"),
    project_id=nullable(string),
    pinned=boolean.about("Whether it comes before all that are not pinned.", False),
    temperature=TEMPERATURE,
    max_output_tokens=MAX_OUTPUT_TOKENS,
    answering=boolean.about("Whether one of its answers is in progress.", False),
    **_TIMES,
)
_PART = json_object("MatchPart", text=string, found=boolean.about("Whether the search matched this part."))
_MATCH = json_object(
    "ConversationMatch",
    message_id=nullable(string).about("The message that matched. Null means the title."),
    parts=list_of(_PART).about("The text, split into parts."),
)
FOUND_CONVERSATION = json_object(
    "FoundConversation", "", CONVERSATION, matches=optional(list_of(_MATCH).about("With `q`: the texts that matched."))
)
INCOMPLETE = optional(
    boolean.about(
        "With `q`: whether the search ran out of time. All returned conversations match the words that were searched by then, "
        "but others may be missing. Search for fewer words."
    )
)
_RECALLED_PASSAGE = json_object(
    "RecalledPassage",
    message_id=string.about("The message that holds the passage."),
    role=one_of("user", "assistant"),
    text=string,
    source=string.about("The id of its conversation or run."),
    created_at=TIMESTAMP,
)
_MESSAGE_ANSWER = json_object(
    "MessageAnswer",
    "Details of an answer.",
    input_tokens=COUNT.about(example=24),
    output_tokens=COUNT.about(example=6),
    cost_micros=COUNT.about("The cost in micros. 0 for free models and own providers."),
    duration_ms=COUNT.about("The time from the request to the end of the answer.", 412),
    finish_reason=nullable(string).about(
        "Why the answer ended, for example `stop` or `length`. Null means that it was cut off or the client disconnected.",
        "stop",
    ),
    reasoning=nullable(string).about("The model's reasoning, if the model server sends it: the first 200,000 characters."),
    memory=list_of(_RECALLED_PASSAGE).about("The passages of earlier messages that the model received.", []),
)
MESSAGE = json_object(
    "Message",
    id=id_of("msg"),
    conversation_id=id_of("conv"),
    role=one_of("system", "user", "assistant").about(example="user"),
    content=string.about(example="When does it leave?"),
    model=nullable(string).about("The model that wrote the message. Null means that no model did."),
    created_at=TIMESTAMP,
    status=one_of(*STATUSES).about(
        "Of an answer. `stopped`: the person stopped it, or the client disconnected. `interrupted`: the server ended. "
        "`failed`: see `error`.",
        "complete",
    ),
    finish_reason=nullable(string).about("Of an answer, as in `answer`."),
    error=nullable(ERROR_DETAIL).about("Why the answer has failed."),
    answer=nullable(_MESSAGE_ANSWER).about("Before the end of an answer, its numbers are 0."),
    versions=list_of(string).about("The ids of all versions of the message, oldest first; empty if it has one.", []),
)
ANSWER_MESSAGE = {
    **MESSAGE.example,
    "role": "assistant",
    "content": "At 7:12.",
    "model": "builtin/assistant",
    "answer": _MESSAGE_ANSWER.example,
}
SUPPORT_MESSAGE = json_object(
    "SupportMessage",
    id=id_of("msg"),
    role=one_of("user", "operator"),
    content=string.about(example="Where is my invoice?"),
    created_at=TIMESTAMP,
)
SUPPORT_STATUS = one_of("active", "closed")
SUPPORT_CONVERSATION = json_object(
    "SupportConversation",
    id=id_of("sup"),
    status=SUPPORT_STATUS,
    subject=nullable(string).about(example="My invoice"),
    **_TIMES,
    closed_at=nullable(TIMESTAMP),
)
SUPPORT_MESSAGES = list_of(SUPPORT_MESSAGE, most=200).about("Oldest first.")
SUPPORT_CONVERSATION_WITH_MESSAGES = json_object(
    "SupportConversationWithMessages", "", SUPPORT_CONVERSATION, messages=SUPPORT_MESSAGES
)
