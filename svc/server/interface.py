"""What handlers and guards declare: svc/server/openapi.py makes the interface document from it.

describes = partial(Operation, "Projects")
@describes("Create a project", answer=Answer("The project.", PROJECT, 201)) declares a handler: create_project is the
operation createProject. @Implied(errors=[...]) declares a guard. The route table in app.py has path, method and
guards.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import orjson

from svc.errors import ANTHROPIC_TYPES, ERRORS, ApiError, anthropic_error
from svc.server.bodies import endpoint_of
from svc.server.limits import MIB
from svc.server.state import Request
from svc.server.web import in_anthropic_format
from svc.shapes import Component, Schema, Shape, boolean, json_object, list_of, nullable, one_of, string, tagged, whole

_EMPTY: Mapping[str, Any] = MappingProxyType({})
Handler = Callable[..., Awaitable[Any]]  # of a request, of what its guards pass, of its path and its body
H = TypeVar("H", bound=Handler)
Guarded = TypeVar("Guarded", bound=Handler)


def as_event(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the example of a server-sent event with this JSON."""
    return {"data": orjson.dumps(value).decode()}


def kind_of(name: str, kind: str, text: str = "", /, **fields: Shape[Any] | str | int) -> Shape[dict[str, Any]]:
    """Return the shape of an object of an answer whose field `type` is `kind`, which is one of several `variants`."""
    return json_object(name, text, type=one_of(kind), **fields)


def variants(*objects: Shape[dict[str, Any]]) -> Shape[Any]:
    """Return the shape of one of several objects, each with another constant in the field `type`."""
    return tagged("type", {one.example["type"]: one for one in objects})


def event_of(name: str, text: str, *contents: Shape[Any]) -> Shape[dict[str, Any]]:
    """Return the shape of a server-sent event whose data is one of `contents` as JSON."""
    content = contents[0] if len(contents) == 1 else {"anyOf": contents}
    data = string.about(text, contentMediaType="application/json", contentSchema=content)
    return json_object(name, "One event: a line `data: …` and an empty line.", data=data)


def header(text: str | Path, shape: Shape[Any], example: Any = None, *, required: bool = True) -> Schema:
    """Return a header of an answer. If it is not `required`, `text` says when it is sent."""
    example = shape.example if example is None else example
    rest = {**({"required": True} if required else {}), **({} if example is None else {"example": example})}
    return {"description": text, "schema": shape, **rest}


def named_header(name: str, *arguments: Any, required: bool = True) -> Component:
    return Component("headers", name, header(*arguments, required=required))


def bearer(name: str, text: str) -> Component:
    """Return a way to sign in: `Authorization: Bearer <token>`."""
    return Component("securitySchemes", name, {"type": "http", "scheme": "bearer", "description": text})


def token_in(where: str, field: str, name: str, text: str) -> Component:
    """Return a way to sign in: a token in the `field` of a `header`, `cookie` or `query`."""
    return Component("securitySchemes", name, {"type": "apiKey", "in": where, "name": field, "description": text})


class Refusal(NamedTuple):
    """An error of an operation: its `code`, and what differs from the table in svc/errors.py.

    `when` is a sentence about its cause. The `status` "4XX" stands for any refusal of a model server.
    """

    code: str
    message: str | None = None
    param: str | None = None
    when: str | None = None
    status: str | None = None
    type: str | None = None
    headers: Mapping[str, Schema] = _EMPTY

    def error(self) -> ApiError:
        return ApiError(self.code, self.message, param=self.param)


class Content(NamedTuple):
    """A body of one media type; `examples` are name: value, or name: (summary, value)."""

    shape: Shape[Any]
    examples: Mapping[str, Any] = _EMPTY


def _codes() -> str:
    families: dict[str, list[str]] = {}
    for code, (status, kind, _) in ERRORS.items():
        statuses = "502, 503, 504" if kind == "upstream_error" else str(status)
        families.setdefault(f"{statuses} {kind}", []).append(f"`{code}`")
    return "\n".join(f"- {family}: {', '.join(codes)}" for family, codes in families.items())


_RETRY_AFTER = whole.about("With 429: the seconds to wait, as in the header Retry-After.", minimum=1)
ERROR_DETAIL = json_object(
    "ErrorDetail",
    message=string.about("The cause and the solution, for people.", ERRORS["upstream_unreachable"][2]),
    type=string.about(
        "The family of the error. A model server's own refusal may have another one.",
        "upstream_error",
        examples=sorted({kind for _, kind, _ in ERRORS.values()}),
    ),
    code=nullable(string).about(
        "The cause, for programs. The codes of this service, by status and type:\n\n"
        f"{_codes()}\n\nA model server's own refusal keeps its own code, or null.",
        "upstream_unreachable",
    ),
    param=nullable(string).about("The wrong field, for example `messages[0].role`. Null if there is none."),
    retry_after=_RETRY_AFTER.optional(),
).with_others()
ERROR = json_object("Error", "The shape of every error outside `/v1/messages`.", error=ERROR_DETAIL)
_RATE_LIMIT_ERROR = json_object(
    "RateLimitError",
    "An error that names the seconds to wait.",
    error=ERROR_DETAIL.about(required=["message", "type", "retry_after"]),
)
_ANTHROPIC_DETAIL = json_object(
    "MessagesErrorDetail",
    type=one_of(*ANTHROPIC_TYPES),
    message=string.about("The cause and the solution, for people."),
    retry_after=_RETRY_AFTER.optional(),
    details=json_object(
        "MessagesErrorDetails",
        "For programs: why `thread` is refused.",
        error_code=one_of("thread_unsupported_request"),
        unsupported=list_of(string),
    ).optional(),
    allowance_micros=whole.about("Of an empty wallet: the monthly allowance, in micros.", minimum=0).optional(),
    allowance_renews_at=string.about("When the allowance renews (UTC).", format="date-time").optional(),
    limit_micros=whole.about("Of a reached limit: the monthly limit, in micros.", minimum=0).optional(),
    spent_micros=whole.about("What was spent of it in this month, without running calls.", minimum=0).optional(),
    resets_at=string.about("When the next month begins (UTC).", format="date-time").optional(),
)
ANTHROPIC_ERROR = json_object(
    "MessagesError",
    "The shape of errors under `/v1/messages`, as Anthropic's SDKs expect it.",
    type=one_of("error"),
    error=_ANTHROPIC_DETAIL,
    request_id=string.about("The same as the header `request-id`."),
)


def error_content(path: str, status: str, refusals: Sequence[Refusal]) -> Content:
    """Return the body of the errors that `path` answers with `status`. A code with several messages has several
    examples.
    """
    anthropic, examples = in_anthropic_format(path), dict[str, Any]()
    for refusal in refusals:
        _, kind, message = ERRORS.get(refusal.code, (0, "", ""))
        detail = {
            "message": refusal.message or message,
            "type": refusal.type or kind,
            "code": refusal.code,
            "param": refusal.param,
        }
        code, wait_seconds = 400 if status == "4XX" else int(status), 37 if status == "429" else None
        error = ApiError("invalid_request", status=code, retry_after_seconds=wait_seconds, error=detail)
        example = anthropic_error(error, "req_4fGk2mXq9TzLw8RbYc1VdN") if anthropic else error.body()
        if example not in examples.values():
            same = sum(re.fullmatch(rf"{refusal.code}(_\d+)?", name) is not None for name in examples)
            examples[f"{refusal.code}_{same + 1}" if same else refusal.code] = example
    return Content(ANTHROPIC_ERROR if anthropic else _RATE_LIMIT_ERROR if status == "429" else ERROR, examples)


class Parameter(NamedTuple):
    """A parameter in the `query`, a `header` or the `path`, and the `refusal` of a wrong one."""

    name: str
    text: str | Path
    shape: Shape[Any]
    example: Any = None
    default: str | None = None
    where: str = "query"
    required: bool = False
    refusal: Refusal | None = None

    @property
    def schema(self) -> Schema:
        described = header(self.text, self.shape, self.example, required=self.required)
        return {"name": self.name, "in": self.where, **described}

    def of(self, request: Request) -> Any:
        """Return the checked value in the query, or `default`."""
        sent = request.query_params.get(self.name, self.default)
        return None if sent is None else self.shape.check(sent, self.name)


def path_id(name: str, text: str, example: str, refusal: Refusal | None = None) -> Parameter:
    """Return the parameter `{name}` of a path."""
    return Parameter(name, text, string, example, where="path", required=True, refusal=refusal)


def item_id(name: str, noun: str, prefix: str) -> Parameter:
    """Return the path parameter `name`: an id that begins with `prefix`, such as `proj` for the noun `project`."""
    refusal = Refusal("not_found", f"There is no such {noun}.", when=f"The account has no such {noun}.")
    return path_id(name, f"The {noun}'s id.", f"{prefix}_01m3250v3vn4qvxnatpwzmywwn", refusal)


class Answer(NamedTuple):
    """A successful answer: JSON of `shape` (`is_page`: a page of a list), or the `contents` by media type."""

    text: str
    shape: Shape[Any] | None = None
    status: int = 200
    headers: Mapping[str, Schema] = _EMPTY
    contents: Mapping[str, Content] = _EMPTY
    is_page: bool = False


def paged(text: str, name: str, item: Shape[Any], **beside: Shape[Any]) -> Answer:
    """Return the answer of a list of `item` with `?limit=` and `?after=`. `beside` has further fields."""
    shape = json_object(
        name,
        object=one_of("list"),
        data=list_of(item).about("Newest first."),
        has_more=boolean.about("Whether there are older ones. Ask again with `after`.", False),
        **beside,
    )
    return Answer(text, shape, is_page=True)


@dataclass(frozen=True)
class Implied:
    """What a guard adds to every operation behind it. It decorates the guard, and passes the handler's declaration on.

    `headers` are on all answers from the guard inwards. With `html` all refusals from there inwards are pages.
    `parameters` are of the request.
    """

    errors: Sequence[Refusal] = ()
    security: Component | None = None
    headers: Mapping[str, Schema] = field(default_factory=dict)
    html: bool = False
    parameters: Sequence[Parameter] = ()

    def __call__(self, guard: Callable[[H], Guarded]) -> Callable[[H], Guarded]:
        (passed, _), (taken, _) = map(get_args, get_type_hints(guard).values())

        def guarding(handler: H) -> Guarded:
            guarded, inner = guard(handler), operation_of(handler)
            if inner is not None:
                if passed not in (..., inner.takes):
                    raise TypeError(f"{inner.name} takes {inner.takes}, but {guard.__name__} passes {passed}")
                takes = inner.takes if taken is ... else taken
                vars(guarded)["operation"] = replace(inner, guards=(self, *inner.guards), takes=takes)
            return guarded

        return guarding


@dataclass(frozen=True)
class Operation:
    """The declaration of one endpoint, which decorates its handler. Guards, body and ids in the path add their own
    refusals.

    A longer `text` is a file of the handler's name, `create_user.md`. `security` is for a handler that checks a token
    itself; None in it means that the token is optional. Every response may have the `headers`.

    The handler returns a Response, a value that is sent as JSON with the status of `answer`, or None (204). Its
    arguments of type `str` are the ids in the path. If it has an argument `body`, the body is read and checked first,
    with at most `most_bytes`. Its shape is `body`, or that of the `record` which annotates the argument. Without it the
    handler reads the body itself, which may have another `media_type`, or several with commas.
    With `any_type` the Content-Type is ignored.
    With `keeps_body` the context has the body's bytes as well, until the handler takes them.

    `name`, the handler's, `ids`, its arguments from the path, and `takes`, the types of those that guards pass, are set
    here. `guards` are from the outermost inwards.
    """

    tag: str
    summary: str
    text: str = ""
    _: KW_ONLY
    answer: Answer
    others: Sequence[Answer] = ()
    body: Shape[Any] | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    most_bytes: int = MIB
    media_type: str = "application/json"
    any_type: bool = False
    keeps_body: bool = False
    parameters: Sequence[Parameter] = ()
    errors: Sequence[Refusal] = ()
    security: Sequence[Component | None] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    name: str = ""
    ids: Collection[str] = ()
    takes: Sequence[Any] = ()
    guards: tuple[Implied, ...] = ()

    def __call__(self, handler: Handler) -> Handler:
        """Raises TypeError if the handler has an argument `body` without a shape."""
        arguments = {name: kind for name, kind in handler.__annotations__.items() if name != "return"}
        answer = self.answer if handler.__annotations__["return"] else self.answer._replace(status=204)
        shape, reads = self.body, None
        if "body" in arguments:
            kind = arguments.pop("body")
            shape = reads = shape or getattr(kind, "shape", None)
            if shape is None:
                raise TypeError(f"{handler.__name__}: body must be a record, or its shape declared")
        endpoint = endpoint_of(handler, answer.status, reads, self.most_bytes, self.keeps_body)
        vars(endpoint)["operation"] = replace(
            self,
            answer=answer,
            body=shape,
            name=handler.__name__,
            ids={name for name, kind in arguments.items() if kind is str},
            takes=[kind for kind in arguments.values() if kind is not str],
        )
        return endpoint

    @property
    def schemes(self) -> list[Component | None]:
        return [*self.security, *(guard.security for guard in self.guards if guard.security)]


def operation_of(handler: Callable[..., Any]) -> Operation | None:
    """Return the declaration of a handler, through all its guards, or None."""
    operation: Operation | None = vars(handler).get("operation")
    return operation
