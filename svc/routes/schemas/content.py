"""Schemas of projects, artifacts, conversations and live support."""

from svc.routes.schemas.common import ID, TIMESTAMP
from svc.server.interface import array, boolean, choice, integer, or_null, page_of, record, string

PROJECT = record(
    "Project",
    {
        "id": ID,
        "name": string(),
        "instructions": string(),
        "max_planner_steps": or_null(integer(minimum=1, maximum=20)),
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
    },
    example={
        "id": "proj_01m3250v3vn4qvxnatpwzmywwn",
        "name": "Thesis",
        "instructions": "Answer in British English.",
        "max_planner_steps": 10,
        "created_at": "2026-09-21T14:13:20.123Z",
        "updated_at": "2026-09-21T14:13:20.123Z",
    },
)
PROJECT_LIST = page_of(PROJECT)
CONTENT_URL = (
    "https://127.0.0.1:8443/artifacts/art_01m3250v3vn4qvxnatpwzmywwn/content?account=user_01m3250v3vn4qvxnatpwzmywwn"
    "&expires=1790003600&signature=V1dWMn0dqRxDSmVwZb0m2mTfHGDbBgg9qK4BxP0mR3E"
)
ARTIFACT = record(
    "Artifact",
    {
        "id": ID,
        "name": string(),
        "content_type": string(),
        "size": integer("Bytes.", minimum=0),
        "sha256": string("Of the content, in hexadecimal.", pattern="^[0-9a-f]{64}$"),
        "project_id": or_null(ID, "The project under which it is filed."),
        "run_id": or_null(ID, "The agent run that wrote it."),
        "content_url": string("Where the content is for an hour, without a token, as an `<img>` needs it.", format="uri"),
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
    },
    description="A file, without its content.",
    example={
        "id": "art_01m3250v3vn4qvxnatpwzmywwn",
        "name": "note.md",
        "content_type": "text/markdown",
        "size": 11,
        "sha256": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
        "project_id": None,
        "run_id": None,
        "content_url": CONTENT_URL,
        "created_at": "2026-09-21T14:13:20.123Z",
        "updated_at": "2026-09-21T14:13:20.123Z",
    },
)
ARTIFACT_LIST = page_of(ARTIFACT)
CONVERSATION = record(
    "Conversation",
    {"id": ID, "title": or_null(string()), "project_id": or_null(string()), "created_at": TIMESTAMP, "updated_at": TIMESTAMP},
    example={
        "id": "conv_01m3250v3vn4qvxnatpwzmywwn",
        "title": "Trains",
        "project_id": None,
        "created_at": "2026-09-21T14:13:20.123Z",
        "updated_at": "2026-09-21T14:13:20.123Z",
    },
)
_MATCH = record(
    "ConversationMatch",
    {
        "message_id": or_null(string("The message that it is from; null: the title.")),
        "parts": array(
            record("MatchPart", {"text": string(), "found": boolean("Whether the search has found this part.")}),
            "A text in parts: together they are the text.",
        ),
    },
)
_FOUND_CONVERSATION = record(
    "FoundConversation",
    {**CONVERSATION["properties"], "matches": array(_MATCH, "With `q`: what of the conversation was found.")},
    required=list(CONVERSATION["properties"]),
    example=CONVERSATION.example,
)
_CONVERSATION_PAGE = page_of(_FOUND_CONVERSATION, "ConversationList")
CONVERSATION_LIST = record(
    _CONVERSATION_PAGE.name,
    {
        **_CONVERSATION_PAGE["properties"],
        "incomplete": boolean(
            "With `q`: whether the search ran out of time. The conversations hold all words that it has looked up by then, and "
            "others may be missing. Ask for fewer words."
        ),
    },
    required=list(_CONVERSATION_PAGE["properties"]),
    example=_CONVERSATION_PAGE.example,
)
_RECALLED_PASSAGE = record(
    "RecalledPassage",
    {
        "message_id": string("The message that it is from."),
        "role": choice("user", "assistant"),
        "text": string(),
        "source": string("The id of the conversation or run that it is from."),
        "created_at": TIMESTAMP,
    },
)
_MESSAGE_ANSWER = record(
    "MessageAnswer",
    {
        "input_tokens": integer(minimum=0),
        "output_tokens": integer(minimum=0),
        "cost_micros": integer("Micros of a US dollar; 0 for free models and own providers.", minimum=0),
        "duration_ms": integer("From the request to the end of the answer.", minimum=0),
        "finish_reason": or_null(string("Why it ended, such as `stop` or `length`; null: it was cut off, or the caller left.")),
        "reasoning": or_null(string("What the model thought before it answered, where it tells: its first 200,000 characters.")),
        "memory": array(_RECALLED_PASSAGE, "The passages of earlier messages that the model was given."),
    },
    description="What an answer took.",
)
MESSAGE = record(
    "Message",
    {
        "id": ID,
        "conversation_id": ID,
        "role": choice("system", "user", "assistant"),
        "content": string(),
        "model": or_null(string("The model that said it; null: no model did.")),
        "created_at": TIMESTAMP,
        "answer": or_null(_MESSAGE_ANSWER),
    },
    example={
        "id": "msg_01m3250v3vn4qvxnatpwzmywwn",
        "conversation_id": "conv_01m3250v3vn4qvxnatpwzmywwn",
        "role": "user",
        "content": "When does it leave?",
        "model": None,
        "created_at": "2026-09-21T14:13:20.123Z",
        "answer": None,
    },
)
MESSAGE_LIST = page_of(MESSAGE)
SUPPORT_MESSAGE = record(
    "SupportMessage",
    {"id": ID, "role": choice("user", "operator"), "content": string(), "created_at": TIMESTAMP},
    example={
        "id": "msg_01m3250v3vn4qvxnatpwzmywwn",
        "role": "user",
        "content": "Where is my invoice?",
        "created_at": "2026-09-21T14:13:20.123Z",
    },
)
SUPPORT_CONVERSATION = record(
    "SupportConversation",
    {
        "id": ID,
        "status": choice("active", "closed"),
        "subject": or_null(string()),
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
        "closed_at": or_null(TIMESTAMP),
    },
    example={
        "id": "sup_01m3250v3vn4qvxnatpwzmywwn",
        "status": "active",
        "subject": "My invoice",
        "created_at": "2026-09-21T14:13:20.123Z",
        "updated_at": "2026-09-21T14:13:20.123Z",
        "closed_at": None,
    },
)
SUPPORT_CONVERSATION_WITH_MESSAGES = record(
    "SupportConversationWithMessages",
    {
        "id": ID,
        "status": choice("active", "closed"),
        "subject": or_null(string()),
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
        "closed_at": or_null(TIMESTAMP),
        "messages": array(SUPPORT_MESSAGE, "The oldest first.", maxItems=200),
    },
    example={
        "id": "sup_01m3250v3vn4qvxnatpwzmywwn",
        "status": "active",
        "subject": "My invoice",
        "created_at": "2026-09-21T14:13:20.123Z",
        "updated_at": "2026-09-21T14:13:20.123Z",
        "closed_at": None,
        "messages": [
            {
                "id": "msg_01m3250v3vn4qvxnatpwzmywwn",
                "role": "user",
                "content": "Where is my invoice?",
                "created_at": "2026-09-21T14:13:20.123Z",
            }
        ],
    },
)
SUPPORT_CONVERSATION_LIST = page_of(SUPPORT_CONVERSATION)
