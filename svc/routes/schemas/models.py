"""Schemas of models and of the caller's own providers."""

from svc.routes.schemas.common import ID, TIMESTAMP
from svc.server.interface import array, boolean, choice, integer, or_null, page_of, record, string
from svc.shapes import Schema

PRICING = record(
    "Pricing",
    {
        "input_micros_per_million_tokens": integer("Chat: for a million tokens of input.", minimum=0),
        "output_micros_per_million_tokens": integer("Chat: for a million tokens of output.", minimum=0),
        "micros_per_image": integer("Image: for one image.", minimum=0),
        "micros_per_thousand_audio_tokens": integer("Speech: for a thousand audio tokens.", minimum=0),
    },
    required=(),
    description="Prices in millionths of a US dollar, those that belong to the model's kind.",
)
MODEL = record(
    "Model",
    {
        "id": string("`<provider>/<model>`; it may hold more slashes, and colons."),
        "object": choice("model"),
        "created": integer("Unix seconds.", minimum=0),
        "owned_by": string("The provider, for clients of OpenAI's format."),
        "kind": choice("chat", "image", "speech", description="What it makes. Only `chat` models answer chat completions."),
        "pricing": PRICING,
        "provider": string("Who answers: `builtin`, a model server of the operator's, or one of the caller's own."),
        "byok": boolean("Whether it is reached with the caller's own key at a provider."),
    },
    example={
        "id": "builtin/assistant",
        "object": "model",
        "created": 1790000000,
        "owned_by": "builtin",
        "kind": "chat",
        "pricing": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0},
        "provider": "builtin",
        "byok": False,
    },
)
MODEL_LIST = record(
    "ModelList",
    {"object": choice("list"), "data": array(MODEL), "has_more": boolean("Always false: the list is whole.")},
    example={
        "object": "list",
        "data": [
            {
                "id": "builtin/assistant",
                "object": "model",
                "created": 1790000000,
                "owned_by": "builtin",
                "kind": "chat",
                "pricing": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0},
                "provider": "builtin",
                "byok": False,
            },
            {
                "id": "builtin/assistant-paid",
                "object": "model",
                "created": 1790000000,
                "owned_by": "builtin",
                "kind": "chat",
                "pricing": {"input_micros_per_million_tokens": 500000, "output_micros_per_million_tokens": 1500000},
                "provider": "builtin",
                "byok": False,
            },
        ],
        "has_more": False,
    },
)
OWN_MODEL: Schema = {
    "description": "A model by the provider's own name, or with what it makes where that is no chat.",
    "anyOf": [
        string(minLength=1, maxLength=300),
        {
            "type": "object",
            "properties": {"id": string(minLength=1, maxLength=300), "kind": choice("chat", "image", "speech")},
            "required": ["id", "kind"],
        },
    ],
}
CREATE_PROVIDER_REQUEST = record(
    "CreateProviderRequest",
    {
        "name": string(
            "A slug: it stands before the names of its models. Unique for the caller, and not one of the operator's.",
            pattern="^[a-z0-9][a-z0-9_-]{0,62}$",
        ),
        "base_url": string(
            "Where its OpenAI-compatible API begins: http or https, without user name, query and fragment. Every "
            "address that its host resolves to must be allowed, at creation as at each use. A new scheme, host or "
            "port drops the stored key unless a new one comes along.",
            maxLength=2000,
            pattern="^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\]+(/[^?#]*)?$",
        ),
        "api_key": or_null(
            string(
                "Sent there as `Authorization: Bearer <key>`, and never shown again: it is stored encrypted. Printable "
                "ASCII without spaces; null for none.",
                pattern="^[!-~]{1,4096}$",
            )
        ),
        "models": or_null(
            array(
                OWN_MODEL,
                "The models to offer, by the provider's own names; null: all, as the provider lists them.",
                maxItems=500,
            )
        ),
    },
    required=("name", "base_url"),
    example={"name": "mine", "base_url": "https://api.example.com/v1", "api_key": "sk-a-key-of-yours-x4Qz"},
)
UPDATE_PROVIDER_REQUEST = record(
    "UpdateProviderRequest",
    {
        "name": string(
            "A slug: it stands before the names of its models. Unique for the caller, and not one of the operator's.",
            pattern="^[a-z0-9][a-z0-9_-]{0,62}$",
        ),
        "base_url": string(
            "Where its OpenAI-compatible API begins: http or https, without user name, query and fragment. Every "
            "address that its host resolves to must be allowed, at creation as at each use. A new scheme, host or "
            "port drops the stored key unless a new one comes along.",
            maxLength=2000,
            pattern="^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\]+(/[^?#]*)?$",
        ),
        "api_key": or_null(
            string(
                "Sent there as `Authorization: Bearer <key>`, and never shown again: it is stored encrypted. Printable "
                "ASCII without spaces; null for none.",
                pattern="^[!-~]{1,4096}$",
            )
        ),
        "models": or_null(
            array(
                OWN_MODEL,
                "The models to offer, by the provider's own names; null: all, as the provider lists them.",
                maxItems=500,
            )
        ),
    },
    required=(),
    description="An absent field stays as it is.",
    example={"models": ["small", "large"]},
)
PROVIDER = record(
    "Provider",
    {
        "id": ID,
        "name": string(),
        "base_url": string("In its normal form."),
        "api_key_hint": or_null(string("The end of the key, to tell one from another; null: there is none.")),
        "models": or_null(array(OWN_MODEL, "The models to which it is narrowed; null: all that it lists.")),
        "created_at": TIMESTAMP,
    },
    example={
        "id": "prov_01m3250v3vn4qvxnatpwzmywwn",
        "name": "mine",
        "base_url": "https://api.example.com/v1",
        "api_key_hint": "…x4Qz",
        "models": None,
        "created_at": "2026-09-21T14:13:20.123Z",
    },
)
PROVIDER_LIST = page_of(PROVIDER)
PROVIDER_TEST = record(
    "ProviderTest",
    {"ok": boolean(const=True), "models": array(string(), "What the provider lists, at most 500.")},
    example={"ok": True, "models": ["small", "large"]},
)
