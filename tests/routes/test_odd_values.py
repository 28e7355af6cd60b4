"""Odd and longest values for every field of every endpoint: none is a 500, and accepted values are returned unchanged.

The requests are generated from the interface document. The values are long texts in several scripts, marks, quotes,
blanks and NUL, the limits of numbers, whole floats, and every member of an enumeration. Afterwards all lists, objects
and the export are read. The normal run sends one in four of the values of each field, and other ones for the next field.
The soak run sends all.
"""

import dataclasses
import io
import json
import re
import urllib.parse
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.agents.tools.offered import TOOLS
from svc.billing import wallet
from svc.billing.checkout_cookie import COOKIE
from svc.config import Config
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.routes.test_other_accounts import BODIES, PATH_PARAMETERS, Person, person
from tests.support.model_server import ModelServer
from tests.support.openapi import DOCUMENT, resolved

FORM = "application/x-www-form-urlencoded"
# Where nothing bounds a text, and where the texts that are slow to index or to speak are left out.
UNBOUNDED, VERY_LONG = 3_000, 20_000
PARAMETER = 501  # one more than the longest of the document: httpx takes long to quote more
SHORT = (
    *("", " ", "\0", "a\0b", "\u3000x\u00a0", "\ud800", "-1", "null", "\r\ndata: x\n\n"),
    *("\u2028\u0085", "\x1b[31m\x7f", "👩\u200d👩\u200d👧\u202e\u2066x\ufeff\ufffe", "e\u0301ﷺİß\u200b"),
    *('\'; DROP TABLE x; -- "\\" %s {0} ${x} %00 <script>', "🙂", "../../etc", "a" * 63, "k" * 4_096),
    *("x" * 242 + "@example.com", "a/" + "b" * 198, "http://127.0.0.1:9/" + "v" * 1_981),
    *("64x64", "1536x1024", "AAAA" * 500, "builtin/echo"),
)
FEW = ("", "🙂e\u0301\0'\"\\", "x" * UNBOUNDED, "\ud800", "a" * 63)
NUMBERS = (0, 1, -1, 2.0, 0.5, -0.0, 2**31, 2**53 + 1, 2**63, -(2**63), 1e308, 10**400)
FEW_NUMBERS = (0, -1, 2.0, 0.5, 2**63, 1e308, 10**400)
MESSAGES = [{"role": "user", "content": "hi"}]
# Bodies with which a request is quick and does something; NUMBER is another one each time.
QUICK: dict[tuple[str, str], dict[str, Any]] = {
    **BODIES,
    ("POST", "/v1/chat/completions"): {"model": "builtin/echo", "messages": MESSAGES},
    ("POST", "/v1/responses"): {"model": "builtin/echo", "input": "hi"},
    ("POST", "/v1/messages"): {"model": "builtin/echo", "messages": MESSAGES, "max_tokens": 100},
    ("POST", "/v1/messages/count_tokens"): {"model": "builtin/echo", "messages": MESSAGES},
    ("POST", "/auth/signup"): {"email": "personNUMBER@example.com", "password": "correct horse battery"},
    ("POST", "/auth/password-reset"): {"email": "ada@example.com"},
    ("POST", "/admin/users"): {"email": "invitedNUMBER@example.com"},
    ("POST", "/admin/models"): {"url": "http://127.0.0.1:9/model.gguf", "name": "otherNUMBER"},
    ("POST", "/artifacts"): {"name": "n", "content": "x", "content_base64": "eHg="},
    ("POST", "/user/providers"): {"name": "otherNUMBER", "base_url": "http://127.0.0.1:9/v1"},
    ("POST", "/prompts"): {"name": "otherNUMBER"},
    ("POST", "/user/tool-servers"): {"name": "otherNUMBER", "url": "http://127.0.0.1:9/mcp"},
    ("POST", "/v1/images/generations"): {"prompt": "a house", "size": "64x64", "response_format": "url"},
    ("POST", "/v1/audio/generate"): {"input": "hello", "tts_max_tokens": 256},
    ("POST", "/v1/audio/speech"): {"input": "hello", "tts_max_tokens": 256},
    ("POST", "/v1/agents/run"): {"goal": "hello", "model": "builtin/echo"},
}
# A test of a provider takes 3 s; the static files are no account's.
LEFT_OUT = {("POST", "/user/providers/{provider_id}/test"), ("GET", "/static/{path}"), ("DELETE", "/user/me")}
ORDER = ("GET", "PUT", "PATCH", "POST", "DELETE")
ENDS = ("/close", "/stop", "/logout", "/support/conversations")
REFERENCES = {"default_model", "base_url", "group"}
# These objects do not exist, or the answer is a page.
NEVER_ACCEPTED = {
    *("/auth/login", "/auth/password-reset/confirm", "/auth/verify-email", "/auth/oauth/session"),
    *("/billing/webhook", "/checkout", "/checkout/sign-in"),
    # Mail is not set up, the password is another one, and there is no such message. No call waits for approval.
    *(("email", "/user/me"), "/user/password", ("current_message_id", "/conversations/{conversation_id}")),
    "/conversations/{conversation_id}/approve",
    ("artifact_id", "/projects/{project_id}/files"),  # the project has no such artifact
    ("message_id", "/conversations/{conversation_id}/fork"),
}
# Fields that are stored or returned in a normal form: an address without its last slash, each model and tool once, a
# person's name without blanks around it, no summary of a new conversation, and what a response of OpenAI's format
# repeats.
NOT_AS_SENT = {
    *(("base_url", "/user/providers"), ("models", "/user/providers"), ("name", "/user/me"), ("name", "/admin/users")),
    *(("group", "/admin/users"), ("always_allow", "/conversations"), ("summary", "/conversations")),
    # The id of a booking is its reference, and a debit is negative.
    *(("id", "/admin/users"), ("amount_micros", "/admin/users")),
    *((name, "/v1/responses") for name in ("service_tier", "tools", "truncation", "store", "reasoning", "text")),
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if (method.upper(), path) not in LEFT_OUT and {"parameters", "requestBody"} & operation.keys():
                yield method.upper(), path, operation


def areas() -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Group the operations by the beginning of their path. Those that end or delete an object come last."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for operation in sorted(operations(), key=lambda each: (ORDER.index(each[0]), each[1].endswith(ENDS))):
        steps = operation[1].split("/")
        found.setdefault("/".join(steps[1 : 3 if steps[1] == "v1" else 2]), []).append(operation)
    return found


AREAS = areas()
SMALL = {"projects"}  # half a second; the others take up to 10
# The endpoint that gets all values of a parameter. Others with the same parameter get few.
FIRST: dict[str, tuple[str, str]] = {}
for _method, _path, _operation in operations():
    for _parameter in map(resolved, _operation.get("parameters", ())):
        FIRST.setdefault(str(_parameter), (_method, _path))
# The beginnings of the paths where one object is read.
READABLE = {
    path.partition("{")[0] for path, methods in DOCUMENT["paths"].items() if "get" in methods and path.endswith("}")
}


# --- values


def texts(schema: dict[str, Any], depth: int) -> Iterator[str]:
    most = schema.get("maxLength", UNBOUNDED)
    if depth:
        yield from FEW
        return
    yield from (*SHORT, "x" * most, "x" * (most + 1), "x" * schema.get("minLength", 1))
    if most <= VERY_LONG:
        yield from ("🙂" * most, ("e\u0301" * most)[:most], "a" + "\u0301" * (most - 1), "ﷺ" * most, "x " * (most // 2))
        yield from ('"' * most, "\\" * most)


def values(schema: dict[str, Any], depth: int = 0) -> Iterator[Any]:
    """Yield odd values for a schema. In objects and lists, one part at a time is odd."""
    schema = resolved(schema)
    yield from schema.get("enum", [])
    yield from [schema["const"]] if "const" in schema else []
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from values(choice, depth)
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "string" and not {"enum", "const"} & schema.keys():
            yield from texts(schema, depth)
        elif kind in ("integer", "number"):
            bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
            yield from (*bounds, *(FEW_NUMBERS if depth else NUMBERS))
            if not depth:
                yield from (*map(float, bounds), *(bound + step for bound in bounds for step in (-1, 1)))
        elif kind == "boolean":
            yield from (True, False)
        elif kind == "array":
            items = schema.get("items", {})
            yield from ([item] for item in values(items, depth + 1))
            yield from ([], [least(items)] * schema.get("maxItems", 100))
        elif kind == "object":
            base = least({**schema, "type": "object"})
            yield from ({}, base, {"": None, "\0": "x" * UNBOUNDED})
            for name, part in schema.get("properties", {}).items():
                yield from ({**base, name: value} for value in values(part, depth + 1))
        elif kind == "null":
            yield None


def distinct(found: Iterator[Any]) -> Iterator[Any]:
    seen: set[str] = set()
    for value in found:
        if (text := json.dumps(value)) not in seen:
            seen.add(text)
            yield value


def one_in(step: int, found: Iterable[Any], place: str) -> list[Any]:
    """Return each `step`th of these values. The first one depends on the place."""
    return list(found)[zlib.crc32(place.encode()) % step :: step]


def least(schema: dict[str, Any]) -> Any:
    """Return a simple valid value."""
    schema = resolved(schema)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        return least(choice)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: least(schema["properties"][name]) for name in schema.get("required", ())}
    return {"string": "x", "integer": schema.get("minimum", 1), "number": 1, "boolean": True, "array": []}.get(kind)


# --- requests


@dataclasses.dataclass
class Walk:
    """The requests of one account to one endpoint, and the failures."""

    service: Service
    who: Person
    method: str
    path: str
    found: list[str] = dataclasses.field(default_factory=list)
    step: int = 1  # one in so many values is sent
    number: int = 0
    shapes: set[str] = dataclasses.field(default_factory=set)  # of fields that got all values; others get few

    @property
    def quick_only(self) -> bool:
        """Return whether to send few values, because images and speech are slow."""
        return self.path.startswith(("/v1/images", "/v1/audio"))

    @property
    def target(self) -> str:
        return self.who.target(self.path, provider="github", identity="github", name="absent")

    async def send(self, method: str, target: str, **options: Any) -> httpx.Response | None:
        """Return the answer, or None if no client can send the request."""
        self.service.clocks.ticks += 3_600  # no limit of requests is in the way
        headers = {"origin": self.service.config.base_url, **self.who.headers, **options.pop("headers", {})}
        if target.startswith("/checkout"):
            headers = {**headers, "cookie": f"{COOKIE}={self.who.cookie}"}
        try:
            request = self.service.client.build_request(method, target, headers=headers, **options)
        except (httpx.InvalidURL, UnicodeError, ValueError):
            return None
        try:
            answer = await self.service.client.send(request)
        except Exception as error:  # the document forbids such an answer, for instance
            self.found.append(
                f"{type(error).__name__} {str(error)[:300]}: {method} {target[:200]} {request.content[:200]!r}"
            )
            return None
        if answer.status_code == 500:
            self.found.append(f"500: {method} {target[:200]} {request.content[:300]!r}")
        return answer

    async def get(self, target: str) -> Any:
        answer = await self.send("GET", target)
        assert answer is not None and answer.status_code == 200, target
        return answer.json()

    async def bodies(self, operation: dict[str, Any]) -> None:
        for media_type, content in resolved(operation.get("requestBody", {})).get("content", {}).items():
            schema = resolved(content["schema"])
            for choice in map(resolved, schema.get("anyOf", [{}])):
                parts = {**schema.get("properties", {}), **choice.get("properties", {})}
                needed = [*schema.get("required", ()), *choice.get("required", ())]
                if media_type in (FORM, "application/json"):
                    await self.fields({"type": "object", "properties": parts, "required": needed}, media_type)

    async def fields(self, schema: dict[str, Any], media_type: str) -> None:
        given = QUICK.get((self.method, self.path), {})
        taken = {name for name, part in schema["properties"].items() if part.get("type") != "null"}
        base = {**least(schema), **{name: value for name, value in given.items() if name in taken}}
        accepted: dict[str, list[Any]] = {}
        for name, part in schema["properties"].items():
            few = self.quick_only or str(part) in self.shapes
            self.shapes.add(str(part))
            longest = "x" * resolved(part).get("maxLength", 0)
            is_accepted = not {self.path, (name, self.path)} & NEVER_ACCEPTED
            odd = list(distinct(values(part, depth=int(few))))
            chosen = one_in(self.step, odd, f"{self.method} {self.path} {name}")
            # The longest first, then the chosen, and the others until one is accepted.
            for value in sorted(odd, key=lambda value: (value != longest, value not in chosen)):
                if value not in (longest, *chosen) and (
                    not is_accepted or accepted.get(name, [longest])[-1] != longest
                ):
                    break
                sent = {**{key: self.numbered(text) for key, text in base.items()}, name: value}
                answer = await self.post(sent, media_type)
                if answer is not None and answer.is_success:
                    accepted.setdefault(name, []).append(value)
                    await self.check_kept(answer, sent)
            if name not in accepted and is_accepted:
                self.found.append(f"{self.method} {self.path}: no value of {name} was accepted")
            plain = longest and name not in REFERENCES and re.search(resolved(part).get("pattern", ""), longest)
            if plain and name in accepted and not few and longest not in accepted[name]:
                self.found.append(f"{self.method} {self.path}: {name} of {len(longest)} characters was refused")
        await self.post({**base, **{name: taken[-1] for name, taken in accepted.items()}}, media_type)

    def numbered(self, value: Any) -> Any:
        self.number += 1
        return value.replace("NUMBER", str(self.number)) if isinstance(value, str) else value

    async def post(self, body: dict[str, Any], media_type: str) -> httpx.Response | None:
        # The standard library's JSON holds lone surrogates, too.
        content = urllib.parse.urlencode(body, errors="replace") if media_type == FORM else json.dumps(body)
        return await self.send(self.method, self.target, content=content, headers={"content-type": media_type})

    async def check_kept(self, answer: httpx.Response, sent: dict[str, Any]) -> None:
        """Compare the sent values with the answer and the stored object."""
        where = f"{self.method} {self.path} with {sent!r:.300}"
        told = answer.json() if answer.headers.get("content-type", "") == "application/json" else {}
        told = told if isinstance(told, dict) else {}
        kept = await self.read_back(answer, told, sent)
        for holder in (told, kept):
            for name in sent.keys() & holder.keys():
                as_sent = (name, self.path.partition("/{")[0]) not in NOT_AS_SENT and sent[name] is not None
                if as_sent and holder[name] != sent[name]:
                    self.found.append(f"{where}: {name} became {holder[name]!r:.100}")
        for name in told.keys() & kept.keys():
            if told[name] != kept[name] and name != "content_url":
                self.found.append(f"{where}: {name} was {told[name]!r:.100}, and is {kept[name]!r:.100}")
        if self.path in ("/user/providers", "/user/tool-servers"):  # there may be 100, or 10
            await self.send("DELETE", f"{self.path}/{told['id']}")
        if self.path == "/admin/models":  # one download runs
            await self.send("DELETE", f"{self.path}/{told['download']['name']}")
        if self.path == "/support/conversations":  # one is active
            await self.send("POST", f"{self.path}/{told['id']}/close")

    async def read_back(self, answer: httpx.Response, told: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
        """Return the stored values of the sent fields, by name."""
        if self.path.startswith("/user/api-keys"):
            return next(key for key in await self.get("/user/api-keys") if key["id"] == told["id"])
        if self.method == "PATCH":
            return dict(await self.get(self.target))
        if self.path == "/v1/agents/run":
            return (await self.get("/v1/agents/runs?limit=1"))["data"][0] if len(sent["goal"]) < 10_000 else {}
        if self.path == "/v1/chat/completions":
            return await self.said(answer.headers["x-service-conversation"], sent)
        if self.path == "/conversations/{conversation_id}/messages":
            return dict((await self.get(f"{self.target}?limit=1"))["data"][0])
        if self.path == "/support/conversations/{support_id}/messages":
            return dict((await self.get(self.target.removesuffix("/messages")))["messages"][-1])
        if self.path == "/artifacts":
            content = await self.send("GET", f"/artifacts/{told['id']}/content")
            assert content is not None
            text = {"content": content.content.decode("utf-8", "replace")} if sent.get("content") is not None else {}
            return {**await self.get(f"/artifacts/{told['id']}"), **text}
        return dict(await self.get(f"{self.path}/{told['id']}")) if f"{self.path}/" in READABLE and "id" in told else {}

    async def said(self, conversation_id: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Return nothing if the question is stored unchanged, else the stored text."""
        kept = (await self.get(f"/conversations/{conversation_id}/messages"))["data"]
        asked = [message["content"] for message in sent["messages"] if message["role"] == "user"][-1:]
        plain = asked and isinstance(asked[0], str) and asked[0].strip()
        return {"messages": kept} if plain and asked[0] != kept[-1]["content"] else {}

    async def parameters(self, operation: dict[str, Any]) -> None:
        body = QUICK.get((self.method, self.path))
        options: dict[str, Any] = {} if body is None else {"json": body}
        for parameter in map(resolved, operation.get("parameters", ())):
            place, name = parameter["in"], parameter["name"]
            few = FIRST[str(parameter)] != (self.method, self.path)
            odd = values(parameter["schema"], depth=int(few))
            for value in one_in(self.step, odd, f"{self.method} {self.path} {name}"):
                text = (
                    (value if isinstance(value, str) else json.dumps(value))
                    .encode("utf-8", "replace")
                    .decode()[:PARAMETER]
                )
                target = self.target
                if place == "path":
                    target = self.path.replace(f"{{{name}}}", urllib.parse.quote(text, safe=""))
                where = {"path": {}, "query": {"params": {name: text}}, "header": {"headers": {name: text}}}[place]
                await self.send(self.method, target, **options, **where)

    async def sweep(self) -> None:
        """Read all lists, page by page, and the export."""
        for path, operation in (
            (path, methods["get"]) for path, methods in DOCUMENT["paths"].items() if "get" in methods
        ):
            kinds = {PATH_PARAMETERS.get(name) for name in re.findall(r"\{(\w+)\}", path)}
            if not kinds <= self.who.own.keys():
                continue
            paged = any(resolved(parameter)["name"] == "limit" for parameter in operation.get("parameters", ()))
            params = {"limit": "100"} if paged else {}
            answer = await self.send("GET", self.who.target(path), params=params)
            while answer is not None and paged and answer.status_code == 200 and answer.json()["has_more"]:
                params["after"] = answer.json()["data"][-1]["id"]
                answer = await self.send("GET", self.who.target(path), params=params)
            if path == "/user/export" and answer is not None:
                with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                    for name in (name for name in archive.namelist() if name.endswith(".jsonl")):
                        [orjson.loads(line) for line in archive.read(name).splitlines()]


@pytest.fixture
def config(config: Config) -> Config:
    """No tool server answers here: 45 lists of tools would take 2 seconds each."""
    return dataclasses.replace(config, list_tools_seconds=0.05)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "area", [area if area in SMALL else pytest.param(area, marks=pytest.mark.slow) for area in AREAS]
)
async def test_odd_values_are_never_500_and_are_returned_as_sent(service: Service, area: str, step: int) -> None:
    who = await person(service, "mylab")
    who.own |= {"token": "x", "picture": "x"}  # of no share
    found: list[str] = []
    for method, path, operation in AREAS[area]:
        walk = Walk(service, who, method, path, found, step)
        if (method, path) == ("POST", "/support/conversations"):  # one is active
            await walk.send("POST", f"{path}/{who.own['support']}/close")
        await walk.bodies(operation)
        await walk.parameters(operation)
    await Walk(service, who, "GET", "/").sweep()
    assert found == [], "\n".join(found[:20])


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.slow
async def test_odd_tool_argument_is_a_tool_result(service: Service, step: int) -> None:
    who = await person(service, "mylab")
    for tool, name, value in tool_arguments(step):
        service.clocks.ticks += 3_600
        arguments = json.dumps({**least(parameters_of(tool)), name: value})
        body = {"goal": f"tool {tool} {arguments}\n---\nsay done", "model": "builtin/script"}
        answer = await service.client.post("/v1/agents/run", content=json.dumps(body), headers={**who.headers, **JSON})
        told = answer.text if answer.status_code == 200 else answer.json()["error"]["code"]
        where = (tool, name, repr(value)[:80], told[-300:])
        assert '"final"' in told or told in ("invalid_value", "PAYLOAD_TOO_LARGE"), where
        assert "The tool failed" not in told and "internal_error" not in told, where
    await Walk(service, who, "GET", "/artifacts").sweep()


def parameters_of(tool: str) -> dict[str, Any]:
    return dict(TOOLS[tool].as_function["function"]["parameters"])


def tool_arguments(step: int) -> Iterator[tuple[str, str, Any]]:
    for tool in TOOLS:
        for name, part in parameters_of(tool)["properties"].items():
            odd = values(part, depth=int(tool.startswith("generate_")))
            for value in one_in(step, odd, f"{tool} {name}"):
                yield tool, name, value


@dataclasses.dataclass
class Longest:
    """A service with a model that has the longest possible id."""

    service: Service
    headers: dict[str, str]
    model: str

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        answer = await self.service.client.request(method, path, headers=self.headers, **options)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json() if answer.headers["content-type"] == "application/json" else answer.content


@pytest.fixture(params=["operator", "own"])
async def longest(
    request: pytest.FixtureRequest, config: Config, clocks: Clocks, tmp_path: Path
) -> AsyncIterator[Longest]:
    provider, names = (
        "p" * 63,
        {kind: f'{kind} 🙂é"' + "🙂" * (300 - len(kind) - 4) for kind in ("chat", "image", "speech")},
    )
    prices = {
        "chat": "output_micros_per_million_tokens = 1_000_000",
        "image": "micros_per_image = 1000",
        "speech": "micros_per_thousand_audio_tokens = 1000",
    }
    assert {len(name) for name in names.values()} == {300}
    async with ModelServer() as upstream:
        text = f'[[providers]]\nname = "{provider}"\nbase_url = "{upstream.base_url}"\n'
        for kind, name in names.items():
            text += (
                f'[[providers.models]]\nid = {json.dumps(name, ensure_ascii=False)}\nkind = "{kind}"\n{prices[kind]}\n'
            )
        (tmp_path / "catalog.toml").write_text(text)
        catalog = tmp_path / "catalog.toml" if request.param == "operator" else None
        async with serving(dataclasses.replace(config, catalog=catalog), clocks) as service:
            session = await service.sign_up()
            lab = Longest(service, bearer(session["access_token"]), f"{provider}/{names['chat']}")
            paid = (session["user"]["id"], 10_000_000)
            await service.state["db"].write(wallet.book, *paid, description="", now_seconds=1.0)
            if request.param == "own":
                models = [{"id": name, "kind": kind} for kind, name in names.items()]
                body = {"name": provider, "base_url": upstream.base_url, "models": models}
                await lab.ask("POST", "/user/providers", json=body)
            yield lab


async def test_longest_model_id_works_everywhere(longest: Longest) -> None:
    model, ask = longest.model, longest.ask
    assert len(model) == 364 and (await ask("GET", f"/v1/models/{urllib.parse.quote(model, safe='')}"))["id"] == model
    assert (await ask("PATCH", "/user/settings", json={"default_model": model}))["default_model"] == model
    assert (await ask("GET", "/user/settings"))["chat_model"] == model
    messages = [{"role": "user", "content": "hello"}]
    for stream in (False, True):
        await ask("POST", "/v1/chat/completions", json={"messages": messages, "stream": stream})
    (conversation, *_) = (await ask("GET", "/conversations"))["data"]
    assert (await ask("GET", f"/conversations/{conversation['id']}/messages"))["data"][0]["model"] == model
    await ask("POST", "/v1/agents/run", json={"goal": "hello"})
    assert (await ask("GET", "/v1/agents/runs"))["data"][0]["model"] == model
    of_kind = {
        found["kind"]: found["id"]
        for found in (await ask("GET", "/v1/models"))["data"]
        if found["id"].startswith("ppp")
    }
    await ask(
        "POST", "/v1/images/generations", json={"prompt": "hi", "model": of_kind["image"], "response_format": "url"}
    )
    await ask("POST", "/v1/audio/generate", json={"input": "hi", "model": of_kind["speech"]})
    for by in ("model", "key"):
        rows = (await ask("GET", "/billing/usage", params={"by": by}))["data"]
        assert len(rows) == (3 if by == "model" else 1)
        assert (await ask("GET", "/billing/usage", params={"by": by, "after": rows[-1]["id"]}))["data"] == []
    await ask("GET", "/billing/ledger")
    await ask("GET", "/user/export")


async def test_unknown_model_is_no_default_while_its_provider_is_down(
    config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    catalog = tmp_path / "catalog.toml"
    catalog.write_text('[[providers]]\nname = "away"\nbase_url = "http://127.0.0.1:9/v1"\n')
    async with serving(dataclasses.replace(config, catalog=catalog), clocks) as service:
        headers = await service.bearer()
        for name, status in (("x" * 300, 200), ("x" * 301, 400), ("x" * 900_000, 400), ("a\0b", 400), ("", 400)):
            body = {"default_model": f"away/{name}"}
            assert (await service.client.patch("/user/settings", json=body, headers=headers)).status_code == status
