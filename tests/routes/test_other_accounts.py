"""Objects of other accounts: every route, reference and tool treats them as unknown.

The routes are those of app.py. A field whose name says that it refers to an object fails here until it is tried.
Beside it: every list pages.
"""

import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from app import ROUTES as ALL_ROUTES
from svc.agents import run_records
from svc.agents.tools.offered import TOOLS
from svc.auth import accounts, identities
from svc.billing import wallet
from svc.billing.checkout_cookie import COOKIE
from svc.config import Config
from svc.content import imports
from svc.ids import new_id
from tests.conftest import Service, bearer
from tests.support.cases import each
from tests.support.openapi import DOCUMENT, resolved
from tests.support.sounds import tone

FORM = {"content-type": "application/x-www-form-urlencoded"}
# The kind of object that a parameter of a path names, if it is not the name without `_id`.
PATH_PARAMETERS = {"session_id": "checkout_session"}
# What else a route takes the id of: the place, and the kind of object.
REFERENCES: dict[tuple[str, str], dict[str, str]] = {
    ("POST", "/v1/chat/completions"): {"body.model": "model", "header.x-service-conversation": "conversation"},
    ("POST", "/v1/responses"): {"body.model": "model"},
    ("POST", "/v1/messages"): {"body.model": "model"},
    ("POST", "/v1/messages/count_tokens"): {"body.model": "model"},
    ("POST", "/v1/images/generations"): {"body.model": "model"},
    ("POST", "/v1/audio/generate"): {"body.model": "model"},
    ("POST", "/v1/audio/speech"): {"body.model": "model"},
    ("POST", "/v1/audio/transcriptions"): {"body.model": "model"},
    ("POST", "/v1/agents/run"): {"body.model": "model", "body.project_id": "project"},
    ("POST", "/projects/{project_id}/files"): {"body.artifact_id": "artifact"},
    ("GET", "/v1/agents/runs"): {"query.after": "run", "query.project_id": "project"},
    ("PATCH", "/user/settings"): {"body.default_model": "model"},
    ("GET", "/user/identities"): {"query.after": "identity"},
    ("GET", "/user/import"): {"query.after": "import"},
    ("GET", "/user/memory"): {"query.after": "message"},
    ("GET", "/user/providers"): {"query.after": "provider"},
    ("GET", "/user/tool-servers"): {"query.after": "tool_server"},
    ("GET", "/projects"): {"query.after": "project"},
    ("GET", "/prompts"): {"query.after": "prompt"},
    ("GET", "/artifacts"): {"query.after": "artifact", "query.project_id": "project", "query.run_id": "run"},
    ("POST", "/artifacts"): {"body.project_id": "project"},
    ("PATCH", "/artifacts/{artifact_id}"): {"body.project_id": "project"},
    ("GET", "/conversations"): {"query.after": "conversation", "query.project_id": "project"},
    ("POST", "/conversations"): {"body.project_id": "project"},
    ("PATCH", "/conversations/{conversation_id}"): {"body.project_id": "project", "body.current_message_id": "message"},
    ("GET", "/conversations/{conversation_id}/messages"): {"query.after": "message"},
    ("POST", "/conversations/{conversation_id}/shares"): {"body.message_id": "message"},
    ("POST", "/conversations/{conversation_id}/fork"): {"body.message_id": "message"},
    ("GET", "/user/shares"): {"query.after": "share"},
    ("GET", "/conversations/{conversation_id}/messages/{message_id}/versions"): {"query.after": "message"},
    ("GET", "/support/conversations"): {"query.after": "support"},
    ("GET", "/billing/ledger"): {"query.after": "ledger"},
    ("GET", "/checkout/return"): {"query.checkout": "checkout"},
}
# Routes whose path has a parameter that names nothing that an account has.
WITHOUT_REFERENCES = """
    GET /auth/oauth/{provider}, GET /auth/oauth/{provider}/callback, POST /user/identities/{identity}, GET /static/{path:path},
    GET /conversations/{conversation_id}/messages/{message_id}/versions, GET /shared/{token}, GET /shared/{token}/pictures/{picture},
    POST /projects/{project_id}/files, DELETE /projects/{project_id}/files/{artifact_id}
"""
# Bodies for which the interface document's first example does not serve.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/agents/run"): {"goal": "say hi", "model": "builtin/script"},
    ("PATCH", "/user/settings"): {"memory_enabled": False},
    ("POST", "/user/providers"): {"name": "other", "base_url": "http://127.0.0.1:9/v1"},
    ("POST", "/user/tool-servers"): {"name": "other", "url": "http://127.0.0.1:9/mcp"},
}


def body_of(method: str, path: str) -> dict[str, Any]:
    """A body with which the request would do something, were the object one's own."""
    operation = DOCUMENT["paths"][path.replace(":path}", "}")][method.lower()]
    contents = operation.get("requestBody", {}).get("content", {})
    if (method, path) in BODIES or "application/json" not in contents:
        return BODIES.get((method, path), {})
    body = next(iter(contents["application/json"]["examples"].values()))["value"]
    return body if isinstance(body, dict) else {}  # not a file


LISTED = {tuple(row.split()) for row in WITHOUT_REFERENCES.split(",")}
# The objects of all accounts, for administrators only: tests/routes/test_admin.py.
ROUTES = [row for row in ALL_ROUTES if not row[1].startswith("/admin/")]
PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")


def kind_of(parameter: str) -> str:
    return PATH_PARAMETERS.get(parameter, parameter.removesuffix("_id"))


def path_kinds(method: str, path: str) -> list[str]:
    """The kinds of objects that the parameters of a path name."""
    return [] if (method, path) in LISTED else [kind_of(name) for name in PARAMETER.findall(path)]


PLACES = [
    (method, path, place, kind)
    for method, path, _ in ROUTES
    for place, kind in [
        *(("path", kind) for kind in path_kinds(method, path)),
        *REFERENCES.get((method, path), {}).items(),
    ]
]


def test_tables_name_only_routes_and_objects_that_exist() -> None:
    assert (LISTED | set(REFERENCES) | set(BODIES)) <= {(method, path) for method, path, _ in ROUTES}


# Fields that are named like a reference but are not: the last row of a page of usage, a field of the processor's event.
# Every value of `previous_response_id` is refused.
NO_REFERENCES = {
    ("GET", "/billing/usage", "query.after"),
    ("POST", "/billing/webhook", "body.id"),
    ("POST", "/conversations", "body.current_message_id"),  # ignored
    ("POST", "/v1/responses", "body.previous_response_id"),
}
NAMES = re.compile(r"(?:.*_)?(?:ids?|model)|after|checkout|x-service-conversation")


def named_references(operation: dict[str, Any]) -> set[str]:
    """The places of an operation, but for its path, whose names say that they refer to an object."""
    found = {f"{one['in']}.{one['name']}" for one in operation.get("parameters", ()) if one["in"] != "path"}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        found |= {f"body.{name}" for name in resolved(content["schema"]).get("properties", ())}
    return {place for place in found if NAMES.fullmatch(place.partition(".")[2])}


def test_every_reference_is_tried_with_an_id_of_another_account() -> None:
    for method, path, _ in ROUTES:
        operation = DOCUMENT["paths"][path.replace(":path}", "}")][method.lower()]
        named = {place for place in named_references(operation) if (method, path, place) not in NO_REFERENCES}
        missing = named - REFERENCES.get((method, path), {}).keys()
        assert missing == set(), f"add these of {method} {path} to REFERENCES, with the kind of object"


@dataclass
class Person:
    """An account with one of everything: `own` has the ids by kind."""

    headers: dict[str, str]
    account_id: str
    cookie: str
    own: dict[str, str] = field(default_factory=dict)

    def target(self, path: str, **others: str) -> str:
        """`path` with ids in it: their own, and `others` by the name of the parameter."""
        ids = {name: others.get(name) or self.own[kind_of(name)] for name in PARAMETER.findall(path)}
        return PARAMETER.sub(lambda match: urllib.parse.quote(ids[match[1]]), path)


async def person(service: Service, provider: str) -> Person:
    service.client.cookies.clear()
    session = await service.sign_up()
    someone = Person(bearer(session["access_token"]), session["user"]["id"], service.client.cookies[COOKIE])
    service.client.cookies.clear()
    own, db, now = someone.own, service.state["db"], service.clocks.now
    own["account"] = someone.account_id

    async def post(path: str, body: dict[str, Any], status: int = 201) -> Any:
        answer = await service.client.post(path, json=body, headers=someone.headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    await db.write(wallet.book, someone.account_id, 5_000_000, description="Funds", now_seconds=now)
    own["ledger"] = (await service.client.get("/billing/ledger", headers=someone.headers)).json()["data"][0]["id"]
    own["key"] = (await post("/user/api-keys", {"name": "k"}))["id"]
    made = {"name": provider, "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
    own["provider"], own["model"] = (await post("/user/providers", made))["id"], f"{provider}/m"
    server = {"name": provider, "url": "http://127.0.0.1:9/mcp"}
    own["tool_server"] = (await post("/user/tool-servers", server))["id"]
    await db.write(identities.add_identity, someone.account_id, "https://issuer", provider, None, now)
    own["identity"] = (await service.client.get("/user/identities", headers=someone.headers)).json()["data"][0]["id"]
    own["project"] = (await post("/projects", {"name": "p"}))["id"]
    own["prompt"] = (await post("/prompts", {"name": "p", "text": "secret zebra"}))["id"]
    own["artifact"] = (await post("/artifacts", {"name": "n", "content": "secret zebra"}))["id"]
    own["conversation"] = (await post("/conversations", {"title": "t"}))["id"]
    path = f"/conversations/{own['conversation']}/messages"
    own["message"] = (await post(path, {"role": "user", "content": "secret zebra"}))["id"]
    own["share"] = (await post(f"/conversations/{own['conversation']}/shares", {}))["id"]
    own["import"] = (await db.write(imports.add_import, someone.account_id, now)).id
    await db.write(imports.change, someone.account_id, own["import"], {"status": "done"})
    own["support"] = (await post("/support/conversations", {"message": "secret zebra"}))["id"]
    # A run that is under way, so that stopping it would do something.
    record = {"id": new_id("run", now), "goal": "g", "model": "m", "max_steps": 6, "project_id": None}
    await db.write(run_records.add_run, someone.account_id, record, now)
    own["run"] = record["id"]
    page = await browse(service, someone, "POST", "/checkout", content="amount=25")
    own["checkout_session"] = page.headers["location"].rpartition("/")[2]
    own["checkout"] = await db.read(
        lambda conn: conn.execute("SELECT id FROM checkouts WHERE account_id = ?", (someone.account_id,)).fetchone()[
            "id"
        ]
    )
    missing = {kind for *_, kind in PLACES} - own.keys()
    assert missing == set(), "create one of each here, or name the route in WITHOUT_REFERENCES"
    return someone


async def browse(service: Service, who: Person, method: str, path: str, **options: Any) -> httpx.Response:
    headers = {"cookie": f"{COOKIE}={who.cookie}", "origin": service.config.base_url, **FORM}
    return await service.client.request(method, path, headers=headers, **options)


async def send(service: Service, who: Person, method: str, path: str, place: str, value: str) -> httpx.Response:
    """The request of `who` with `value` at `place`, and their own objects in every other one."""
    body = body_of(method, path)
    if path.endswith("/fork"):
        body = {"message_id": who.own["message"]}
    path = who.target(path, **(dict.fromkeys(PARAMETER.findall(path), value) if place == "path" else {}))
    where, _, name = place.partition(".")
    params = {name: value} if where == "query" else {}
    if path.startswith("/checkout"):
        return await browse(service, who, method, path, params=params)
    body = {**body, **({name: value} if where == "body" else {})}
    headers = {**who.headers, **({name: value} if where == "header" else {})}
    is_form = path == "/v1/audio/transcriptions"
    sent: dict[str, Any] = {"data": body, "files": {"file": ("a.wav", tone(1))}} if is_form else {"json": body}
    return await service.client.request(method, path, params=params, **sent, headers=headers)


async def everything(service: Service) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    await service.state["engines"].usage.flush()
    await service.state["key_uses"].flush()

    def read(conn: Any) -> dict[str, list[tuple[Any, ...]]]:
        tables = conn.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '*_text*'"
        ).fetchall()
        return {name: [tuple(row) for row in conn.execute(f"SELECT * FROM {name}")] for (name,) in tables}

    found: dict[str, list[tuple[Any, ...]]] = await service.state["db"].read(read)
    return found


def unknown(own_id: str) -> str:
    """Return an id of the same form that no object has."""
    prefix, separator, rest = own_id.partition("/" if "/" in own_id else "_")
    return f"no{prefix}{separator}{rest}" if separator == "/" else f"{prefix}{separator}{rest[:-4]}zzzz"


STATUS = {"query.after": 200, "body.default_model": 400, "query.run_id": 200, "query.checkout": 200}


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, list_tools_seconds=0.1)  # no tool server answers


@pytest.fixture
async def mine(service: Service) -> Person:
    """An administrator: even that gives no access to objects of others."""
    someone = await person(service, "minelab")
    await service.state["db"].write(accounts.update_account, someone.account_id, {"admin": True})
    return someone


@pytest.fixture
async def theirs(service: Service) -> Person:
    return await person(service, "theirlab")


async def test_object_of_another_account_is_unknown(service: Service, mine: Person, theirs: Person) -> None:
    before = await everything(service)
    for method, path, place, kind in PLACES:
        where, answers = f"{method} {path}, {place}", []
        for value in (theirs.own[kind], unknown(theirs.own[kind])):
            answer = await send(service, mine, method, path, place, value)
            told = answer.text.replace(value, "<id>").replace(urllib.parse.quote(value, safe=""), "<id>")
            told = told.replace(answer.headers["x-request-id"], "<request id>")
            expected = STATUS.get(place, 404)
            assert answer.status_code == expected, f"{where}: answer {expected} as without such an object, not {told}"
            changing = ("x-request-id", "request-id", "x-ratelimit-remaining-requests", "content-length")
            answers.append((told, {name: text for name, text in answer.headers.items() if name not in changing}))
        assert answers[0] == answers[1], where
        if place != "query.after":  # the list is one's own
            assert "zebra" not in answers[0][0], where
        assert not any(theirs.own[name] in answers[0][0] for name in theirs.own), where
        assert await everything(service) == before, where


async def test_own_object_is_found(service: Service, mine: Person) -> None:
    """Else the test above would prove nothing."""
    order = ("GET", "PUT", "POST", "PATCH", "DELETE")
    for method, path, place, kind in sorted(PLACES, key=lambda entry: order.index(entry[0])):
        # a provider that is not there, an answer that is not in progress, an artifact that no project has read
        if path.endswith(("/test", "/stream", "/passages")):
            continue
        answer = await send(service, mine, method, path, place, mine.own[kind])
        assert answer.status_code not in (400, 404), f"{method} {path}, {place}: {answer.text}"


# Only a session can change how a person signs in.
NOT_BY_KEY = """
    DELETE /user/me, POST /user/password, GET /user/identities, POST /user/identities/{identity},
    DELETE /user/identities/{identity}
"""


async def test_key_can_do_all_that_a_session_can_but_change_the_sign_in(service: Service, mine: Person) -> None:
    key = bearer((await service.make_key(mine.headers))["key"])
    refused = set()
    for method, path, _ in ROUTES:
        if path.startswith(("/checkout", "/auth/")) or (method, path) == ("POST", "/user/verify-email"):
            continue
        target = PARAMETER.sub("unknown", path)
        answer = await service.client.request(method, target, json=body_of(method, path), headers=key)
        assert answer.status_code != 401, f"{method} {path}"
        if answer.status_code == 403:
            refused.add((method, path))
    assert refused == {tuple(row.split()) for row in NOT_BY_KEY.split(",")}, (
        "guard these with signed_in alone, or list them in NOT_BY_KEY"
    )


async def test_fields_set_by_the_service_are_ignored(service: Service, mine: Person, theirs: Person) -> None:
    def of_them(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
        return {table: [row for row in found if theirs.account_id in row] for table, found in rows.items()}

    forged = {
        "id": theirs.own["project"],
        "account_id": theirs.account_id,
        "user_id": theirs.account_id,
        "number": 1,
        "tier": "pro",
        "wallet_balance_micros": 10**12,
        "balance_micros": 10**12,
        "status": "closed",
        "created_at": "2000-01-01T00:00:00.000Z",
        "updated_at": 1,
        "sha256": "0" * 64,
        "email": "x@example.com",
        "run_id": theirs.own["run"],
        "conversation_id": theirs.own["conversation"],
        "key": "svc-v1-x",
        "key_prefix": "svc-v1-xxx",
        "api_key_hint": "x",
    }
    bodies = [(method, path, body_of(method, path)) for method, path, _ in ROUTES]
    assert len([body for _, _, body in bodies if body]) > 20
    for method, path, body in bodies:
        if not body or path.startswith("/auth/") or f"{method} {path}" in NOT_BY_KEY:
            continue
        before = await everything(service)
        answer = await service.client.request(method, mine.target(path), json={**forged, **body}, headers=mine.headers)
        # 404 where no voice is installed, and for the examples of an artifact and a message
        expected = (
            200,
            201,
            409,
            *((404,) if path.startswith("/v1/audio/") or path.endswith(("/files", "/fork")) else ()),
        )
        assert answer.status_code in expected, f"{method} {path}: {answer.text}"
        after = await everything(service)
        assert of_them(after) == of_them(before), f"{method} {path}"
        written = str([row for table, rows in after.items() for row in rows if row not in before[table]])
        for name in ("id", "account_id", "run_id", "conversation_id", "created_at", "email"):
            assert str(forged[name]) not in written, f"{method} {path}: {name}"
    assert (await service.client.get("/billing/account", headers=mine.headers)).json()["wallet_balance_micros"] < 10**7


# --- the tools of agents


def test_tools_with_an_id_are_listed() -> None:
    with_id = {name for name, tool in TOOLS.items() if any("id" in key.split("_") for key in tool.arguments)}
    assert with_id == {"read_artifact"}, "call these below with an id of another account"


async def test_tools_do_not_show_objects_of_another_account(service: Service, mine: Person, theirs: Person) -> None:
    async def results(artifact_id: str) -> list[tuple[bool, Any]]:
        calls = [
            ("read_artifact", {"id": artifact_id}),
            ("list_artifacts", {}),
            ("search_memory", {"query": "secret zebra"}),
        ]
        script = "\n".join(f"tool {name} {json.dumps(arguments)}" for name, arguments in calls) + "\n---\nsay ok"
        body = {"goal": script, "model": "builtin/script"}
        answer = await service.client.post("/v1/agents/run", json=body, headers=mine.headers)
        events = [json.loads(block[6:]) for block in answer.text.split("\n\n")[:-1] if block.startswith("data: ")]
        return [(event["ok"], event["result"]) for event in events if event["type"] == "tool_result"]

    for kind, path in (("artifact", "/artifacts/{}"), ("conversation", "/conversations/{}")):
        answer = await service.client.delete(path.format(mine.own[kind]), headers=mine.headers)
        assert answer.status_code == 204
    (ok, text), listed, _ = await results(theirs.own["artifact"])
    assert not ok and listed == (True, []) and "zebra" not in text
    again = await results(unknown(theirs.own["artifact"]))
    assert again[0] == (ok, text)
    # What is found in memory is the goal of the first run, which has the words.
    assert all(passage["source"].startswith("run_") for passage in again[2][1])


# --- lists

Make = Callable[[Service, Person, int], Awaitable[None]]


def posts(path: str, body: dict[str, Any], status: int = 201) -> Make:
    async def make(service: Service, who: Person, number: int) -> None:
        text = json.dumps(body).replace("NUMBER", str(number))
        headers = {**who.headers, "content-type": "application/json"}
        answer = await service.client.post(who.target(path), content=text, headers=headers)
        assert answer.status_code == status, answer.text

    return make


async def make_support(service: Service, who: Person, number: int) -> None:
    for open_one in (await service.client.get("/support/conversations?limit=1", headers=who.headers)).json()["data"]:
        if open_one["status"] == "active":
            await service.client.post(f"/support/conversations/{open_one['id']}/close", headers=who.headers)
    await posts("/support/conversations", {"subject": "NUMBER"})(service, who, number)


async def make_credit(service: Service, who: Person, number: int) -> None:
    await service.state["db"].write(
        wallet.book, who.account_id, number + 1, description=f"{number}", now_seconds=service.clocks.now
    )


async def make_import(service: Service, who: Person, number: int) -> None:
    made = await service.state["db"].write(imports.add_import, who.account_id, service.clocks.now)
    await service.state["db"].write(imports.change, who.account_id, made.id, {"status": "done"})


async def make_identity(service: Service, who: Person, number: int) -> None:
    await service.state["db"].write(
        identities.add_identity, who.account_id, "https://issuer", f"{number}", None, service.clocks.now
    )


LISTS: dict[str, Make] = {
    "/v1/agents/runs": posts("/v1/agents/run", {"goal": "say NUMBER", "model": "builtin/script"}, 200),
    "/user/identities": make_identity,
    "/user/import": make_import,
    "/user/providers": posts(
        "/user/providers", {"name": "labNUMBER", "base_url": "http://127.0.0.1:9/v1", "models": []}
    ),
    "/user/tool-servers": posts("/user/tool-servers", {"name": "labNUMBER", "url": "http://127.0.0.1:9/mcp"}),
    "/projects": posts("/projects", {"name": "NUMBER"}),
    "/prompts": posts("/prompts", {"name": "NUMBER", "text": "t"}),
    "/artifacts": posts("/artifacts", {"name": "NUMBER", "content": ""}),
    "/conversations": posts("/conversations", {"title": "NUMBER"}),
    "/conversations/{conversation_id}/messages": posts(
        "/conversations/{conversation_id}/messages", {"role": "user", "content": "NUMBER"}
    ),
    "/user/shares": posts("/conversations/{conversation_id}/shares", {}),
    "/support/conversations": make_support,
    "/billing/ledger": make_credit,
}
# They come in one page; that of the usage has 10,000 rows.
ONE_PAGE = {
    *("/v1/models", "/v1/tools", "/prompts/shared", "/billing/usage", "/auth/oauth"),
    "/projects/{project_id}/files",
}
# Their items are those of other lists: tests/routes/test_memory.py and test_conversations.py test their pages.
OF_OTHER_LISTS = {"/user/memory", "/conversations/{conversation_id}/messages/{message_id}/versions"}


async def test_every_list_is_listed(service: Service, mine: Person) -> None:
    found = set()
    for method, path, _ in ROUTES:
        if method == "GET" and path != "/user/export" and not path.startswith("/checkout"):
            own = set(map(kind_of, PARAMETER.findall(path))) <= mine.own.keys()
            answer = await service.client.get(mine.target(path) if own else path, headers=mine.headers)
            if answer.text.startswith('{"object":"list"'):
                found.add(path)
    assert found ^ (LISTS.keys() | ONE_PAGE | OF_OTHER_LISTS) == set(), (
        "add each list to LISTS, with a request that creates an item"
    )


@each("path", LISTS)
async def test_every_list_has_pages(service: Service, mine: Person, path: str) -> None:
    for number in range(6):
        service.clocks.advance(1)
        await LISTS[path](service, mine, number)

    async def get(**params: Any) -> httpx.Response:
        return await service.client.get(mine.target(path), params=params, headers=mine.headers)

    whole = (await get(limit=1_000)).json()
    assert set(whole) == {"object", "data", "has_more"} and whole["has_more"] is False and len(whole["data"]) == 7
    times = [item["created_at"] for item in whole["data"]]
    assert times == sorted(times, reverse=True) and len(set(times)) == 7
    assert (await get()).json() == whole
    for limit in (1, 3, 7):
        seen: list[Any] = []
        more: dict[str, Any] = {}
        while True:
            page = (await get(limit=limit, **more)).json()
            seen += page["data"]
            assert len(page["data"]) <= limit, "the handler returns read_page(request, TABLE.page, ...)"
            assert (
                page["object"] == "list"
                and page["has_more"] is (len(seen) < 7)
                and len(page["data"]) in (limit, 7 % limit)
            )
            if not page["has_more"]:
                break
            more = {"after": seen[-1]["id"]}
        assert seen == whole["data"]
    assert (await get(after=seen[-1]["id"])).json() == {"object": "list", "data": [], "has_more": False}
    for much in ("101", "1" * 19, "0" * 30 + "7", "9" * 5000):
        assert (await get(limit=much)).json() == whole
    last_id = seen[-1]["id"]
    no_ids = [
        "",
        "x",
        "a\0b",
        f"x{last_id}",
        f"{last_id}0",
        last_id[:-1] + "u",
        last_id[:-1] + "\ud7ff",
        last_id.upper(),
    ]
    for name, values in (("limit", ["0", "-1", "x", "1.5", "", "\u0663"]), ("after", no_ids)):
        for value in values:
            answer = await get(**{name: value})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


TABLES = {
    "/v1/agents/runs": "runs",
    "/user/identities": "identities",
    "/user/import": "imports",
    "/user/providers": "providers",
    "/user/tool-servers": "tool_servers",
    "/projects": "projects",
    "/prompts": "prompts",
    "/artifacts": "artifacts",
    "/conversations": "conversations",
    "/conversations/{conversation_id}/messages": "messages",
    "/user/shares": "shares",
    "/support/conversations": "support_conversations",
    "/billing/ledger": None,  # its rows are never deleted
}


@each("path", LISTS)
async def test_page_after_a_deleted_item_begins_at_its_place(service: Service, mine: Person, path: str) -> None:
    for number in range(4):
        service.clocks.advance(1)
        await LISTS[path](service, mine, number)

    async def listed(**params: Any) -> list[str]:
        answer = await service.client.get(mine.target(path), params=params, headers=mine.headers)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["data"]]

    ids = await listed()
    assert len(ids) == 5
    for number, row_id in enumerate(ids):
        # An unknown item that would have been made in the same millisecond, after this one. Ids of a process never go
        # back with the clock, so by the time of its use an item may come twice, but none is missing.
        rest = await listed(after=unknown(row_id))
        assert rest[-len(ids[number:]) :] == ids[number:]
        assert len(rest) == len(ids[number:]) or path == "/conversations"
    if (table := TABLES[path]) is None:
        return
    for gone in (ids[2], ids[0], ids[3]):  # the oldest one is needed for the next list
        if table == "conversations":  # with its messages
            await service.client.delete(f"/conversations/{gone}", headers=mine.headers)
        else:
            delete = f"DELETE FROM {table} WHERE id = ?"
            await service.state["db"].write(lambda tx, gone=gone, delete=delete: tx.execute(delete, (gone,)))
        left = await listed()
        assert await listed(after=gone) == [row_id for row_id in left if row_id < gone]
        assert await listed(after=gone, limit=1) == [row_id for row_id in left if row_id < gone][:1]
    assert await listed() == [ids[1], ids[4]]
