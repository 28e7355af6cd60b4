"""What handlers and guards declare of themselves, and what the interface document makes of it."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from svc.server.guards import Caller, metered, per_ip, session_only, signed_in
from svc.server.interface import (
    Answer,
    Component,
    Implied,
    Operation,
    Refusal,
    as_event,
    event_of,
    header,
    item_id,
    operation_of,
    paged,
    path_id,
)
from svc.server.openapi import document
from svc.server.state import Request
from svc.server.web import Routes
from svc.shapes import json_object, nullable, one_of, string, tagged, whole
from tests.support.cases import each

Endpoint = Callable[[Request], Awaitable[Response]]
THING = json_object("Thing", id=string.about(example="thing_1"))
IDS = {"thing_id": item_id("thing_id", "thing", "thing")}
TEXTS = Path(__file__).parent  # has none
TOKEN = Component("securitySchemes", "token", {"type": "http", "scheme": "bearer"})


@Implied([Refusal("invalid_api_key")], security=TOKEN)
def outer(handler: Endpoint) -> Endpoint:
    async def guarded(request: Request) -> Response:
        return await handler(request)

    return guarded


@Implied([Refusal("rate_limit_exceeded")], headers={"x-left": header("How many.", whole, 1, required=False)})
def inner(handler: Endpoint) -> Endpoint:
    async def guarded(request: Request) -> Response:
        return await handler(request)

    return guarded


@Implied(html=True)
def as_page(handler: Endpoint) -> Endpoint:
    async def guarded(request: Request) -> Response:
        return await handler(request)

    return guarded


def handler(**declared: Any) -> Endpoint:
    @partial(Operation, "Things")("Do it", **{"answer": Answer("Done.", THING), **declared})
    async def do_it(request: Request) -> Response:
        return Response()

    return do_it


def operation(endpoint: Endpoint, path: str = "/things") -> dict[str, Any]:
    """The one operation of a document; its shared parts are not resolved."""
    info = {"title": "t", "version": "1"}
    whole = document([("POST", path, endpoint)], info, {"Things": "All."}, IDS, TEXTS, "https://h")
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert list(OpenAPIV31SpecValidator(whole).iter_errors()) == []
    found: dict[str, Any] = whole["paths"][path]["post"]
    return found


def test_declaration_passes_through_guards_in_order() -> None:
    found = operation_of(outer(inner(handler())))
    assert isinstance(found, Operation) and found.name == "do_it"
    assert [guard.errors[0].code for guard in found.guards] == ["invalid_api_key", "rate_limit_exceeded"]
    assert operation_of(lambda: None) is None


def test_argument_body_needs_a_shape() -> None:
    async def do_it(request: Request, body: dict[str, Any]) -> Response:
        return Response()

    declare = partial(Operation, "Things", "Do it", answer=Answer("Done."))
    with pytest.raises(TypeError, match="do_it: body must be a record, or its shape declared"):
        declare()(do_it)
    assert operation_of(declare(body=THING)(do_it)) is not None


def test_handler_must_take_what_its_guards_pass() -> None:
    @partial(Operation, "Things")("Do it", answer=Answer("Done.", THING))
    async def of_caller(request: Request, caller: Caller) -> Response:
        return Response()

    assert operation(signed_in(metered(session_only(of_caller))))
    guards: list[Any] = [signed_in, metered, per_ip("login")]
    for guard, unfit in zip(guards, (handler(), signed_in(of_caller), of_caller), strict=True):
        with pytest.raises(TypeError, match=r"takes .*, but .* passes"):
            guard(unfit)
    with pytest.raises(ValueError, match="no guard that passes what its handler takes"):
        operation(metered(of_caller))


def test_operation_documents_the_answers_of_its_guards() -> None:
    bare, guarded = operation(handler()), operation(outer(inner(handler())))
    assert set(guarded["responses"]) - set(bare["responses"]) == {"401", "429"}
    assert (bare["security"], guarded["security"]) == ([], [{"token": []}])
    assert (
        guarded["responses"]["429"]["headers"]["retry-after"]
        and "www-authenticate" in guarded["responses"]["401"]["headers"]
    )


def test_guard_headers_are_on_answers_from_there_inwards() -> None:
    responses = operation(outer(inner(handler(body=THING))))["responses"]
    with_header = {status for status, response in responses.items() if "x-left" in response["headers"]}
    assert with_header == {"200", "400", "413", "415", "429", "500", "503"}  # 401 comes before it, 421 before all


def test_refusals_behind_an_html_guard_are_pages() -> None:
    responses = operation(as_page(outer(handler())))["responses"]
    assert set(responses["401"]["content"]) == {"text/html"} and set(responses["500"]["content"]) == {
        "application/json"
    }


@each(
    "declared",
    [
        {"body": THING},
        {"body": THING, "any_type": True},
        {"body": string.about(format="binary"), "media_type": "application/octet-stream"},
        {"body": THING, "media_type": "application/x-www-form-urlencoded"},
    ],
)
def test_body_implies_its_refusals(declared: dict[str, Any]) -> None:
    responses = operation(handler(**declared))["responses"]
    assert set(responses) - set(operation(handler())["responses"]) == {"413", "415"}
    assert "overloaded" in responses["503"]["content"]["application/json"]["examples"]


def test_size_limit_has_a_fitting_unit() -> None:
    for size, told in ((16 * 1024, "16 KiB"), (44 * 1024 * 1024, "44 MiB")):
        responses = operation(handler(body=THING, most_bytes=size))["responses"]
        assert f"over {told}" in responses["413"]["description"]


def test_paged_list_has_limit_and_after() -> None:
    found = operation(handler(answer=paged("Things.", "ThingList", THING)))
    assert [parameter["name"] for parameter in found["parameters"]] == ["limit", "after"]
    assert "invalid_value" in found["responses"]["400"]["content"]["application/json"]["examples"]


def test_one_code_with_two_causes_has_two_examples() -> None:
    errors = [
        Refusal("not_found", "There is no such thing."),
        Refusal("not_found", "There is no such other.", when="No other."),
    ]
    response = operation(handler(errors=errors))["responses"]["404"]
    assert list(response["content"]["application/json"]["examples"]) == ["not_found", "not_found_2"]
    assert response["description"] == "There is no such thing. Or no other."


def test_path_parameters_must_match_the_path() -> None:
    assert operation(handler(parameters=[path_id("thing", "Which.", "thing_1")]), "/things/{thing}")
    with pytest.raises(ValueError, match="path parameters"):
        operation(handler(), "/things/{thing}")


def test_handler_must_take_the_ids_in_its_path() -> None:
    async def show(request: Request, thing_id: str) -> Response:
        raise NotImplementedError

    endpoint = outer(Operation("Things", "Show a thing", answer=Answer("The thing.", THING))(show))
    assert Routes([("GET", "/things/{thing_id}", endpoint)]).all
    for path in ("/things", "/things/{id}", "/boxes/{box_id}/things/{thing_id}"):
        with pytest.raises(TypeError, match=f"show takes .'thing_id'. from the path {path}"):
            Routes([("GET", path, endpoint)])


def test_id_in_the_path_is_described_with_its_refusal() -> None:
    found = operation(handler(), "/things/{thing_id}")
    assert [parameter["name"] for parameter in found["parameters"]] == ["thing_id"]
    assert found["responses"]["404"]["description"] == "The account has no such thing."


def test_different_parts_with_one_name_are_an_error() -> None:
    other = json_object("Thing", id=whole)
    with pytest.raises(ValueError, match="two different schemas are called Thing"):
        operation(handler(body=other))


def test_shared_responses_are_written_once() -> None:
    rows = [("GET", "/a", outer(handler())), ("POST", "/a", outer(handler()))]
    whole = document(rows, {"title": "t", "version": "1"}, {}, {}, TEXTS, "https://h")
    references = {method: found["responses"]["401"] for method, found in whole["paths"]["/a"].items()}
    shared = {"$ref": "#/components/responses/Unauthorized"}
    assert references == {"get": shared, "post": shared}


def test_object_of_an_answer_requires_its_fields_and_shows_their_examples() -> None:
    color = one_of("red", "blue").about("Its color.")
    found = json_object("Box", thing=THING, color=color, owner=nullable(THING).about("Its owner.").optional())
    assert dict(found.schema) == {
        "type": "object",
        "required": ["thing", "color"],
        "properties": {
            "thing": THING.schema,
            "color": {"type": "string", "enum": ["red", "blue"], "description": "Its color."},
            "owner": {"anyOf": [THING.schema, {"type": "null"}], "description": "Its owner."},
        },
    }
    assert found.example == {"thing": {"id": "thing_1"}, "color": "red"}
    page = paged("Boxes.", "BoxList", found).shape
    assert page is not None and page.example == {"object": "list", "data": [found.example], "has_more": False}


def test_named_part_with_further_keywords_keeps_its_reference() -> None:
    box = json_object("Box", thing=THING.about("The content.", deprecated=True))
    whole_document = document([("GET", "/box", handler(answer=Answer("A box.", box)))], {}, {}, {}, TEXTS, "https://h")
    schemas = whole_document["components"]["schemas"]
    expected = {"$ref": "#/components/schemas/Thing", "description": "The content.", "deprecated": True}
    assert schemas["Box"]["properties"]["thing"] == expected
    assert schemas["Thing"]["required"] == ["id"]


def test_event_carries_one_of_its_contents_as_json() -> None:
    one, two = json_object("One", kind=one_of("one")), json_object("Two", kind=one_of("two"))
    either = tagged("kind", {"one": one, "two": two})
    mapping = {"one": "#/components/schemas/One", "two": "#/components/schemas/Two"}
    assert either.schema["discriminator"] == {"propertyName": "kind", "mapping": mapping}
    assert event_of("Event", "It.", either).schema["properties"]["data"]["contentSchema"] == either
    assert as_event(one.example) == {"data": '{"kind":"one"}'}
