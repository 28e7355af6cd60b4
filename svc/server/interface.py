"""What a handler and a guard declare of themselves, beside their code; svc/server/openapi.py makes the interface document of it.

@describes("Projects", "createProject", "Create a project", body=..., answers={201: Answer("The project.", PROJECT)}) stands on
the handler, @implies(errors=[...]) on the guard; the row in the route table of app.py tells path, method and guards.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, overload

import orjson
from starlette.requests import Request
from starlette.responses import Response

from svc import shapes
from svc.server.bodies import read_shape
from svc.server.body_budget import MIB
from svc.server.state import State
from svc.shapes import Component, Schema, Shape

_EMPTY: Mapping[str, Any] = MappingProxyType({})
B = TypeVar("B")
Who = TypeVarTuple("Who")
Handler = TypeVar("Handler", bound=Callable[..., Any])
Guarded = TypeVar("Guarded", bound=Callable[..., Any])


def as_event(value: Mapping[str, Any]) -> dict[str, str]:
    """The example of a server-sent event that carries `value` as JSON."""
    return {"data": orjson.dumps(value).decode()}


def event_of(name: str, text: str, *contents: Shape[Any]) -> Shape[dict[str, Any]]:
    """Return the shape of a server-sent event whose data is one of `contents` as JSON."""
    content = contents[0] if len(contents) == 1 else {"anyOf": contents}
    data = shapes.string.about(text, contentMediaType="application/json", contentSchema=content)
    return shapes.json_object(name, {"data": data}, "One event: a line `data: …` and an empty line.")


def page_of(name: str, item: Shape[Any], **optional: Shape[Any]) -> Shape[dict[str, Any]]:
    """Return the shape of one page of a list of `item`; `optional` fields stand beside the list."""
    has_more = shapes.boolean.about("Whether there are older ones. Ask again with `after`.", False)
    data = shapes.list_of(item).about("Newest first.")
    return shapes.json_object(name, {"object": shapes.one_of("list"), "data": data, "has_more": has_more}, optional=optional)


def parameter(name: str, where: str, text: str, schema: Shape[Any], example: Any = None, *, required: bool = False) -> Schema:
    """A parameter in `path`, `query` or `header`; those of the path are always required."""
    value = {"name": name, "in": where, "description": text, "schema": schema}
    return {**value, **({"required": True} if required else {}), **({} if example is None else {"example": example})}


def path_id(name: str, text: str, example: str) -> Schema:
    """The parameter `{name}` of a path."""
    return parameter(name, "path", text, shapes.string, example, required=True)


def header(text: str, schema: Shape[Any], example: Any = None, *, required: bool = True) -> Schema:
    """A header of an answer; one that is not `required` is there in some cases, which `text` tells."""
    value = {"description": text, "schema": schema}
    return {**value, **({"required": True} if required else {}), **({} if example is None else {"example": example})}


def named_header(name: str, *arguments: Any, required: bool = True) -> Component:
    return Component("headers", name, header(*arguments, required=required))


class Refusal(NamedTuple):
    """An error that an operation may answer: `code` and what differs from the table in svc/errors.py.

    `when` says in a sentence when it happens. `status` "4XX" stands for whatever a model server answers.
    """

    code: str
    message: str | None = None
    param: str | None = None
    when: str | None = None
    status: str | None = None
    type: str | None = None
    headers: Mapping[str, Schema] = _EMPTY


class Content(NamedTuple):
    """A body of one media type; `examples` are name: value, or name: (summary, value)."""

    schema: Shape[Any]
    examples: Mapping[str, Any] = _EMPTY


class Answer(NamedTuple):
    """What an operation answers when it went well. `contents`, by media type, stand in place of a `schema` of JSON."""

    text: str
    schema: Shape[Any] | None = None
    example: Any = None
    headers: Mapping[str, Schema] = _EMPTY
    contents: Mapping[str, Content] = _EMPTY


class Body(NamedTuple):
    """The body of a request, of at most `most_bytes`; JSON unless `media_type` says otherwise.

    The handler of a body with a Shape gets the typed value as its last argument; any other body it reads itself.
    `any_type` is for a handler that reads the body whatever type is named.
    """

    schema: Shape[Any]
    examples: Mapping[str, Any] = _EMPTY
    most_bytes: int = MIB
    media_type: str = "application/json"
    any_type: bool = False


class Implied(NamedTuple):
    """What a guard adds to every operation behind it.

    `headers` are on all answers from the guard inwards; `html` shows all refusals from there inwards as pages.
    """

    errors: Sequence[Refusal] = ()
    security: Component | None = None
    headers: Mapping[str, Schema] = _EMPTY
    html: bool = False


class Operation(NamedTuple):
    """All that is declared of one endpoint; `guards` from the outermost inwards."""

    tag: str
    id: str
    summary: str
    text: str
    body: Body | None
    answers: Mapping[int, Answer]
    parameters: Sequence[Schema]
    errors: Sequence[Refusal]
    paged: bool
    security: Sequence[Component | None]
    guards: tuple[Implied, ...] = ()


@overload
def describes(
    tag: str,
    id: str,
    summary: str,
    text: str = ...,
    *,
    answers: Mapping[int, Answer],
    body: Shape[B],
    examples: Mapping[str, Any] = ...,
    most_bytes: int = ...,
    parameters: Sequence[Schema] = ...,
    errors: Sequence[Refusal] = ...,
) -> Callable[
    [Callable[[Request[State], *Who, B], Awaitable[Response]]], Callable[[Request[State], *Who], Awaitable[Response]]
]: ...


@overload
def describes(
    tag: str,
    id: str,
    summary: str,
    text: str = ...,
    *,
    answers: Mapping[int, Answer],
    body: Body | None = ...,
    parameters: Sequence[Schema] = ...,
    errors: Sequence[Refusal] = ...,
    paged: bool = ...,
    security: Sequence[Component | None] = ...,
) -> Callable[[Handler], Handler]: ...


def describes(
    tag: str,
    id: str,
    summary: str,
    text: str = "",
    *,
    answers: Mapping[int, Answer],
    body: Shape[Any] | Body | None = None,
    examples: Mapping[str, Any] = _EMPTY,
    most_bytes: int = MIB,
    parameters: Sequence[Schema] = (),
    errors: Sequence[Refusal] = (),
    paged: bool = False,
    security: Sequence[Component | None] = (),
) -> Callable[..., Any]:
    """Declare the operation that a handler is; what its guards and its body imply need not be said.

    A `body` that is a Shape is read and checked before the handler is called, which gets the typed value as its last argument;
    `examples` and `most_bytes` are those of its `Body`. `paged` is a list with `?limit=` and `?after=`. `security` is for a
    handler that checks a token itself; None in it means that it may do without.
    """
    whole = Body(body, examples, most_bytes) if isinstance(body, Shape) else body
    operation = Operation(tag, id, summary, text, whole, answers, parameters, errors, paged, security)

    def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(body, Shape):
            handler = _with_body(handler, body, most_bytes)
        vars(handler)["operation"] = operation
        return handler

    return declare


def _with_body(handler: Callable[..., Awaitable[Response]], shape: Shape[Any], most_bytes: int) -> Callable[..., Any]:
    async def endpoint(request: Request[State], *who: Any) -> Response:
        return await handler(request, *who, await read_shape(request, shape, most_bytes))

    return endpoint


def implies(
    errors: Sequence[Refusal] = (),
    *,
    security: Component | None = None,
    headers: Mapping[str, Schema] | None = None,
    html: bool = False,
) -> Callable[[Callable[[Handler], Guarded]], Callable[[Handler], Guarded]]:
    """Declares what a guard adds to the operations behind it, and hands the handler's own declaration through the guard."""
    implied = Implied(errors, security, headers or {}, html)

    def declare(guard: Callable[[Handler], Guarded]) -> Callable[[Handler], Guarded]:
        def guarding(handler: Handler) -> Guarded:
            guarded = guard(handler)
            inner = operation_of(handler)
            if inner is not None:
                vars(guarded)["operation"] = inner._replace(guards=(implied, *inner.guards))
            return guarded

        return guarding

    return declare


def operation_of(handler: Callable[..., Any]) -> Operation | None:
    """What is declared of a handler, through all its guards; None where nothing is."""
    operation: Operation | None = vars(handler).get("operation")
    return operation
