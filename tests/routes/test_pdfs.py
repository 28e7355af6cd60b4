"""PDFs in requests to chat model servers, which get their texts, through HTTP."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc.billing import wallet
from svc.config import Config
from tests.builtin.test_documents import encrypted
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.format_server import FormatServer
from tests.support.pdfs import SLOW, needs_pypdf, of_streams, stream, with_texts
from tests.support.waiting import until

Json = dict[str, Any]
CATALOG = """
[[providers]]
name = "lab"
base_url = "{base_url}"
models = [
  {{ id = "ok" }},
  {{ id = "blind", capabilities = [] }},
  {{ id = "sees", capabilities = ["vision"] }},
  {{ id = "ok+paid", input_micros_per_million_tokens = 1_000_000 }},
]
"""
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
PLACES = {
    "chat": "messages[0].content[{}].file",
    "responses": "input[0].content[{}]",
    "messages": "messages[0].content[{}].source",
}
# A chat server that may read images may read PDFs: it gets them as they came.
READERS = {"chat": ["builtin/echo", "lab/blind"], "responses": ["lab/ok"], "messages": ["lab/ok", "lab/sees"]}
TEXT = "File: a.pdf\n\nRye bread\n\nWheat"


def part_of(api: str, pdf: bytes | str, name: str | None = "a.pdf", **fields: Any) -> Json:
    content = base64.b64encode(pdf).decode() if isinstance(pdf, bytes) else pdf
    if api == "messages":
        source = {"type": "base64", "media_type": "application/pdf", "data": content}
        return {"type": "document", "source": source, **({"title": name} if name else {}), **fields}
    file = {"file_data": f"data:application/pdf;base64,{content}", **({"filename": name} if name else {})}
    return {"type": "file", "file": file} if api == "chat" else {"type": "input_file", **file}


def text_of(api: str, text: str) -> Json:
    return {"type": "input_text" if api == "responses" else "text", "text": text}


def request(api: str, *parts: Json, model: str = "") -> Json:
    role = {"role": "user", "content": [*parts]}
    limit = {"max_tokens": 9} if api == "messages" else {}
    return {"model": model or READERS[api][0], **limit, "input" if api == "responses" else "messages": [role]}


def with_results(api: str, *parts: Json, model: str = "") -> Json:
    """Return a request with these parts in the result of a tool."""
    sent, field = request(api, model=model), "input" if api == "responses" else "messages"
    if api == "responses":
        call: Json = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
        result: Json = {"type": "function_call_output", "call_id": "c", "output": [*parts]}
    elif api == "messages":
        call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
        found = {"type": "tool_result", "tool_use_id": "c", "content": [*parts]}
        result = {"role": "user", "content": [found]}
    else:
        function = {"name": "f", "arguments": "{}"}
        call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        result = {"role": "tool", "tool_call_id": "c", "content": [*parts]}
    return {**sent, field: [{"role": "user", "content": "Hi"}, call, result]}


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: FormatServer) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG.format(base_url=upstream.base_url)) as service:
        yield service


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await key_of(service)


async def key_of(service: Service) -> dict[str, str]:
    return {**JSON, **bearer((await service.make_key(await service.bearer()))["key"])}


async def ask(service: Service, headers: dict[str, str], api: str, body: Json) -> Any:
    return await service.client.post(PATHS[api], json=body, headers=headers)


def error_of(api: str, answer: Any) -> Json:
    """Return the error, without the fields that the Messages format does not have."""
    error = answer.json()["error"]
    return {"message": error["message"]} if api == "messages" else {name: error[name] for name in ("message", "param")}


@needs_pypdf
@each(("api", "model"), [(api, model) for api, models in READERS.items() for model in models])
async def test_chat_server_gets_the_text_of_a_pdf(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str, model: str
) -> None:
    pdf = part_of(api, with_texts(b"Rye bread", b"Wheat"))
    answer = await ask(
        service, headers, api, request(api, text_of(api, "Before"), pdf, text_of(api, "After"), model=model)
    )
    assert answer.status_code == 200, answer.text
    if model == "builtin/echo":
        assert TEXT in answer.json()["choices"][0]["message"]["content"]
    else:
        (message,) = upstream.requests[-1].body["messages"]
        content = message["content"]
        texts = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
        assert texts == f"Before\n{TEXT}\nAfter"


@needs_pypdf
async def test_text_names_missing_pages(service: Service, headers: dict[str, str], upstream: FormatServer) -> None:
    pdf = of_streams(stream(b"BT /F1 12 Tf 50 700 Td (one) Tj ET"), stream(b"x", b"/Filter /Unknown "))
    assert (await ask(service, headers, "messages", request("messages", part_of("messages", pdf)))).status_code == 200
    (message,) = upstream.requests[-1].body["messages"]
    assert message["content"] == "File: a.pdf\n\none\n\n[Parts of this PDF could not be read.]"


async def test_chat_server_that_may_read_images_gets_the_file_as_it_came(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    for model in ("lab/ok", "lab/sees"):
        file = part_of("chat", b"%PDF-1.7 junk")
        answer = await ask(service, headers, "chat", request("chat", file, model=model))
        assert answer.status_code == 200 and upstream.requests[-1].body["messages"][0]["content"] == [file]


@needs_pypdf
async def test_session_stores_the_question_without_the_text_of_its_pdf(service: Service) -> None:
    session = await service.bearer()
    body = request("chat", text_of("chat", "Which?"), part_of("chat", with_texts(b"Rye bread", b"Wheat")))
    answer = await ask(service, session, "chat", body)
    assert answer.status_code == 200 and TEXT in answer.text.replace("\\n", "\n")
    conversation = answer.headers["x-service-conversation"]
    stored = (await service.client.get(f"/conversations/{conversation}/messages", headers=session)).json()["data"]
    assert [message["content"] for message in stored if message["role"] == "user"] == ["Which?"]


@needs_pypdf
async def test_hold_covers_the_text_of_a_pdf(service: Service, upstream: FormatServer) -> None:
    session = await service.sign_up()
    headers = {**JSON, **bearer((await service.make_key(bearer(session["access_token"])))["key"])}
    text = stream(b"BT /F1 12 Tf " + b"50 700 Td (many words) Tj " * 5_000 + b"ET")
    body = request("messages", part_of("messages", of_streams(text)), model="lab/ok+paid")
    account_id = session["user"]["id"]

    async def fund(micros: int) -> None:
        await service.state["db"].write(wallet.book, account_id, micros, description="", now_seconds=1.0)

    await fund(20_000)  # for the request without its text, which has over 50,000 characters
    refused = await ask(service, headers, "messages", body)
    assert (refused.status_code, upstream.requests) == (402, [])
    await fund(2_000_000)
    answer = await ask(service, headers, "messages", body)
    assert answer.status_code == 200 and len(str(upstream.requests[-1].body["messages"])) > 50_000


@needs_pypdf
@each("api", [*PATHS])
async def test_pdf_without_text_is_refused_with_its_place(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    read: list[tuple[bytes | str, int, str]] = [  # each in a process
        (b"%PDF-1.7 junk", 422, "This PDF is damaged."),
        (encrypted(), 422, "This PDF is protected by a password."),
        (with_texts(b""), 422, "No text was found in this PDF. If it is a scan"),
    ]
    for pdf, status, sentence in (
        (b"", 422, "This PDF is empty."),
        ("JVBERi0*", 400, "This PDF is not in standard base64."),
        ("JVBERi0", 400, "This PDF is not in standard base64."),
        *(read if api == "chat" else read[:1]),
    ):
        service.clocks.advance(60)
        answer = await ask(service, headers, api, request(api, text_of(api, "Hi"), part_of(api, pdf)))
        error, place = error_of(api, answer), PLACES[api].format(1)
        assert answer.status_code == status and error["message"].startswith(f"{place}: {sentence}"), answer.text
        assert error.get("param", place) == place
    assert upstream.requests == []


@needs_pypdf
async def test_request_has_at_most_five_pdfs_which_keep_their_context_and_have_names(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    pdf = with_texts(b"a")
    for api in PATHS:
        sixth = await ask(service, headers, api, request(api, *[part_of(api, pdf)] * 6))
        place = PLACES[api].format(5)
        assert sixth.status_code == 400
        assert error_of(api, sixth)["message"] == f"{place}: a request may have 5 PDFs for this model. Send fewer."
    assert upstream.requests == []
    first = part_of("messages", with_texts(b"Rye"), None, context="A recipe.")
    five = await ask(service, headers, "messages", request("messages", first, *[part_of("messages", pdf)] * 4))
    assert five.status_code == 200
    (message,) = upstream.requests[-1].body["messages"]
    assert message["content"] == "File: document.pdf\n\nA recipe.\n\nRye" + "\nFile: a.pdf\n\na" * 4


@needs_pypdf
async def test_text_of_a_pdf_is_at_most_a_mebibyte(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    long = of_streams(*[stream(b"BT /F1 12 Tf 50 700 Td (" + b"x" * 600_000 + b") Tj ET")] * 2)
    answer = await ask(service, headers, "chat", request("chat", part_of("chat", long)))
    assert answer.status_code == 400
    assert error_of("chat", answer)["message"].endswith("The text of this PDF is over 1 MiB. Send a part of it.")
    assert upstream.requests == []


async def test_pdf_without_the_extra_is_refused_with_its_name(
    service: Service, headers: dict[str, str], upstream: FormatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    for api in PATHS:
        answer = await ask(service, headers, api, request(api, part_of(api, with_texts(b"a"))))
        error = error_of(api, answer)
        assert answer.status_code == 400 and "the extra 'documents'" in error["message"], answer.text
        assert error.get("param", PLACES[api].format(0)) == PLACES[api].format(0)
    assert upstream.requests == []


@needs_pypdf
@each("api", [*PATHS])
async def test_result_of_a_tool_has_the_text_of_its_newest_pdfs_or_why_there_is_none(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    model = "lab/blind" if api == "chat" else "lab/ok"
    texts = ("one", "new") if api == "chat" else ("new",)  # each is read in a process
    empty = [b""] * (4 - len(texts))
    pdfs = [with_texts(b"oldest"), b"%PDF-1.7 junk", *empty, *(with_texts(text.encode()) for text in texts)]
    body = with_results(api, *[part_of(api, pdf) for pdf in pdfs], model=model)
    answer = await ask(service, headers, api, body)
    assert answer.status_code == 200, answer.text
    result = json.dumps(next(one["content"] for one in upstream.requests[-1].body["messages"] if one["role"] == "tool"))
    assert "oldest" not in result and "[A PDF that was not read: a request may have 5.]" in result
    assert "File: a.pdf\\n\\n[This PDF is damaged." in result
    assert all(f"File: a.pdf\\n\\n{text}" in result for text in texts)


@needs_pypdf
async def test_account_has_four_requests_with_pdfs_and_leaves_a_process_for_others(
    service: Service, headers: dict[str, str]
) -> None:
    pool = service.state["process_pools"]["documents"]
    slow = request("messages", *[part_of("messages", SLOW)] * 2)
    asked = [asyncio.create_task(ask(service, headers, "messages", slow)) for _ in range(5)]
    await until(lambda: pool.at_work() == 1 and any(task.done() for task in asked))
    (refused,) = [task for task in asked if task.done()]
    assert refused.result().status_code == 503
    other = await ask(
        service, await key_of(service), "messages", request("messages", part_of("messages", with_texts(b"a")))
    )
    assert other.status_code == 200 and sum(task.done() for task in asked) == 1 and pool.at_work() == 1
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await until(lambda: pool.at_work() == 0)


@needs_pypdf
async def test_texts_count_as_a_part_of_the_body(service: Service, headers: dict[str, str]) -> None:
    bodies = service.state["bodies"]
    text = stream(b"BT /F1 12 Tf 50 700 Td (" + b"x" * 20_000 + b") Tj ET")
    bodies.budget_bytes = 30_000
    body = request("messages", *[part_of("messages", of_streams(text), "b.pdf")])
    assert (await ask(service, headers, "messages", body)).status_code == 200
    body["messages"][0]["content"] *= 2
    refused = await ask(service, headers, "messages", body)
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "overloaded_error")
    assert bodies.taken_bytes == 0


@needs_pypdf
async def test_repeated_request_with_a_pdf_gets_the_first_answer(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    for api in PATHS:
        model = "lab/blind" if api == "chat" else "lab/ok"
        key = {**headers, "idempotency-key": f"key-{api}"}
        body = request(api, part_of(api, with_texts(b"Rye")), model=model)
        first, again = await ask(service, key, api, body), await ask(service, key, api, body)
        assert (first.status_code, first.content) == (200, again.content)
    damaged = request("chat", part_of("chat", b"%PDF-1.7 junk"), model="lab/blind")
    key = {**headers, "idempotency-key": "damaged"}
    assert [(await ask(service, key, "chat", damaged)).status_code for _ in range(2)] == [422, 422]
    assert len(upstream.requests) == 3
