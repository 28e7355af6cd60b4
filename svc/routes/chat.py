"""Chat completions, OpenAI's Responses and Anthropic's Messages, with the same models, and the list of models."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from svc.agents.tools.sources import sources_of
from svc.content import memory
from svc.errors import ApiError, invalid_value
from svc.inference.catalog import CAPABILITIES, CONTEXT_LENGTH, Model
from svc.inference.chat_call import ChatCall
from svc.inference.chat_shape import CHAT_REQUEST, check_for_builtin
from svc.inference.context_fit import ContextFit
from svc.inference.formats import messages, responses_request
from svc.inference.formats.answer import AnswerWriter
from svc.inference.formats.messages_shape import COUNT_REQUEST, MESSAGES_REQUEST
from svc.inference.formats.request import Translated
from svc.inference.formats.responses_shape import RESPONSE_REQUEST
from svc.inference.images import check_documents, check_files, check_images, reads_images
from svc.inference.local.files import STATES
from svc.inference.passed_request import PassedRequest
from svc.json_text import AT_ONCE_BYTES
from svc.routes.chat_files import files_for, text_of_chat, with_files
from svc.routes.chat_tools import TOOL_REFUSALS, TOOLS_HEADER, body_with, tools_of
from svc.routes.completion import (
    BODY_BYTES,
    BOOLEAN,
    CONTINUE,
    TEMPORARY,
    answer_in_format,
    answer_in_session,
    ignored_of,
    is_heavy,
    payer_of,
    respond,
)
from svc.routes.pdfs import NO_PDF_TEXT, make_call
from svc.routes.schemas.chat import CHAT_ANSWER, CHAT_EXAMPLES, FAILED_IN_CONVERSATION
from svc.routes.schemas.common import (
    COUNT,
    MODEL_CALL,
    NO_MODEL,
    OTHER_PRICE,
    RESPONSES_CALL,
    SECONDS,
    TEXTS,
    example_id,
)
from svc.routes.schemas.messages import COUNT_EXAMPLES, MESSAGES_ANSWER, MESSAGES_EXAMPLES, TOKEN_COUNT
from svc.routes.schemas.responses import RESPONSE_ANSWER, RESPONSE_EXAMPLES
from svc.routes.tool_answers import AnswerMaker
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, header, path_id
from svc.server.streamed import json_array, streamed
from svc.server.titles import title_maker
from svc.server.web import Request, Response
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Chat")
PRICING = json_object(
    "Pricing",
    "Prices in micros (millionths of a US dollar). Which ones there are depends on the kind of the model.",
    input_micros_per_million_tokens=COUNT.about("Chat: the price of a million input tokens.").optional(),
    output_micros_per_million_tokens=COUNT.about("Chat: the price of a million output tokens.").optional(),
    cached_input_micros_per_million_tokens=COUNT.about(
        "Chat: the price of a million input tokens out of the model server's cache, if it differs."
    ).optional(),
    cache_write_micros_per_million_tokens=COUNT.about(
        "Chat: the price of a million input tokens that are written to the cache, if it differs."
    ).optional(),
    cache_write_1h_micros_per_million_tokens=COUNT.about("Chat: the same for an hour in the cache.").optional(),
    micros_per_image=COUNT.about("Image: the price of one image.").optional(),
    micros_per_thousand_audio_tokens=COUNT.about("Speech: the price of a thousand audio tokens.").optional(),
    micros_per_audio_minute=COUNT.about("Transcriptions: the price of a minute. A started second is whole.").optional(),
)
_FREE = {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0}
_MODEL = json_object(
    "Model",
    id=string.about(
        "`<provider>/<model>`, which may contain more slashes and colons, or an alias. The path of a file, as "
        "llama.cpp lists it, has the alias `<provider>/<file>`.",
        "builtin/assistant",
    ),
    object=one_of("model"),
    created=SECONDS.about(minimum=0),
    owned_by=string.about("The provider, for clients of OpenAI's format.", "builtin"),
    kind=one_of("chat", "image", "speech", "transcription").about(
        "What it generates. Only `chat` models can be used for chat."
    ),
    pricing=PRICING.about(example=_FREE),
    context_length=nullable(CONTEXT_LENGTH).about(
        "The most tokens of a request and its answer. Null means unknown.", 8192
    ),
    capabilities=list_of(one_of(*CAPABILITIES)).about(
        "Those that are known: it accepts images, it can call tools.", ["tools"]
    ),
    provider=string.about("`builtin`, a model server of the operator, or one of the caller's providers.", "builtin"),
    byok=boolean.about("Whether requests use the caller's own key at a provider.", False),
    state=one_of(*STATES).about("Only for a GGUF file on this machine. The first request loads it.").optional(),
    alias_of=string.about("For an alias: the id of its model. Answers name this id.").optional(),
)
_PAID = {"input_micros_per_million_tokens": 500000, "output_micros_per_million_tokens": 1500000}
_MODEL_LIST = json_object(
    "ModelList",
    object=one_of("list"),
    data=list_of(_MODEL).about(
        example=[_MODEL.example, {**_MODEL.example, "id": "builtin/assistant-paid", "pricing": _PAID}]
    ),
    has_more=boolean.about("Always false: the list is complete.", False),
)
_ONE_CHOICE = Refusal("invalid_value", "An answer that continues has one choice.", "n")
_WRONG_RESULT = Refusal(
    "invalid_value",
    "messages[2].content[0].tool_use_id: there is no tool call with the id toolu_1 before it.",
    when="A tool result has no call, a call has no result, or `tool_choice` demands a tool that does not run here.",
)
_NOT_STORED = Refusal(
    "invalid_value",
    "A temporary chat is not stored: leave out x-service-conversation.",
    TEMPORARY,
    "It is sent with `x-service-conversation`, `x-service-replaces`, `x-service-continue: true` or `Idempotency-Key`.",
)


def _is_temporary(request: Request) -> bool:
    """Return whether a session's chat is temporary. Raises ApiError if another header needs what is stored."""
    headers = request.headers
    if BOOLEAN.check(headers.get(TEMPORARY, "false"), TEMPORARY) == "false":
        return False
    stored = [name for name in (memory.HEADER, memory.REPLACES, "Idempotency-Key") if headers.get(name) is not None]
    if headers.get(CONTINUE, "false") != "false":
        stored.append(CONTINUE)
    if stored:
        raise invalid_value(f"A temporary chat is not stored: leave out {', '.join(stored)}.", TEMPORARY)
    return True


def _continues(request: Request, body: dict[str, Any]) -> bool:
    """Return whether the answer continues without its client. Raises ApiError for several choices."""
    asked = BOOLEAN.check(request.headers.get(CONTINUE, "false"), CONTINUE)
    if asked == "false" or not body.get("stream"):
        return False
    if (body.get("n") or 1) > 1:
        raise _ONE_CHOICE.error()
    return True


@describes(
    "Answer a conversation",
    body=CHAT_REQUEST,
    examples=CHAT_EXAMPLES,
    most_bytes=BODY_BYTES,
    keeps_body=True,
    parameters=[
        Parameter(
            memory.HEADER,
            "With a session: the conversation to continue. Without it, a new one begins. With an API key it is "
            "ignored.",
            string,
            example_id("conv"),
            where="header",
        ),
        Parameter(memory.REPLACES, TEXTS / "x-service-replaces.md", string, example_id("msg"), where="header"),
        TOOLS_HEADER,
        Parameter(CONTINUE, TEXTS / "x-service-continue.md", BOOLEAN, where="header"),
        Parameter(TEMPORARY, TEXTS / "x-service-temporary.md", BOOLEAN, where="header"),
    ],
    answer=CHAT_ANSWER,
    errors=[
        *MODEL_CALL,
        NO_PDF_TEXT,
        OTHER_PRICE,
        _ONE_CHOICE,
        *TOOL_REFUSALS,
        _NOT_STORED,
        Refusal("already_active", when="With a session: the conversation is being answered."),
        Refusal("not_found", "There is no such conversation.", "x-service-conversation"),
        Refusal("not_found", "There is no such message in this conversation.", "x-service-replaces"),
    ],
    headers={"x-service-conversation": FAILED_IN_CONVERSATION},
)
async def create_chat_completion(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    state, text = request.state, request.context.taken_body()
    model = await state.models.chosen(caller.id, caller.default_model, body.get("model"), "chat", caller.group)
    if model.provider is None:
        check_for_builtin(body)
    temporary = caller.auth == "session" and _is_temporary(request)
    files, tools = None, None
    if caller.auth == "session":
        files = files_for(state, caller.id, model, text_of_chat(request, caller))
        tools = await tools_of(request, caller, body, temporary, files)
    caller_request = None
    if caller.auth != "session" and model.provider is not None and model.api == "chat" and reads_images(model):
        caller_request = PassedRequest("chat", text, body, model)
    del text
    exchange, added, continues, given, fit = None, {}, False, body["messages"], None
    if caller.auth == "session":  # a key's requests are stateless
        conversation_id, replaces = request.headers.get(memory.HEADER), request.headers.get(memory.REPLACES)
        continues = _continues(request, body)
        exchange = await state.db.heavy_read(
            memory.begin,
            caller.id,
            body["messages"],
            conversation_id,
            replaces,
            state.clock(),
            with_seals=model.api != "chat",
            with_steps=tools is not None or model.api != "messages",  # which refuses calls without tools
            recalls=not temporary,
        )
        exchange = await with_files(state, exchange, files, tools)
        limited = body.get("max_completion_tokens") is not None
        sent = {**body, "max_tokens": 0} if limited else body
        added = {name: value for name, value in exchange.chat_fields.items() if sent.get(name) is None}
        body = {**body, **added, "messages": exchange.messages}
        fit = ContextFit(state.engines.context_lengths, caller.id, exchange.view)
    payer = payer_of(request, caller)
    maker, request_body = None, body
    if tools is not None and exchange is not None:
        body = body_with(tools, body)
        maker = AnswerMaker(request, payer, model, tools, added, body, exchange=exchange, fit=fit)

    def make(heavy: bool) -> ChatCall:
        check_images(model, given, "messages")
        check_files(model, given, "messages")
        if maker is not None:
            return maker.call(body, heavy)
        about: dict[str, Any] = {"added": added, "heavy": heavy, "caller_request": caller_request, "fit": fit}
        return ChatCall(model, body, state.engines, payer, **about)

    heavy = is_heavy(request) or (exchange is not None and exchange.given_bytes > AT_ONCE_BYTES)
    call = await make_call(request, caller.id, make, heavy)
    answer = maker.answer(call, request.context.claim, request_body) if maker is not None else call
    if exchange is None or temporary:
        return await respond(request, answer, AnswerWriter(), headers=ignored_of(call))
    usage = bool((request_body.get("stream_options") or {}).get("include_usage"))
    then = title_maker(state, payer, model, exchange)
    found = sources_of(exchange.given).listed if maker is None and exchange.given else None
    return await answer_in_session(
        request, answer, exchange, continues, usage, ignored_of(call), then=then, sources=found
    )


@describes("List the models", answer=Answer("All models.", _MODEL_LIST))
async def list_models(request: Request, caller: Caller) -> Response:
    """Return all models on one page, as OpenAI's clients expect."""
    models, limits = request.state.models, request.state.limits

    def may_ask() -> bool:
        with contextlib.suppress(ApiError):
            limits.take("ask_provider", caller.id)
            return True
        return False

    async def pages() -> AsyncGenerator[list[dict[str, Any]], None]:
        async with contextlib.aclosing(models.pages(caller.id, may_ask, caller.group)) as found:
            async for page in found:
                created = models.catalog.created
                yield [model.as_json(created, alias) for model in page for alias in (None, *model.aliases)]

    return await streamed(request, json_array(pages(), b'{"object":"list","data":[', b'],"has_more":false}'))


@describes(
    "Show one model",
    parameters=[
        path_id(
            "model_id", "The model's id or alias. Slashes may be sent as they are, or as `%2F`.", "builtin/assistant"
        )
    ],
    answer=Answer("The model.", _MODEL),
    errors=NO_MODEL,
)
async def get_model(request: Request, caller: Caller, model_id: str) -> object:
    models = request.state.models
    model = await models.find(caller.id, model_id, caller.group)
    if model is None:
        raise ApiError("model_not_found", param="model")
    return model.as_json(models.catalog.created, model_id if model_id in model.aliases else None)


@describes(
    "Answer in the Responses format",
    body=RESPONSE_REQUEST,
    examples=RESPONSE_EXAMPLES,
    most_bytes=BODY_BYTES,
    keeps_body=True,
    answer=RESPONSE_ANSWER,
    errors=[
        *RESPONSES_CALL,
        NO_PDF_TEXT,
        Refusal("unsupported_value", None, "background", "The request needs what this service does not have."),
        OTHER_PRICE,
        Refusal("previous_response_not_found", None, "previous_response_id", "Responses are not stored."),
        Refusal(
            "not_found",
            "There is no item with the id 'msg_1'.",
            "input[0].id",
            "An `item_reference` names an unknown item.",
        ),
    ],
)
async def create_response(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    state = request.state
    translate = partial(responses_request.translate, account_id=caller.id, memory=state.item_memory, clock=state.clock)

    def as_chat(body: dict[str, Any], model: Model, *, reads_pdfs: bool = False, searches: bool = False) -> Translated:
        check_images(model, body["input"], "input")
        check_documents(model, body["input"], "input", reads_pdfs=reads_pdfs)
        return translate(body, with_seals=model.api != "chat", searches=searches)

    return await answer_in_format(request, caller, body, "responses", as_chat)


@describes(
    "Refuse a WebSocket",
    "Codex then uses `POST /v1/responses` at once. After other errors it tries the WebSocket six times more.",
    answer=Answer("", status=426),
    errors=[Refusal("upgrade_required"), Refusal("method_not_allowed", when="The request is for no WebSocket.")],
    headers={"allow": header("The method of this path.", string, "POST", required=False)},
)
async def refuse_web_socket(request: Request, caller: Caller) -> object:
    if request.headers.get("upgrade", "").lower() != "websocket":
        raise ApiError("method_not_allowed", headers={"allow": "POST"})
    raise ApiError("upgrade_required")


@describes(
    "Answer in the Messages format",
    body=MESSAGES_REQUEST,
    examples=MESSAGES_EXAMPLES,
    most_bytes=BODY_BYTES,
    keeps_body=True,
    answer=MESSAGES_ANSWER,
    errors=[
        _WRONG_RESULT,
        *MODEL_CALL,
        NO_PDF_TEXT,
        OTHER_PRICE,
        Refusal(
            "unsupported_value",
            "thread is not supported: nothing is stored here. Send the whole conversation in messages, without thread.",
            "thread",
            "The request needs what this service does not have. For `thread`, `error.details` is as in Anthropic's "
            "API, so that its SDKs continue without it.",
        ),
    ],
)
async def create_messages_answer(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    def as_chat(body: dict[str, Any], model: Model, *, reads_pdfs: bool = False, searches: bool = False) -> Translated:
        check_images(model, body["messages"], "messages")
        check_documents(model, body["messages"], "messages", reads_pdfs=reads_pdfs)
        return messages.translate(body, marks=model.cache_control, with_seals=model.api != "chat", searches=searches)

    return await answer_in_format(request, caller, body, "messages", as_chat)


@describes(
    "Estimate the tokens of a request",
    body=COUNT_REQUEST,
    examples=COUNT_EXAMPLES,
    most_bytes=BODY_BYTES,
    answer=Answer("The estimate.", TOKEN_COUNT),
    errors=[_WRONG_RESULT, *NO_MODEL],
)
async def count_message_tokens(request: Request, caller: Caller, body: dict[str, Any]) -> object:
    await request.state.models.chosen(caller.id, caller.default_model, body.get("model"), "chat", caller.group)
    count = partial(messages.counted_tokens, body)
    return {"input_tokens": await request.state.offload.run(caller.id, count) if is_heavy(request) else count()}
