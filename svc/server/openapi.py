"""The interface document (OpenAPI 3.1), built from the route table, the declarations of handlers and guards, and the
error table.

row (method, path, endpoint) -> its Operation -> refusals by status, from outside inwards -> responses -> shared
components
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from svc.errors import ERRORS, ApiError
from svc.json_text import MOST_JSON_VALUES
from svc.server.http.head import COMMON_HEADERS
from svc.server.interface import (
    Answer,
    Content,
    Implied,
    Operation,
    Parameter,
    Refusal,
    error_content,
    header,
    named_header,
    operation_of,
)
from svc.server.limits import KIB, MIB
from svc.server.web import DEFAULT_LIMIT, MOST_ITEMS, PAGE_LIMIT, RouteRow, in_anthropic_format
from svc.shapes import ABSENT, Component, Schema, Shape, one_of, string, whole

# --- what every operation has

_REQUEST_ID = string.about(example="req_4fGk2mXq9TzLw8RbYc1VdN", pattern="^[\\x21-\\x7e]{1,128}$")
_ANTHROPIC_REQUEST_ID = named_header(
    "AnthropicRequestId", "The same as `x-request-id`, for Anthropic's SDKs.", _REQUEST_ID
)
_EVERYWHERE = {
    "x-request-id": named_header(
        "RequestId",
        "The id of this request, also in the log. It is the caller's `x-request-id` if that has 1 to 128 visible ASCII "
        "characters, else a new one.",
        _REQUEST_ID,
    ),
    "strict-transport-security": named_header(
        "StrictTransportSecurity", "HTTPS only.", string, COMMON_HEADERS["strict-transport-security"]
    ),
    "x-content-type-options": named_header(
        "ContentTypeOptions", "Browsers must not guess the type.", one_of(COMMON_HEADERS["x-content-type-options"])
    ),
    "cache-control": named_header("CacheControl", "Whether to cache the answer.", string, "no-store", required=False),
}
REFERRER_POLICY = named_header(
    "ReferrerPolicy", "The Referer that browsers send.", string, "no-referrer", required=False
)
OF_PAGES = {
    "content-security-policy": named_header(
        "ContentSecurityPolicy", "What a page may load and run.", string, "default-src 'none'", required=False
    ),
    "referrer-policy": REFERRER_POLICY,
}
_OF_STREAMS = {
    "x-accel-buffering": named_header("Buffering", "On streams: proxies must not buffer.", one_of("no"), required=False)
}
_RETRY_AFTER = {
    "retry-after": named_header(
        "RetryAfter",
        "The seconds to wait: 1 to 59 for a limit per minute, up to 3599 for one per hour.",
        whole.about(minimum=1),
        37,
    )
}
_NO_RETRY = {
    "x-should-retry": named_header(
        "ShouldRetry", "A retry cannot succeed. The common SDKs read this header.", one_of("false")
    )
}
_MAY_RETRY = {"x-should-retry": header("Sent if only the operator can fix the cause.", one_of("false"), required=False)}
_OF_STATUS: Mapping[str, Mapping[str, Schema]] = {
    "401": {"www-authenticate": named_header("WwwAuthenticate", "How to sign in.", one_of("Bearer"))},
    "402": _NO_RETRY,
    "409": _NO_RETRY,
    "429": _RETRY_AFTER,
    "502": _MAY_RETRY,
    "503": {**_RETRY_AFTER, **_MAY_RETRY},
}
_ASK_FOR_COOKIE = {"www-authenticate": header("The page asks to sign in.", one_of("Cookie"))}
_PAGE_PARAMETERS = (
    Parameter(
        "limit",
        f"The most items. Above {MOST_ITEMS} means {MOST_ITEMS}.",
        whole.about(minimum=1, default=DEFAULT_LIMIT),
        DEFAULT_LIMIT,
        refusal=Refusal(
            "invalid_value",
            f"limit must be {PAGE_LIMIT.expected}.",
            "limit",
            "`limit` is below 1 or not an integer, or `after` is no id of such an item.",
        ),
    ),
    Parameter("after", "The id of the last item of the previous page, which may have been deleted.", string),
)

# The errors of the server itself, before or around any guard.
_MIDDLEWARE = (
    Refusal("invalid_request", when="The request is not well-formed HTTP."),
    Refusal("https_required", when="The proxy did not mark the request as HTTPS."),
    Refusal("request_timeout", when="The request did not arrive in time."),
    Refusal("misdirected_request", when="The server does not serve this `Host`."),
    Refusal("headers_too_large"),
    Refusal("internal_error", when="An internal error. The log has it under the request id."),
    Refusal("shutting_down", when="The service is shutting down."),
    Refusal("overloaded"),
)
_WHEN = {
    "missing_field": "A required field is missing. `param` names it.",
    "invalid_value": "A field is wrong. `param` names it.",
    "overloaded": "The service is busy.",
    "storage_unavailable": "The storage is not writable.",
}
HTML = Content(string.about(contentMediaType="text/html"))


# --- the document


def document(
    routes: Iterable[RouteRow],
    info: Mapping[str, Any],
    tags: Mapping[str, str],
    ids: Mapping[str, Parameter],
    texts: Path,
    base_url: str,
) -> dict[str, Any]:
    """Return the document. `ids` are the path parameters that are ids of objects, by name. The folder `texts` has the
    descriptions of more than a line, by handler.

    Raise ValueError for an endpoint without a declaration, or if two different parts have one name.
    """
    paths: dict[str, dict[str, Any]] = {}
    components = Components()
    for method, path, endpoint in routes:
        operation = operation_of(endpoint)
        if operation is None:
            raise ValueError(f"{method} {path} is not described: its handler lacks @describes")
        if len(operation.takes) != 1:
            raise ValueError(f"{method} {path} has no guard that passes what its handler takes: {operation.takes}")
        template = path.replace(":path}", "}")
        paths.setdefault(template, {})[method.lower()] = _operation(operation, template, ids, texts)
        components.referred(operation.schemes)
    return {
        "openapi": "3.1.0",
        "info": components.referred(info),
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, text in tags.items()],
        "paths": components.name_shared_responses(components.referred(paths)),
        "components": components.parts,
    }


class Components:
    """Collects the named parts of the document in `parts`, its `components`."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, Any]] = {}
        self._sources: dict[tuple[str, str], Component] = {}
        self._responses: Counter[str] = Counter()

    def referred(self, value: Any) -> Any:
        """Return `value` with schemas for shapes, references for named parts, and the texts of files."""
        if isinstance(value, Shape):
            return self.referred(value.schema)
        if isinstance(value, Component):
            return self._reference(value)
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), Component):  # a named part with further keywords
                return {**self.referred({**value, "$ref": ""}), **self._reference(value["$ref"])}
            return {name: self.referred(part) for name, part in value.items()}
        if isinstance(value, Path):
            return value.read_text().strip()
        if isinstance(value, list | tuple):
            return [self.referred(part) for part in value]
        return value

    def _reference(self, component: Component) -> dict[str, str]:
        key = (component.kind, component.name)
        if key not in self._sources:
            self._sources[key] = component
            self.parts.setdefault(component.kind, {})[component.name] = self.referred(dict(component))
        elif self._sources[key] != component:
            raise ValueError(f"two different {component.kind} are called {component.name}")
        return {"$ref": component.reference}

    def name_shared_responses(self, paths: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return `paths` with references to the error responses that several operations share."""
        uses: dict[bytes, list[tuple[dict[str, Any], str]]] = {}
        for operation in [operation for item in paths.values() for operation in item.values()]:
            answers = operation["responses"]
            for status in answers:
                if status[0] in "45":
                    uses.setdefault(orjson.dumps(answers[status]), []).append((answers, status))
        for text, found in uses.items():
            if len(found) > 1:
                name = self._free_name(found[0][1])
                self.parts.setdefault("responses", {})[name] = orjson.loads(text)
                for answers, status in found:
                    answers[status] = {"$ref": f"#/components/responses/{name}"}
        return paths

    def _free_name(self, status: str) -> str:
        """Return the next one of `NotFound`, `NotFound2`, ..."""
        phrase = "Model server refusal" if status == "4XX" else HTTPStatus(int(status)).phrase
        name = re.sub(r"[^A-Za-z]", "", phrase.title())
        self._responses[name] += 1
        return f"{name}{self._responses[name]}" if self._responses[name] > 1 else name


# --- one operation


def _operation(operation: Operation, path: str, ids: Mapping[str, Parameter], texts: Path) -> dict[str, Any]:
    """Return the operation, to which the ids in its path are added, except those that it declares itself."""
    names = re.findall(r"\{(\w+)\}", path)
    guarded = [parameter for guard in operation.guards for parameter in guard.parameters]
    declared = [*operation.parameters, *guarded, *(_PAGE_PARAMETERS if operation.answer.is_page else ())]
    own = [one.name for one in declared]
    parameters = [*(ids[name] for name in names if name in ids and name not in own), *declared]
    in_path = [one.name for one in parameters if one.where == "path"]
    if in_path != names:
        raise ValueError(f"{path} has the path parameters {in_path}; svc/routes/service.py lists ids of objects")
    refusals = [*(one.refusal for one in parameters if one.refusal), *operation.errors]
    file = texts / f"{operation.name}.md"
    value: dict[str, Any] = {
        "tags": [operation.tag],
        "operationId": re.sub("_([a-z])", lambda start: start[1].upper(), operation.name),
        "summary": operation.summary,
        "description": file if file.exists() else operation.text,
        "security": [{scheme.name: []} if scheme else {} for scheme in operation.schemes],
        "parameters": [one.schema for one in parameters],
        "requestBody": _body(operation),
        "responses": _responses(replace(operation, errors=refusals), path),
    }
    return {name: part for name, part in value.items() if part or name == "security"}


def _body(operation: Operation) -> dict[str, Any] | None:
    if operation.body is None:
        return None
    content = _content(Content(operation.body, operation.examples))
    if operation.media_type == "application/octet-stream":
        return {"required": False, "content": {operation.media_type: content, "*/*": content}}
    return {"required": True, "content": dict.fromkeys(operation.media_type.split(", "), content)}


def _content(content: Content) -> dict[str, Any]:
    example = content.shape.example
    examples = content.examples or ({} if example is None else {"example": example})
    named = {
        name: {"summary": one[0], "value": one[1]} if isinstance(one, tuple) else {"value": one}
        for name, one in examples.items()
    }
    return {"schema": content.shape, **({"examples": named} if named else {})}


def _responses(operation: Operation, path: str) -> dict[str, Any]:
    """Return the responses by status: the handler's answers, and the refusals of server, guards, body and handler."""
    guards = operation.guards
    middleware = [refusal for refusal in _MIDDLEWARE if path != "/healthz" or ERRORS[refusal.code][0] != 503]
    stored = [Refusal("storage_unavailable")] if operation.body else []
    layers = [middleware, *(guard.errors for guard in guards), [*_of_body(operation), *operation.errors, *stored]]
    found: dict[str, list[tuple[int, Refusal]]] = {}
    for depth, refusals in reversed([*enumerate(layers)]):
        for refusal in refusals:
            found.setdefault(refusal.status or str(ERRORS[refusal.code][0]), []).append((depth, refusal))
    answers = {str(answer.status): answer for answer in (operation.answer, *operation.others)}
    answers |= {status: _refused(guards, path, status, refusals) for status, refusals in found.items()}
    responses: dict[str, Any] = {}
    for status, answer in sorted(answers.items()):
        contents = {"application/json": Content(answer.shape)} if answer.shape else answer.contents
        headers = {
            **operation.headers,
            **_EVERYWHERE,
            **(OF_PAGES if "text/html" in contents else {}),
            **(_OF_STREAMS if "text/event-stream" in contents else {}),
            **answer.headers,
            **({"request-id": _ANTHROPIC_REQUEST_ID} if in_anthropic_format(path) else {}),
        }
        innermost = found[status][0][0] if status in found and status != "500" else len(guards)
        for guard in guards[:innermost]:
            headers.update(guard.headers)
        content = {kind: _content(content) for kind, content in contents.items()}
        responses[status] = {
            "description": answer.text,
            "headers": headers,
            **({"content": content} if content else {}),
        }
    return responses


def _of_body(operation: Operation) -> list[Refusal]:
    if operation.body is None:
        return []
    most_bytes, found = operation.most_bytes, []
    too_large = f"over {most_bytes // MIB} MiB" if most_bytes >= MIB else f"over {most_bytes // KIB} KiB"
    coded = "compressed"
    if operation.media_type == "application/json":
        too_large += f", or has more than {MOST_JSON_VALUES:,} JSON values"
        position = "The request body is not valid JSON: unexpected character at character 12."
        found.append(Refusal("invalid_json", position, when="The body is not JSON."))
        coded += "" if operation.any_type else ", or its type is not `application/json` in UTF-8"
    elif operation.media_type == "application/x-www-form-urlencoded":
        coded += ", or not a urlencoded form"
    elif operation.media_type == "multipart/form-data":
        coded += ", or not a form of this type"
    return [
        *found,
        Refusal("unsupported_media_type", when=f"The body is {coded}."),
        *example_refusals(operation.body),
        Refusal("PAYLOAD_TOO_LARGE", when=f"The body is {too_large}."),
        Refusal("overloaded"),
    ]


def example_refusals(shape: Shape[Any]) -> Iterator[Refusal]:
    """Yield a record's errors for the first field that must not be null if it is, and for the first wrong field."""
    never_null = [field for field in shape.fields if field.default in (..., ABSENT)]
    for fields, value in ((never_null, None), (shape.fields, object())):
        for field in fields:
            try:
                field.shape.check(value, field.name)
            except ApiError as error:
                yield Refusal(error.code, error.error["message"], error.error["param"])
                break


def _refused(guards: Sequence[Implied], path: str, status: str, found: Sequence[tuple[int, Refusal]]) -> Answer:
    """Return the answer with the refusals of one status, from the innermost outwards, as JSON or as a page."""
    pages: list[Refusal] = []
    refusals: list[Refusal] = []
    for depth, refusal in found:
        (pages if any(guard.html for guard in guards[:depth]) else refusals).append(refusal)
    headers = {**_OF_STATUS.get(status, {}), **(_ASK_FOR_COOKIE if status == "401" and pages else {})}
    for _, refusal in found:
        headers.update(refusal.headers)
    contents = {"text/html": HTML} if pages else {}
    if refusals:
        contents["application/json"] = error_content(path, status, refusals)
    return Answer(_causes(refusal for _, refusal in found), headers=headers, contents=contents)


def _causes(refusals: Iterable[Refusal]) -> str:
    """Return the cause of each refusal in one sentence: its own, or the first one of its message."""
    causes = []
    for refusal in refusals:
        message = refusal.message or ERRORS[refusal.code][2]
        causes.append(refusal.when or _WHEN.get(refusal.code) or message.partition(". ")[0].removesuffix(".") + ".")
    first, *others = dict.fromkeys(causes)
    lowered = (re.sub("^[A-Z](?=[a-z ])", lambda start: start[0].lower(), one) for one in others)
    return " Or ".join([first, *lowered])
