"""The text of artifacts through HTTP."""

import asyncio

import httpx
import pytest

from svc.builtin.pdf import TEXT_BYTES
from tests.conftest import Service
from tests.support.artifacts import make_artifact, put_content
from tests.support.cases import each
from tests.support.loop_clock import hastened
from tests.support.pdfs import SLOW, needs_pypdf, with_texts


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def text_of(service: Service, headers: dict[str, str], content: bytes, content_type: str) -> httpx.Response:
    made = await make_artifact(service, headers, name="file", content="")
    await put_content(service, headers, made["id"], content, **{"content-type": content_type})
    answer = await service.client.get(f"/artifacts/{made['id']}/text", headers=headers)
    if answer.status_code == 200:
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await service.client.head(f"/artifacts/{made['id']}/text", headers=headers)).content == b""
    return answer


@each(
    ("content", "content_type", "text"),
    [
        ("Gr\u00fc\u00dfe \U0001f642\n".encode(), "text/markdown", "Gr\u00fc\u00dfe \U0001f642\n"),
        (b"\xef\xbb\xbfa,b", "text/csv; charset=utf-8", "a,b"),
        (b"Gr\xfc\xdfe \x80", "text/csv", "Gr\u00fc\u00dfe \u20ac"),
        (b"a\0b", "application/ld+json", "a\0b"),
        ("Gr\u00fc\u00dfe".encode("utf-16"), "text/plain", "Gr\u00fc\u00dfe"),
        ("\ufeffGr\u00fc\u00dfe".encode("utf-16-be"), "text/csv", "Gr\u00fc\u00dfe"),
        ("\ufeffGr\u00fc\u00dfe".encode("utf-16-le"), "application/octet-stream", "Gr\u00fc\u00dfe"),
        ("Привет".encode("koi8-r"), "text/plain; charset=koi8-r", "Привет"),
        ("日本語".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "日本語"),
        ("<meta charset=gbk>中文".encode("gbk"), "text/html", "<meta charset=gbk>中文"),
        (
            b"<?xml version='1.0' encoding='ISO-8859-2'?>\xb1",
            "application/xml",
            "<?xml version='1.0' encoding='ISO-8859-2'?>\u0105",
        ),
        ("Gr\u00fc\u00dfe".encode(), "text/plain; charset=punycode", "Gr\u00fc\u00dfe"),
        ("Gr\u00fc\u00dfe".encode(), "text/plain; charset=utf-16", "Gr\u00fc\u00dfe"),
        (b"<a/>", "image/svg+xml", "<a/>"),
        (b"a: 1", "application/octet-stream", "a: 1"),
        (b"<script>", "TEXT/HTML", "<script>"),
    ],
)
async def test_text_file_is_returned_in_utf_8(
    service: Service, headers: dict[str, str], content: bytes, content_type: str, text: str
) -> None:
    answer = await text_of(service, headers, content, content_type)
    assert (answer.status_code, answer.text, answer.headers["x-text-truncated"]) == (200, text, "false")


@each(
    ("content", "content_type"),
    [(b"a\0b", "application/octet-stream"), (b"\xff\xfe", "application/zip"), (b"\x89PNG\r\n", "image/png")],
)
async def test_other_files_are_refused(
    service: Service, headers: dict[str, str], content: bytes, content_type: str
) -> None:
    answer = await text_of(service, headers, content, content_type)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_long_text_is_cut_at_a_whole_character(service: Service, headers: dict[str, str]) -> None:
    content = ("x" + "\u00e4" * (TEXT_BYTES // 2)).encode()
    answer = await text_of(service, headers, content, "text/plain")
    assert answer.headers["x-text-truncated"] == "true" and answer.content == content[: TEXT_BYTES - 1]


@needs_pypdf
async def test_text_of_a_pdf_is_that_of_its_pages(service: Service, headers: dict[str, str]) -> None:
    for content_type in ("application/pdf", "application/octet-stream"):
        answer = await text_of(service, headers, with_texts(b"one", b"two"), content_type)
        assert (answer.status_code, answer.text, answer.headers["x-text-truncated"]) == (200, "one\n\ntwo", "false")
    scan = await text_of(service, headers, with_texts(b""), "application/pdf")
    assert (scan.status_code, scan.json()["error"]["code"]) == (422, "no_text")


@needs_pypdf
async def test_slow_pdfs_of_others_are_waited_for_only_a_moment(service: Service, headers: dict[str, str]) -> None:
    slow = [asyncio.create_task(text_of(service, await service.bearer(), SLOW, "application/pdf")) for _ in range(2)]
    while service.state["process_pools"]["documents"].at_work() < 2:
        await asyncio.sleep(0.02)
    refused = await hastened(text_of(service, headers, with_texts(b"one"), "application/pdf"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert refused.headers["retry-after"] == "5" and not any(task.done() for task in slow)
    slow[0].cancel()
    assert (await text_of(service, headers, with_texts(b"one"), "application/pdf")).text == "one"
    slow[1].cancel()
    await asyncio.gather(*slow, return_exceptions=True)


@needs_pypdf
async def test_slow_pdf_of_an_account_delays_its_own_only_and_for_ten_seconds(
    service: Service, headers: dict[str, str]
) -> None:
    pool = service.state["process_pools"]["documents"]
    slow = [asyncio.create_task(text_of(service, headers, SLOW, "application/pdf")) for _ in range(2)]
    while pool.at_work() < 1:
        await asyncio.sleep(0.02)
    other = await text_of(service, await service.bearer(), with_texts(b"two"), "application/pdf")
    assert (other.status_code, other.text, pool.at_work()) == (200, "two", 1)
    refused = await hastened(text_of(service, headers, with_texts(b"one"), "application/pdf"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert "for 10 seconds" in refused.json()["error"]["message"] and refused.headers["retry-after"] == "5"
    assert pool.at_work() == 1
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert (await text_of(service, headers, with_texts(b"one"), "application/pdf")).text == "one"


async def test_an_account_reads_four_texts_at_once(service: Service, headers: dict[str, str]) -> None:
    made = await make_artifact(service, headers, name="file", content="x")
    answers = await asyncio.gather(
        *[service.client.get(f"/artifacts/{made['id']}/text", headers=headers) for _ in range(20)]
    )
    found = [answer.status_code for answer in answers]
    assert set(found) <= {200, 503} and found.count(200) >= 4
    assert (await service.client.get(f"/artifacts/{made['id']}/text", headers=headers)).text == "x"
