"""Schemas of models and of the caller's own providers."""

from svc.inference.providers import OWN_MODEL
from svc.routes.schemas.common import ID, TIMESTAMP
from svc.server.interface import array, boolean, choice, integer, or_null, page_of, record, string

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
        "id": string("`<provider>/<model>`, which may contain more slashes, and colons; or an alias, which has no slash."),
        "object": choice("model"),
        "created": integer("Unix seconds.", minimum=0),
        "owned_by": string("The provider, for clients of OpenAI's format."),
        "kind": choice("chat", "image", "speech", description="What it makes. Only `chat` models answer chat completions."),
        "pricing": PRICING,
        "provider": string("Who answers: `builtin`, a model server of the operator's, or one of the caller's own."),
        "byok": boolean("Whether it is reached with the caller's own key at a provider."),
        "alias_of": string("In the entry of an alias: the id of its model. Answers name this id."),
    },
    required=("id", "object", "created", "owned_by", "kind", "pricing", "provider", "byok"),
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
PROVIDER = record(
    "Provider",
    {
        "id": ID,
        "name": string(),
        "base_url": string("In its normal form."),
        "api_key_hint": or_null(string("The end of the key, to tell one from another; null: there is none.")),
        "models": or_null(array(OWN_MODEL.schema, "The models to which it is narrowed; null: all that it lists.")),
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
