"""Holds answers against the interface document, so that the document cannot say one thing and the service another."""

import contextlib
import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
import orjson
from starlette.routing import compile_path

from app import ROUTES
from svc.routes.service import document
from svc.server.web import in_anthropic_format

DOCUMENT: dict[str, Any] = document(ROUTES, "https://127.0.0.1:8443")
# What belongs to the message and not to the answer; OpenAPI has content-type elsewhere. CORS is in the introduction.
_OF_TRANSPORT = {
    "content-type",
    "content-length",
    "content-encoding",
    "connection",
    "date",
    "transfer-encoding",
    "vary",
}
# Parameters that Anthropic's SDK and identity providers add, and those of signed links.
_FROM_OTHERS = {"beta", "error_description", "more", "account", "expires", "signature"}
_ERROR = ("components", "schemas", "Error")
_ANTHROPIC_ERROR = ("components", "schemas", "MessagesError")


def _closed(value: Any) -> Any:
    """`value` with every schema of named properties closed: an answer must not hold a field that the document does not
    know.
    """
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {name: _closed(item) for name, item in value.items()}
    if isinstance(value.get("properties"), dict) and "type" in value:
        schema.setdefault("additionalProperties", False)
    return schema


_REGISTRY = jsonschema_rs.Registry([("urn:document", _closed(copy.deepcopy(DOCUMENT)))])
_PATHS = [(compile_path(path)[0], path.replace(":path}", "}")) for path in dict.fromkeys(path for _, path, _ in ROUTES)]


def pointer(*steps: str) -> str:
    """A JSON pointer as a URI fragment."""
    return "#/" + "/".join(
        step.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D") for step in steps
    )


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    """What `value` refers to in the document, or `value` itself."""
    if "$ref" not in value:
        return value
    return resolved(_at(_steps(value["$ref"])))


@cache
def _validator(*steps: str) -> jsonschema_rs.Draft202012Validator:
    schema = {"$ref": "urn:document" + pointer(*steps)}
    return jsonschema_rs.Draft202012Validator(schema, registry=_REGISTRY, validate_formats=True)


@cache
def _headers(*steps: str) -> dict[str, tuple[bool, jsonschema_rs.Draft202012Validator, bool]]:
    """The headers of the response that stands there: whether each is an integer, how it is checked, whether it must be
    there.
    """
    headers = {name: resolved(header) for name, header in _at(steps).get("headers", {}).items()}
    schemas = {name: resolved(header["schema"]) for name, header in headers.items()}
    return {
        name: (
            schema["type"] == "integer",
            jsonschema_rs.Draft202012Validator(schema, validate_formats=True),
            headers[name].get("required", False),
        )
        for name, schema in schemas.items()
    }


def faults(value: Any, *steps: str) -> list[str]:
    """What is wrong with `value` under the schema that stands at `steps` in the document; empty when nothing is."""
    validator = _validator(*steps)
    if validator.is_valid(value):
        return []
    return [f"$.{'.'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(value)]


@cache
def path_of(path: str, method: str) -> str | None:
    """The document's path of a request: `/v1/models/{model_id}` of GET `/v1/models/builtin/echo`; None for an unknown
    one.
    """
    templates = [template for regex, template in _PATHS if regex.match(path)]
    with_method = (template for template in templates if method.lower() in DOCUMENT["paths"].get(template, {}))
    return next(with_method, next(iter(templates), None))


def response_steps(template: str, method: str, status: int) -> tuple[str, ...]:
    """Where the answer of that status stands. Raises AssertionError where the document does not know it."""
    known = DOCUMENT["paths"][template][method.lower()]["responses"]
    key = next((key for key in (str(status), f"{status // 100}XX") if key in known), None)
    assert key is not None, f"{method} {template}: {status} is not of {sorted(known)}; add a Refusal to its `errors`"
    if "$ref" in known[key]:
        return _steps(known[key]["$ref"])
    return ("paths", template, method.lower(), "responses", key)


def validate_response(
    method: str, path: str, status: int, body: Any, content_type: str = "application/json", *, own: bool = True
) -> None:
    """Raises AssertionError unless the document allows this answer, which is the service's own or a model server's.

    `path` is the request's or the document's; `body` is the parsed JSON, the text of another type, None for an empty
    one. On a path or method that is none of the document's only the error shape is right.
    """
    template = path if path in DOCUMENT["paths"] else path_of(path, method)
    if template is None or method.lower() not in DOCUMENT["paths"].get(template, {}):
        assert status in (404, 405) or status >= 400, f"{method} {path} is not in the document and answered {status}"
        if status == 404 and content_type.startswith("text/html"):  # for a browser
            return
        assert not (wrong := faults(body, *(_ANTHROPIC_ERROR if in_anthropic_format(path) else _ERROR))), wrong
        return
    steps = response_steps(template, method, status)
    contents = _at(steps).get("content", {})
    kind = content_type.partition(";")[0]
    if not contents:
        assert body is None, f"{method} {template} {status} has a body: give its Answer the schema"
        return
    if "*/*" in contents:  # a file of an account
        return
    assert kind in contents, f"{method} {template} {status} is {kind}, the document knows {sorted(contents)}"
    schema = (*steps, "content", kind, "schema")
    schema = _of_alternatives(schema, own)
    wrong = _stream_faults(body, schema, own) if kind == "text/event-stream" else faults(body, *schema)
    assert not wrong, f"{method} {template} {status}: {wrong}"
    a_model_server_may_say_more = "4XX" in DOCUMENT["paths"][template][method.lower()]["responses"]
    has_codes = not a_model_server_may_say_more and not in_anthropic_format(path)
    if status >= 400 and kind == "application/json" and has_codes:
        codes = {example["value"]["error"]["code"] for example in contents[kind]["examples"].values()}
        code = body["error"]["code"]
        assert code in codes, f"{method} {template} {status}: add a Refusal({code!r}, ...) to its @describes"


# How the service's own answers in the formats of Responses and Messages begin. Model servers of the tests write spaces.
_OWN_ANSWER = re.compile(
    rb'(?:event: (?:response\.created|message_start)\ndata: \{"type":"[a-z._]+",(?:"sequence_number":0,)?"(?:response|message)":)?'
    rb'\{"id":"(?:resp_[0-9A-Za-z]{32}|msg_[0-9A-Za-z]{24})",'
)


def _of_alternatives(schema: tuple[str, ...], own: bool) -> tuple[str, ...]:
    """The schema of the service's own answer, or of one that comes from a model server as it is, if both may come."""
    alternatives = _at(schema).get("anyOf", ())
    if len(alternatives) != 2 or not str(alternatives[1].get("$ref")).rpartition("/")[2].startswith("Passed"):
        return schema
    return (*schema, "anyOf", "0" if own else "1")


def _stream_faults(text: str, schema: tuple[str, ...], own: bool) -> list[str]:
    # As later versions of OpenAPI have it, the schema is that of one event, and `contentSchema` that of the JSON in its
    # data.
    while "$ref" in _at(schema):
        schema = _steps(_at(schema)["$ref"])
    content = next(steps for steps in _below(*schema) if steps[-1] == "contentSchema")
    content = _of_alternatives(content, own)
    *blocks, rest = text.split("\n\n")
    if rest:
        return ["the stream ends inside an event"]
    found = []
    for block in blocks:
        if block == ": ping":
            continue
        lines = re.fullmatch(r"(?:event: ([^\n]+)\n)?data: ([^\n]+)", block)
        if lines is None:
            found.append(f"not one line of data: {block!r}")
            continue
        name, data = lines.groups()
        found += faults({"data": data} if name is None else {"event": name, "data": data}, *schema)
        if data != "[DONE]":
            found += faults(json.loads(data), *content)
    return found


def check(answer: httpx.Response) -> None:
    """Raises AssertionError unless the document allows `answer`, which has been read: status, headers and body."""
    request = answer.request
    if request.method == "OPTIONS":
        return
    method = "GET" if request.method == "HEAD" else request.method
    headers = dict(answer.headers)
    content_type = headers.get("content-type", "")
    template = path_of(request.url.path, method)
    if request.method != "HEAD":
        validate_response(
            method,
            template or request.url.path,
            answer.status_code,
            _body(answer, content_type),
            content_type,
            own=_OWN_ANSWER.search(answer.content[:1000]) is not None,
        )
    if template is None or method.lower() not in DOCUMENT["paths"].get(template, {}):
        return
    if answer.status_code < 400 and not request.extensions.get("invented"):  # the fuzzer invents parameters
        described = [resolved(one) for one in DOCUMENT["paths"][template][method.lower()].get("parameters", ())]
        sent = set(request.url.params) - _FROM_OTHERS - {one["name"] for one in described if one["in"] == "query"}
        assert not sent, (
            f"{method} {template}: the document does not know the parameters {sorted(sent)}: use parameters= or paged(...)"
        )
    known = _headers(*response_steps(template, method, answer.status_code))
    unknown = headers.keys() - known.keys() - _OF_TRANSPORT
    unknown = {name for name in unknown if not name.startswith("access-control-")}
    assert not unknown, (
        f"{method} {template} {answer.status_code}: the document does not know the headers {sorted(unknown)}"
    )
    for name, (is_integer, validator, required) in known.items():
        if name in headers:
            value = int(headers[name]) if is_integer else headers[name]
            assert validator.is_valid(value), f"{method} {template} {answer.status_code}: {name}: {value!r}"
        else:
            assert not required, f"{method} {template} {answer.status_code} lacks the header {name}"


def _body(answer: httpx.Response, content_type: str) -> Any:
    """The parsed JSON, the text of a stream, the beginning of another type, None for an empty one."""
    if answer.content and content_type == "application/json":
        with contextlib.suppress(orjson.JSONDecodeError):  # a file may only say that it is JSON; no schema takes a text
            return orjson.loads(answer.content)
    if content_type.startswith("text/event-stream"):
        return answer.content.decode() or None
    # Of the others the schemas say only that they are some text, and to decode 32 MiB takes seconds.
    return answer.content[:1000].decode("latin-1") or None


def _below(*steps: str) -> Iterator[tuple[str, ...]]:
    """The steps to everything inside what stands at `steps`."""
    value = _at(steps)
    names = value if isinstance(value, dict) else map(str, range(len(value))) if isinstance(value, list) else ()
    for name in names:
        yield (*steps, name)
        yield from _below(*steps, name)


def _steps(reference: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in reference.removeprefix("#/").split("/"))


def _at(steps: tuple[str, ...]) -> Any:
    value: Any = DOCUMENT
    for step in steps:
        value = value[int(step) if isinstance(value, list) else step]
    return value
