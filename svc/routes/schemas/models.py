"""Shapes of models and of the caller's own providers."""

from svc.inference.catalog import CAPABILITIES, CONTEXT_LENGTH, KIND, MODEL_NAME
from svc.routes.schemas.common import COUNT, SECONDS, TIMESTAMP, id_of
from svc.shapes import boolean, by_type, json_object, list_of, nullable, one_of, optional, string

_PRICING = json_object(
    "Pricing",
    "Prices in micros (millionths of a US dollar). Which ones there are depends on the kind of the model.",
    input_micros_per_million_tokens=optional(COUNT.about("Chat: the price of a million input tokens.")),
    output_micros_per_million_tokens=optional(COUNT.about("Chat: the price of a million output tokens.")),
    micros_per_image=optional(COUNT.about("Image: the price of one image.")),
    micros_per_thousand_audio_tokens=optional(COUNT.about("Speech: the price of a thousand audio tokens.")),
)
_FREE = {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0}
MODEL = json_object(
    "Model",
    id=string.about(
        "`<provider>/<model>`, which may contain more slashes and colons, or an alias without a slash.", "builtin/assistant"
    ),
    object=one_of("model"),
    created=SECONDS.about(minimum=0),
    owned_by=string.about("The provider, for clients of OpenAI's format.", "builtin"),
    kind=one_of("chat", "image", "speech").about("What it generates. Only `chat` models can be used for chat."),
    pricing=_PRICING.about(example=_FREE),
    context_length=nullable(CONTEXT_LENGTH).about("The most tokens of a request and its answer. Null means unknown.", 8192),
    capabilities=list_of(one_of(*CAPABILITIES)).about("Those that are known: it accepts images, it can call tools.", ["tools"]),
    provider=string.about("`builtin`, a model server of the operator, or one of the caller's providers.", "builtin"),
    byok=boolean.about("Whether requests use the caller's own key at a provider.", False),
    alias_of=optional(string.about("For an alias: the id of its model. Answers name this id.")),
)
_PAID = {"input_micros_per_million_tokens": 500000, "output_micros_per_million_tokens": 1500000}
MODEL_LIST = json_object(
    "ModelList",
    object=one_of("list"),
    data=list_of(MODEL).about(example=[MODEL.example, {**MODEL.example, "id": "builtin/assistant-paid", "pricing": _PAID}]),
    has_more=boolean.about("Always false: the list is complete.", False),
)
_NAME = MODEL_NAME.about(example="llama3.2")
_OWN_MODEL = by_type("a model", {str: _NAME, dict: json_object("OwnModel", id=_NAME, kind=KIND)})
PROVIDER = json_object(
    "Provider",
    id=id_of("prov"),
    name=string.about(example="mine"),
    base_url=string.about("The normalized address.", "https://api.example.com/v1"),
    api_key_hint=nullable(string).about("The last characters of the key. Null means that there is no key.", "…x4Qz"),
    models=nullable(list_of(_OWN_MODEL)).about("The models that are offered. Null means all that the provider lists."),
    created_at=TIMESTAMP,
)
PROVIDER_TEST = json_object(
    "ProviderTest",
    ok=boolean.about(const=True),
    models=list_of(string).about("The models that the provider lists, at most 500.", ["small", "large"]),
)
