"""What handlers and guards declare: svc/server/openapi.py makes the interface document from it.

describes = Section("Projects").describes
@describes("Create a project", body=..., answers={201: Answer("The project.", PROJECT)}) declares a handler:
create_project is the operation createProject. @Implied(errors=[...]) declares a guard. The route table in app.py has
path, method and guards.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson
from starlette.responses import Response

from svc import shapes
from svc.errors import ApiError
from svc.server.bodies import with_body
from svc.server.body_budget import MIB
from svc.server.state import Request
from svc.shapes import Component, Schema, Shape

_EMPTY: Mapping[str, Any] = MappingProxyType({})
Handler = Callable[..., Awaitable[Response | None]]  # of a request, of what its guards pass, and of its body
H = TypeVar("H", bound=Handler)
Guarded = TypeVar("Guarded", bound=Handler)


def as_event(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the example of a server-sent event with this JSON."""
    return {"data": orjson.dumps(value).decode()}


def kind_of(name: str, kind: str, text: str = "", /, **fields: Shape[Any]) -> Shape[dict[str, Any]]:
    """Return the shape of an object of an answer whose field `type` is `kind`, which is one of several `variants`."""
    return shapes.json_object(name, text, type=shapes.one_of(kind), **fields)


def variants(*objects: Shape[dict[str, Any]]) -> Shape[Any]:
    """Return the shape of one of several objects, each with another constant in the field `type`."""
    return shapes.tagged("type", {one.example["type"]: one for one in objects})


def event_of(name: str, text: str, *contents: Shape[Any]) -> Shape[dict[str, Any]]:
    """Return the shape of a server-sent event whose data is one of `contents` as JSON."""
    content = contents[0] if len(contents) == 1 else {"anyOf": contents}
    data = shapes.string.about(text, contentMediaType="application/json", contentSchema=content)
    return shapes.json_object(name, "One event: a line `data: …` and an empty line.", data=data)


def parameter(
    name: str, where: str, text: str | Path, shape: Shape[Any], example: Any = None, *, required: bool = False
) -> Schema:
    """Return a parameter in `path`, `query` or `header`."""
    return {"name": name, "in": where, **header(text, shape, example, required=required)}


def path_id(name: str, text: str, example: str) -> Schema:
    """Return the parameter `{name}` of a path."""
    return parameter(name, "path", text, shapes.string, example, required=True)


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


class Item(NamedTuple):
    """A parameter that names an object, and the refusal if the account has no such object."""

    parameter: Schema
    not_found: Refusal


def item_id(name: str, noun: str, prefix: str) -> Item:
    """Return the parameter `{name}` of a path that is the id of a `noun`."""
    refusal = Refusal("not_found", f"There is no such {noun}.", when=f"The account has no such {noun}.")
    return Item(path_id(name, f"The {noun}'s id.", f"{prefix}_01m3250v3vn4qvxnatpwzmywwn"), refusal)


class Query(NamedTuple):
    """A parameter of the query, which may be missing. `of` returns its checked value, or `default`."""

    name: str
    text: str
    shape: Shape[Any]
    example: Any = None
    default: str | None = None

    @property
    def parameter(self) -> Schema:
        return parameter(self.name, "query", self.text, self.shape, self.example)

    def of(self, request: Request) -> Any:
        sent = request.query_params.get(self.name, self.default)
        return None if sent is None else self.shape.check(sent, self.name)


class Content(NamedTuple):
    """A body of one media type; `examples` are name: value, or name: (summary, value)."""

    shape: Shape[Any]
    examples: Mapping[str, Any] = _EMPTY


class Answer(NamedTuple):
    """A successful answer: JSON of `shape` (`is_page`: a page of a list), or the `contents` by media type."""

    text: str
    shape: Shape[Any] | None = None
    example: Any = None
    headers: Mapping[str, Schema] = _EMPTY
    contents: Mapping[str, Content] = _EMPTY
    is_page: bool = False


def paged(text: str, name: str, item: Shape[Any], **beside: Shape[Any]) -> dict[int, Answer]:
    """Return the answers of a list of `item` with `?limit=` and `?after=`. `beside` has further fields."""
    shape = shapes.json_object(
        name,
        object=shapes.one_of("list"),
        data=shapes.list_of(item).about("Newest first."),
        has_more=shapes.boolean.about("Whether there are older ones. Ask again with `after`.", False),
        **beside,
    )
    return {200: Answer(text, shape, is_page=True)}


class Body(NamedTuple):
    """The body of a request that the handler reads itself. With `any_type` it ignores the Content-Type."""

    shape: Shape[Any]
    examples: Mapping[str, Any] = _EMPTY
    most_bytes: int = MIB
    media_type: str = "application/json"
    any_type: bool = False


@dataclass(frozen=True)
class Implied:
    """What a guard adds to every operation behind it. It decorates the guard, and passes the handler's declaration on.

    `headers` are on all answers from the guard inwards. With `html` all refusals from there inwards are pages.
    """

    errors: Sequence[Refusal] = ()
    security: Component | None = None
    headers: Mapping[str, Schema] = field(default_factory=dict)
    html: bool = False

    def __call__(self, guard: Callable[[H], Guarded]) -> Callable[[H], Guarded]:
        def guarding(handler: H) -> Guarded:
            guarded, inner = guard(handler), operation_of(handler)
            if inner is not None:
                vars(guarded)["operation"] = inner._replace(guards=(self, *inner.guards))
            return guarded

        return guarding


class Operation(NamedTuple):
    """The declaration of one endpoint; `name` is the handler's, and `guards` are from the outermost inwards."""

    tag: str
    name: str
    summary: str
    text: str
    body: Body | None
    answers: Mapping[int, Answer]
    parameters: Sequence[Schema | Item | Query] = ()
    errors: Sequence[Refusal] = ()
    security: Sequence[Component | None] = ()
    headers: Mapping[str, Schema] = _EMPTY
    guards: tuple[Implied, ...] = ()

    @property
    def is_paged(self) -> bool:
        return any(answer.is_page for answer in self.answers.values())


class Section(NamedTuple):
    """A section of the interface document. Its `describes` declares handlers."""

    tag: str

    def describes(
        self,
        summary: str,
        text: str = "",
        *,
        answers: Mapping[int, Answer],
        body: Shape[Any] | Body | None = None,
        examples: Mapping[str, Any] = _EMPTY,
        most_bytes: int = MIB,
        parameters: Sequence[Schema | Item | Query] = (),
        errors: Sequence[Refusal] = (),
        security: Sequence[Component | None] = (),
        headers: Mapping[str, Schema] = _EMPTY,
    ) -> Callable[[Handler], Handler]:
        """Declare a handler's operation, whose id is the handler's name. Guards, body and ids in the path add their own
        refusals. A longer `text` is a file of that name, `create_user.md`.

        If the handler's last argument, `body`, is annotated with a `record`, the body is read and checked first, with
        at most `most_bytes`. For another body the Shape is `body`. `security` is for a handler that checks a token
        itself; None in it means that the token is optional. Every response may have the `headers`.
        """

        def declare(handler: Handler) -> Handler:
            shape = body or getattr(handler.__annotations__.get("body"), "shape", None)
            whole = Body(shape, examples, most_bytes) if isinstance(shape, Shape) else shape
            endpoint = with_body(handler, shape, most_bytes) if isinstance(shape, Shape) else handler
            vars(endpoint)["operation"] = Operation(
                self.tag, handler.__name__, summary, text, whole, answers, parameters, errors, security, headers
            )
            return endpoint

        return declare


def operation_of(handler: Callable[..., Any]) -> Operation | None:
    """Return the declaration of a handler, through all its guards, or None."""
    operation: Operation | None = vars(handler).get("operation")
    return operation
