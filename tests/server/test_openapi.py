"""The interface document and the pages that show it: complete, valid, and true of the routes that app.py has."""

import itertools
import json
import pkgutil
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema_rs
import pytest
from starlette.requests import Request
from starlette.responses import Response

from app import ROUTES
from svc import routes
from svc.auth import accounts
from svc.auth.emails import EMAIL
from svc.errors import ERRORS, ApiError
from svc.inference.chat_shape import CHAT_REQUEST, check_for_builtin
from svc.inference.providers import NewProvider, ProviderChanges
from svc.routes.pages import STATIC
from svc.routes.service import document
from svc.server.web import in_anthropic_format
from svc.shapes import Shape, shape_of
from svc.version import VERSION
from tests.conftest import Service
from tests.inference.test_providers import WRONG
from tests.support.cases import each
from tests.support.openapi import DOCUMENT, check, faults, resolved, validate_response

OPERATIONS = [
    (method, path, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]
# What is answered where there is no operation: an unknown path, a method that a path does not take.
WITHOUT_OPERATION = {"not_found", "method_not_allowed"}


def nodes(value: Any, *steps: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object of the document with the steps that lead to it, without the insides of examples."""
    if isinstance(value, dict):
        yield steps, value
        for name, item in value.items():
            if name not in ("example", "examples") or steps[-1:] == ("properties",):
                yield from nodes(item, *steps, name)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from nodes(item, *steps, str(position))


NODES = list(nodes(DOCUMENT))


def parameters(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [resolved(parameter) for parameter in operation.get("parameters", [])]


def responses_with_errors() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(where, status, error) for each example of a refusal that an operation refers to, but for those in Anthropic's
    shape.
    """
    for method, path, operation in OPERATIONS:
        if in_anthropic_format(path):
            continue
        for status, response in operation["responses"].items():
            media = resolved(response).get("content", {}).get("application/json", {})
            for example in media.get("examples", {}).values() if status[0] in "45" else ():
                yield f"{method} {path}", status, example["value"]["error"]


# --- the document by itself


@pytest.mark.slow
def test_schemas_and_defaults_are_valid_openapi_3_1() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert list(OpenAPIV31SpecValidator(DOCUMENT).iter_errors()) == []


def test_document_is_valid_openapi_3_1() -> None:
    package = Path(str(find_spec("openapi_spec_validator").origin)).parent  # type: ignore[union-attr]
    schema = json.loads((package / "resources" / "schemas" / "v3.1" / "schema.json").read_text())
    assert list(jsonschema_rs.validator_for(schema).iter_errors(DOCUMENT)) == []
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert (DOCUMENT["openapi"], DOCUMENT["info"]["version"]) == ("3.1.0", VERSION)
    assert DOCUMENT["info"]["license"]["identifier"] == project["license"]


@pytest.mark.needs("node")
def test_patterns_are_valid_ecma_262() -> None:
    patterns = [node["pattern"] for _, node in NODES if isinstance(node.get("pattern"), str)]
    program = "for (const one of JSON.parse(process.argv[1])) new RegExp(one, 'u')"
    answer = subprocess.run(["node", "-e", program, json.dumps(patterns)], capture_output=True, text=True)
    assert len(patterns) > 20 and answer.returncode == 0, answer.stderr


def test_endpoint_without_declaration_is_an_error() -> None:
    async def bare(request: Request[Any]) -> Response:
        return Response()

    with pytest.raises(ValueError, match="GET /bare is not described"):
        document([("GET", "/bare", bare)], "https://h")


def test_references_resolve_and_components_are_used() -> None:
    references = {node["$ref"] for _, node in NODES if "$ref" in node}
    for reference in references:
        assert resolved({"$ref": reference}) is not None
    names = {f"#/components/{kind}/{name}" for kind, parts in DOCUMENT["components"].items() for name in parts}
    schemes = {name for _, _, operation in OPERATIONS for wanted in operation["security"] for name in wanted}
    assert names - references == {f"#/components/securitySchemes/{name}" for name in schemes}


def test_null_is_a_type_and_not_a_keyword() -> None:
    assert [steps for steps, node in NODES if "nullable" in node and steps[-1:] != ("properties",)] == []


@each(("method", "path", "operation"), OPERATIONS)
def test_operations_are_complete(method: str, path: str, operation: dict[str, Any]) -> None:
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    assert operation.get("summary"), "give @describes a summary"
    assert set(operation["tags"]) <= set(tags), "add the section to svc/routes/texts/sections.md"
    assert re.fullmatch(r"[a-z][A-Za-z]+", operation["operationId"])
    statuses = set(operation["responses"])
    assert {status[0] for status in statuses} >= {"4", "5"} and any(
        status[0] in "23" or status == "426" for status in statuses
    )
    assert {"400", "403", "408", "421", "431", "500"} <= statuses
    assert ("503" in statuses) == (path != "/healthz")
    in_path = [part["name"] for part in parameters(operation) if part["in"] == "path"]
    assert in_path == re.findall(r"\{(\w+)\}", path)
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        assert "413" in statuses
        if "*/*" not in content:  # a file, which may be empty
            assert operation["requestBody"]["required"]
            assert all(media.get("examples") for media in content.values()), "give @record an example"
    for response in operation["responses"].values():
        assert resolved(response)["description"], "give the Answer or the Refusal a text"
        assert "x-request-id" in resolved(response)["headers"]


def test_fields_of_bodies_have_the_type_of_their_shape() -> None:
    """mypy knows the annotated type only."""
    names = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    records = [kind for kind in tuple.__subclasses__() if isinstance(vars(kind).get("shape"), Shape)]
    assert len(records) > 10
    for kind in records:
        hints = get_type_hints(kind, include_extras=True)
        for field in shape_of(kind).fields:
            annotated = get_args(hints[field.name])[0]
            expected = {names[one] for one in get_args(annotated) or (annotated,) if one in names}
            declared = {one for one in names.values() if one in field.shape.schema.get("type", ())}
            fits = not expected or not declared or (declared <= expected <= declared | {"null"})
            assert fits, f"{kind.__name__}.{field.name} is annotated as {annotated}, but its shape is {declared}"


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)


def test_examples_match_their_schemas() -> None:
    count = 0
    for steps, node in NODES:
        if "schema" in node:
            values = [example["value"] for example in node.get("examples", {}).values()]
            values += [node["example"]] if "example" in node else []
            found = [(value, fault) for value in values for fault in faults(value, *steps, "schema")]
        elif isinstance(node.get("examples"), list):
            values = node["examples"]
            found = [(value, fault) for value in values for fault in faults(value, *steps)]
        else:
            continue
        assert found == [], steps
        count += len(values)
    assert count > 100


@each("path", ["/v1/chat/completions", "/v1/agents/run"])
def test_example_events_match_their_schemas(path: str) -> None:
    answers = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"]
    for example in answers["examples"].values():
        validate_response("POST", path, 200, f"data: {example['value']['data']}\n\n", "text/event-stream")
    for wrong in ('{"choices":[]}', '{"error":"text"}', '{"type":"completed"}'):
        with pytest.raises(AssertionError):
            validate_response("POST", path, 200, f"data: {wrong}\n\n", "text/event-stream")


# --- the document and the service


def test_document_has_the_routes_of_the_table_in_order() -> None:
    listed = [(method.lower(), path.replace(":path}", "}")) for method, path, _ in ROUTES]
    assert sorted((method, path) for method, path, _ in OPERATIONS) == sorted(listed)
    assert list(DOCUMENT["paths"]) == list(dict.fromkeys(path for _, path in listed))


def test_every_handler_has_a_route() -> None:
    modules = [import_module(f"svc.routes.{found.name}") for found in pkgutil.iter_modules(routes.__path__)]
    operations = [vars(one).get("operation") for module in modules for one in vars(module).values() if isfunction(one)]
    described = {operation.name for operation in operations if operation}
    routed = {vars(endpoint)["operation"].name for _, _, endpoint in ROUTES}
    assert described - routed == set(), "add these handlers to ROUTES of app.py"


async def test_documented_operations_require_a_token(service: Service) -> None:
    headers = {"origin": service.config.base_url}
    for method, path, operation in OPERATIONS:
        service.clocks.advance(61)  # reset every limit
        answer = await service.client.request(method, re.sub(r"\{\w+\}", "something", path), headers=headers)
        asked = (
            {name for wanted in operation["security"] for name in wanted} if {} not in operation["security"] else set()
        )
        assert bool(asked) == (answer.status_code == 401), (method, path)
        if asked:
            assert answer.headers["www-authenticate"] == ("Cookie" if asked == {"checkoutCookie"} else "Bearer"), (
                method,
                path,
            )
        check(answer)


def test_example_errors_match_the_table_of_errors() -> None:
    for where, status, error in responses_with_errors():
        if status == "4XX":  # a model server's own
            continue
        table_status, table_type, _ = ERRORS[error["code"]]
        if status == "416":  # a range after the end of the content has its own status
            assert error["code"] == "invalid_value", where
        elif table_type == "upstream_error":
            assert status in ("502", "503", "504"), where
        else:
            assert status == str(table_status), where
        assert error["type"] == table_type and ("retry_after" in error) == (status == "429"), where


def test_all_error_codes_are_documented() -> None:
    given = {error["code"] for _, status, error in responses_with_errors() if status != "4XX"}
    assert (given | WITHOUT_OPERATION) ^ set(ERRORS) == set(), "an operation declares each code with a Refusal"
    for code in WITHOUT_OPERATION:
        assert f"`{code}`" in DOCUMENT["info"]["description"]
    listed = DOCUMENT["components"]["schemas"]["ErrorDetail"]["properties"]["code"]["description"]
    assert set(re.findall(r"`(\w+)`", listed)) == set(ERRORS)


async def test_document_is_served_with_the_servers_base_url(service: Service) -> None:
    answer = await service.client.get("/openapi.json")
    assert answer.json() == {**DOCUMENT, "servers": [{"url": service.config.base_url}]}


@each(
    ("status", "body"),
    [
        (200, {"status": "ok", "version": "1", "more": 1}),
        (200, {"status": "fine", "version": "1"}),
        (200, None),
        (201, {"status": "ok", "version": "1"}),
        (500, {"error": "text"}),
        (404, {"error": {"message": "", "type": "", "code": None, "param": None}}),
    ],
)
def test_undocumented_answers_fail_the_check(status: int, body: Any) -> None:
    validate_response("GET", "/healthz", 200, {"status": "ok", "version": "1"})
    with pytest.raises(AssertionError):
        validate_response("GET", "/healthz", status, body)


def test_every_list_is_marked_as_a_list() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    lists = {name for name, schema in schemas.items() if {"data", "has_more"} <= schema.get("properties", {}).keys()}
    assert len(lists) > 20
    assert {name for name in lists if "object" not in schemas[name]["properties"]} == set()


def test_only_paged_lists_describe_the_next_page() -> None:
    for method, path, operation in OPERATIONS:
        answers = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
        has_more = resolved(answers.get("schema", {})).get("properties", {}).get("has_more", {})
        paged = any(one["name"] == "after" for one in operation.get("parameters", ()))
        assert ("`after`" in has_more.get("description", "")) <= paged, f"{method} {path}: describe its has_more"


# --- the chat request: the document refuses what the service refuses

FIELDS = DOCUMENT["components"]["schemas"]["ChatCompletionRequest"]["properties"]
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SCALARS: list[Any] = [None, True, False, "", " ", "none", "words"]
NUMBERS: list[Any] = [0, 1, -3, 2, 5, 128, 129, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 0.5, 2.5, -2.5]
OBJECTS: list[Any] = [
    *({}, {"include_usage": True}, {"include_usage": 1}, {"name": "f"}, {"name": " "}, {"name": 1}),
    *({"type": "text"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}),
    *(
        {"type": "json_schema", "json_schema": {"name": "s", "strict": "yes"}},
        {"type": "custom", "custom": {"name": "c"}},
    ),
    *({"type": "function"}, {"type": "function", "function": {}}, {"type": "function", "function": {"name": "f"}}),
]
ITEMS: list[Any] = [
    *(1, "a", {}, {"name": "f"}, {"name": "f", "description": 1}, {"type": "function"}, {"type": "custom"}),
    *(
        {"type": "function", "function": {"name": "f", "parameters": {}}},
        {"type": "function", "function": {"name": ""}},
    ),
]
MESSAGES: list[Any] = [
    *(
        {"role": role, "content": "hi"}
        for role in ("system", "developer", "user", "assistant", "function", "tool", "robot")
    ),
    *({"role": role} for role in ("user", "assistant", "function", "tool")),
    *(
        {"role": "assistant", "tool_calls": calls}
        for calls in ([CALL], [1], [{"function": {"arguments": ""}}], None, {})
    ),
    *({"role": "tool", "content": "1", "tool_call_id": call_id} for call_id in ("c", 1, None)),
    *({"role": "user", "content": content} for content in (None, 1, [], ["a"], [{"text": "a"}], {})),
    *(
        {"role": "user", "content": [part]}
        for part in ({"type": "text", "text": "a"}, {"type": "text"}, {"type": "input_audio"})
    ),
    *(
        {"role": "user", "content": [{"type": "image_url", "image_url": url}]}
        for url in ({"url": "data:,"}, "data:,", {}, 1)
    ),
    *({"content": "hi"}, {"role": 1, "content": ""}, {"role": "developer", "content": "", "name": 1}),
]
LISTS = [[], ["a"] * 4, ["a"] * 5, *([item] for item in [*ITEMS, *MESSAGES])]
VALUES = [*SCALARS, *NUMBERS, *OBJECTS, *LISTS]


@each("field", [*FIELDS, "unknown"])
def test_chat_request_is_checked_as_documented(field: str) -> None:
    outcomes = set()
    for value in VALUES:
        body = {"messages": [{"role": "user", "content": "hi"}], field: value}
        try:
            check_for_builtin(CHAT_REQUEST.check(body, ""))  # to providers more goes through, for them to judge
            accepted = True
        except ApiError:
            accepted = False
        wrong = faults(body, "components", "schemas", "ChatCompletionRequest")
        assert accepted == (not wrong), (field, value, wrong)
        outcomes.add(accepted)
    assert outcomes == ({True} if field == "unknown" else {True, False})


@each(
    ("schema", "shape"),
    [("Email", EMAIL), ("NewPassword", accounts.PASSWORD), ("PersonName", accounts.PERSON_NAME)],
)
def test_account_fields_are_checked_as_documented(schema: str, shape: Shape[Any]) -> None:
    texts = [
        "",
        " ",
        "a@b",
        "a@",
        "@b",
        "a@b@c",
        "a b@c.example",
        "é@ü.example",
        "a@[::1]",
        "a\u200b@b",
        "a\uff20b@c",
        "a<b@c.example",
        "a@b\n",
        "\0@b.example",
    ]
    lengths = [
        "x" * 7,
        "x" * 8,
        "\U0001f600" * 8,
        "x" * 200,
        "x" * 201,
        "x" * 252 + "@b",
        "x" * 253 + "@b",
        "x" * 1024,
        "x" * 1025,
    ]
    outcomes = set()
    for value in [*texts, *lengths, "Ada \x85", "Ada\t", None, 1, True, [], {}]:
        try:
            shape.check(value, "x")
            accepted = True
        except ApiError:
            accepted = False
        assert accepted == (not faults(value, "components", "schemas", schema)), value
        outcomes.add(accepted)
    assert outcomes == {True, False}


PROVIDER: dict[str, list[Any]] = {
    "name": ["a", "a-b_7"],
    "base_url": ["HTTP://H:8080/v1", "https://[::1]"],
    "api_key": [None, "~!"],
    "models": [None, [], ["a"]],
}


@each(("schema", "kind"), [("CreateProviderRequest", NewProvider), ("UpdateProviderRequest", ProviderChanges)])
def test_provider_fields_are_checked_as_documented(schema: str, kind: type[Any]) -> None:
    for field, value in [(name, value) for cases in (PROVIDER, WRONG) for name in cases for value in cases[name]]:
        body = {"name": "mine", "base_url": "https://h", field: value}
        wrong = faults(body, "components", "schemas", schema)
        try:
            shape_of(kind).check(body, "")
            accepted = True
        except ApiError:
            accepted = False
        # A pattern cannot express which ports and printable characters are valid.
        assert accepted == (not wrong) or (field in ("base_url", "models") and not accepted), (field, value)
        assert accepted == (value in PROVIDER[field])
    assert bool(faults({}, "components", "schemas", schema)) == (kind is NewProvider)


# --- the pages

PAGES = ["/", "/docs", "/password-reset", "/verify-email", "/checkout"]
SCRIPTS = sorted(path.name for path in STATIC.glob("*.js"))


@each("path", PAGES)
async def test_pages_obey_their_policy(service: Service, path: str) -> None:
    html = (await service.client.get(path)).text
    html = re.sub(r'<script type="importmap">.*?</script>', "", html, flags=re.DOTALL)  # let in by its hash
    html = re.sub(
        r'<script id="(?:limits|texts)" type="application/json">.*?</script>', "", html
    )  # data, which no browser runs
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", html)
    addresses = re.findall(r"\b(?:src|href|action)=\"([^\"]+)\"", html)
    assert all(re.match(r"/(?!/)|#|data:image/svg", address) for address in addresses)
    loaded = [address for address in addresses if address.startswith("/static/")]
    assert any(address.endswith(".css") for address in loaded)
    for address in loaded:
        answer = await service.client.get(address)
        assert answer.status_code == 200 and "default-src 'none'" in answer.headers["content-security-policy"], address


@each("name", SCRIPTS)
def test_scripts_write_text_and_no_markup(name: str) -> None:
    script = (STATIC / name).read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|https?://", script
    )


@each(
    ("path", "title"),
    [("/", "svc"), ("/docs", "Reference"), ("/password-reset", "New password"), ("/verify-email", "Verify your email")],
)
async def test_pages_have_a_strict_policy(service: Service, path: str, title: str) -> None:
    answer = await service.client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["referrer-policy"] == "no-referrer" and answer.headers["x-content-type-options"] == "nosniff"
    assert title in "".join(itertools.chain(re.findall(r"<title>(.*?)</title>", answer.text)))
