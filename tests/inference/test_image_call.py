"""Pictures as paid calls: what is made, by whom, and what it costs."""

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from svc.ids import new_id
from svc.inference.image_call import LARGE_SIZES
from tests.conftest import Clocks
from tests.support.cases import each
from tests.support.media_lab import IMAGES, PRICE, Lab, media_lab, pictures
from tests.support.model_media import PNG
from tests.support.voice import children, until_children
from tests.support.waiting import run_ready, until


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with media_lab(config, clocks, tmp_path) as lab:
        yield lab


async def test_the_built_in_painter_answers_in_openais_shape(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a lighthouse", model="builtin/paint", size="96x64")
    body = answer.json()
    assert body["created"] == int(lab.service.clocks.now) and set(body["data"][0]) == {"b64_json", "revised_prompt"}
    assert (body["size"], body["output_format"]) == ("96x64", "png") and answer.headers[
        "content-type"
    ] == "application/json"
    (png,) = pictures(answer)
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[16:24] == (96).to_bytes(4, "big") + (64).to_bytes(4, "big")
    assert answer.headers["x-service-cost-micros"] == str(PRICE) and await lab.spent() == PRICE
    again = await lab.post(
        IMAGES, prompt="a lighthouse", model="builtin/paint", size="96x64", quality="hd", style=None, user="x"
    )
    assert pictures(again) == [png]


async def test_painter_describes_its_picture(lab: Lab) -> None:
    asked = {
        "prompt": "no cats, two red foxes in the forest at night",
        "model": "builtin/paint",
        "size": "64x64",
        "n": 2,
    }
    for response_format in ("b64_json", "url"):
        answer = await lab.post(IMAGES, **asked, response_format=response_format)
        said = [entry["revised_prompt"] for entry in answer.json()["data"]]
        assert said == ["Two red foxes in a forest at night, with stars, the moon and clouds."] * 2
    assert await lab.spent() == 4 * PRICE


# One size each: a large picture takes half a second. The refusal below names all sizes, from the table that accepts
# them.
@pytest.mark.slow
@each(("model", "size"), [("builtin/paint", "1024x1792"), ("lab/status-504", "1536x1024")])
async def test_painter_and_fallback_paint_large_sizes_of_openai(lab: Lab, model: str, size: str) -> None:
    answer = await lab.post(IMAGES, prompt="a house", model=model, size=size)
    width, height = map(int, size.split("x"))
    assert (
        pictures(answer)[0][16:24] == width.to_bytes(4, "big") + height.to_bytes(4, "big")
        and answer.json()["size"] == size
    )


async def test_refused_size_names_the_accepted_sizes(lab: Lab) -> None:
    for size in ("1536x1025", "1792x1792", "63x64", "1025x1024"):
        answer = await lab.post(IMAGES, prompt="a house", model="builtin/paint", size=size)
        text = answer.json()["error"]["message"]
        assert answer.status_code == 400 and all(f"{width}x{height}" in text for width, height in LARGE_SIZES)


async def test_n_pictures_differ_and_are_charged_each(lab: Lab) -> None:
    made = pictures(await lab.post(IMAGES, prompt="hills", model="builtin/paint", size="64x64", n=3))
    assert len(set(made)) == 3 and await lab.spent() == 3 * PRICE
    (row,) = (await lab.service.client.get("/billing/ledger?limit=1", headers=lab.headers)).json()["data"]
    assert row["description"] == "builtin/paint: 3 images" and row["model"] == "builtin/paint"
    (day,) = (await lab.service.client.get("/billing/usage", headers=lab.headers)).json()["data"]
    assert (day["model"], day["requests"], day["cost_micros"]) == ("builtin/paint", 1, 3 * PRICE)


async def test_url_of_a_picture_needs_no_token_for_an_hour(lab: Lab) -> None:
    answer = await lab.post(
        IMAGES, prompt="A café, at night!", model="builtin/paint", size="64x64", n=2, response_format="url"
    )
    urls = [entry["url"] for entry in answer.json()["data"]]
    assert len(set(urls)) == 2 and all(url.startswith(f"{lab.service.config.base_url}/artifacts/art_") for url in urls)
    listed = (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"]
    assert {entry["name"] for entry in listed} == {"A-café-at-night.png", "A-café-at-night-2.png"}
    assert {entry["content_url"] for entry in listed} == set(urls)
    assert {entry["prompt"] for entry in listed} == {"A café, at night!"}
    for seconds_later, status in ((0, 200), (3_599, 200), (2, 401)):
        lab.service.clocks.advance(seconds_later)
        content = await lab.service.client.get(urls[1])
        assert content.status_code == status
        assert status == 401 or (
            content.headers["content-type"] == "image/png" and content.content.startswith(b"\x89PNG")
        )


async def test_prompt_is_stored_cut_until_the_content_is_replaced(lab: Lab) -> None:
    async def stored() -> int:
        account = await lab.service.client.get("/billing/account", headers=lab.headers)
        return int(account.json()["stored_bytes"])

    before, prompt = await stored(), "ä" * 5_000
    await lab.post(IMAGES, prompt=prompt, model="builtin/paint", size="64x64", response_format="url")
    (image,) = (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"]
    assert image["prompt"] == prompt[:4_000]
    assert await stored() - before == 256 + len(image["name"].encode()) + image["size"] + 8_000
    path = f"/artifacts/{image['id']}"
    changed = await lab.service.client.put(f"{path}/content", content=b"x", headers=lab.headers)
    assert (
        changed.json()["prompt"] is (await lab.service.client.get(path, headers=lab.headers)).json()["prompt"] is None
    )
    assert await stored() - before == 256 + len(image["name"].encode()) + 1


async def test_only_the_first_picture_of_a_request_may_be_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool] = []

    async def paint(order: Any, *, account_id: str, patient: bool) -> bytes:
        waits.append(patient)
        return b"A scene.\n" + PNG

    monkeypatch.setattr(lab.service.state["media"].painter, "run", paint)
    assert (await lab.post(IMAGES, prompt="hills", model="builtin/paint", n=3)).status_code == 200
    assert waits == [False, True, True]


async def test_failed_pictures_are_free(lab: Lab) -> None:
    for response_format in ("b64_json", "url"):
        body = {"prompt": "hills", "model": "builtin/paint", "n": 2, "size": "512x512"}
        asking = asyncio.create_task(lab.post(IMAGES, **body, response_format=response_format))
        first = await until_children(1)
        await until(lambda first=first: children() - first, every_seconds=0.001)
        for helper in children() - first:
            os.kill(helper, signal.SIGKILL)
        answer = await asking
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_error")
    assert await lab.spent() == 0 and await kept(lab) == []
    assert (await lab.post(IMAGES, prompt="hills", model="builtin/paint", size="64x64")).status_code == 200
    assert await lab.spent() == PRICE


async def test_failed_fetch_of_the_last_picture_stores_and_charges_nothing(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/own-url+last-lost", n=3, response_format="url")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert [seen.path for seen in lab.upstream.requests][1:] == ["/v1/generated/picture.png"] * 2 + [
        "/v1/generated/lost.png"
    ]
    assert await lab.spent() == 0 and await kept(lab) == []


async def test_failed_storage_of_the_last_picture_stores_and_charges_nothing(lab: Lab) -> None:
    def refuse_the_second(tx: sqlite3.Connection) -> None:
        second = "CREATE TRIGGER second BEFORE INSERT ON artifacts WHEN EXISTS (SELECT 1 FROM artifacts)"
        tx.execute(f"{second} BEGIN SELECT RAISE(ABORT, 'broken'); END")

    await lab.service.state["db"].write(refuse_the_second)
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/ok", n=2, response_format="url")
    assert answer.status_code >= 500, answer.text
    assert await lab.spent() == 0 and await kept(lab) == []


async def kept(lab: Lab) -> list[str]:
    listed = (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"]
    return [entry["name"] for entry in listed]


@pytest.mark.parametrize(
    ("model", "count"),
    [
        *(
            ("fewer", 1),
            ("too-many", 3),
            ("data-url", 3),
            ("no-response-format", 3),
            ("fail-once", 3),
            ("slow-300ms", 3),
        ),
        *(("in-lines", 3), ("half-emoji", 3), ("deep", 3), ("own-url", 3)),
    ],
)
async def test_a_provider_is_paid_for_the_pictures_that_arrive(lab: Lab, model: str, count: int) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model=f"lab/{model}", n=3)
    assert pictures(answer) == [PNG] * count and await lab.spent() == 1_000 * count


async def test_invalid_picture_becomes_no_artifact(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/bad-picture", response_format="url")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert (
        await lab.spent() == 0
        and (await lab.service.client.get("/artifacts", headers=lab.headers)).json()["data"] == []
    )


async def test_the_fallback_answers_at_its_own_price_and_may_be_built_in(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/status-503", n=2)
    assert pictures(answer) == [PNG] and await lab.spent() == 1_000
    assert [seen.model for seen in lab.upstream.requests] == ["status-503", "status-503", "fewer"]
    for asked, size in (("96x64", (96, 64)), ("2048x60", (1024, 64)), ("60x99999", (64, 1024))):
        answer = await lab.post(IMAGES, prompt="a cat", model="lab/status-504", size=asked)
        assert pictures(answer)[0][16:24] == size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
    assert await lab.spent() == 1_000 + 3 * PRICE


@each("model", ["bad-picture", "other-file"])
@each("response_format", ["b64_json", "url"])
async def test_other_files_than_pictures_are_neither_sent_nor_charged(
    lab: Lab, model: str, response_format: str
) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model=f"lab/{model}", response_format=response_format)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert "@@@" not in answer.text and await lab.spent() == 0


async def test_half_an_emoji_in_an_error_is_replaced(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/half-emoji")
    assert answer.json()["data"][0]["revised_prompt"] == "A nicer \ufffd"


async def test_full_account_is_refused_before_the_model_is_asked(lab: Lab) -> None:
    await fill(lab, 32)
    needed = {"lab/ok": 4 << 20, "builtin/paint": 3 * 1_024 * 1_024 + 65_536}
    for model in ("lab/ok", "builtin/paint"):
        answer = await lab.post(IMAGES, prompt="a cat", model=model, response_format="url")
        assert answer.status_code == 413 and f"This needs {needed[model]} bytes" in answer.json()["error"]["message"]
        assert (await lab.post(IMAGES, prompt="a cat", model=model, size="64x64")).status_code == 200
    assert [seen.body["prompt"] for seen in lab.upstream.requests] == ["a cat"]
    assert await lab.spent() == 1_000 + PRICE


async def test_room_is_reserved_once(lab: Lab) -> None:
    await fill(lab, 31)
    body = {
        "prompt": "a cat",
        "model": "lab/slow-300ms",
        "response_format": "url",
        "n": 5,
    }  # 20 MiB at most, of 32 that are left
    answers = await asyncio.gather(*(lab.post(IMAGES, **body) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 413, 413] and await lab.spent() == 5_000


async def test_finished_picture_is_stored_in_its_reserved_space(lab: Lab) -> None:
    await fill(lab, 31)
    asked = asyncio.create_task(lab.post(IMAGES, prompt="a cat", model="lab/slow-300ms", response_format="url"))
    while not lab.upstream.requests:
        await asyncio.sleep(0.01)
    upload = await lab.post("/artifacts", name="x", content="x" * 1_000_000)
    assert upload.status_code == 201  # beside the room that is reserved
    await fill(lab, 1)
    url = (await asked).json()["data"][0]["url"]
    assert (await lab.service.client.get(url)).content == PNG and await lab.spent() == 1_000


async def test_last_artifact_is_reserved_for_the_first_request(lab: Lab) -> None:
    await fill(lab, 1)
    await lab.service.state["db"].write(lambda tx: tx.execute("DROP TRIGGER artifacts_bounded") and None)
    await fill(lab, 9_998, size_bytes=1)
    asked = asyncio.create_task(lab.post(IMAGES, prompt="a cat", model="lab/slow-300ms", response_format="url"))
    while not lab.upstream.requests:
        await asyncio.sleep(0.01)
    late = await lab.post(IMAGES, prompt="a cat", model="lab/ok", response_format="url")
    upload = await lab.post("/artifacts", name="x", content="x")
    assert [answer.json()["error"]["code"] for answer in (late, upload)] == ["PAYLOAD_TOO_LARGE"] * 2
    assert (await asked).status_code == 200 and await lab.spent() == 1_000


async def test_picture_too_large_for_an_artifact_is_free(lab: Lab) -> None:
    answer = await lab.post(IMAGES, prompt="a cat", model="lab/over-32-mib")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid_response")
    assert await lab.spent() == 0


async def test_picture_stored_during_shutdown_is_deleted_and_free(lab: Lab) -> None:
    db, held, go_on = lab.service.state["db"], threading.Event(), threading.Event()
    asked = asyncio.create_task(lab.post(IMAGES, prompt="a cat", model="lab/slow-300ms", response_format="url"))
    await until(lambda: lab.upstream.requests)
    writer = asyncio.ensure_future(db.write(lambda tx: held.set() or go_on.wait(20)))
    await until(held.is_set)
    await until(lambda: db.waiting()[0])  # the picture has come, and waits for the writer
    lab.service.state["drain"].end_all_of(lab.account_id, "shutdown")
    await run_ready()
    go_on.set()
    assert await writer and (await asked).status_code == 503
    assert (await db.read(lambda conn: conn.execute("SELECT count(*) FROM artifacts").fetchone()))[0] == 0
    assert await lab.spent() == 0


async def fill(lab: Lab, files: int, size_bytes: int = 32 << 20) -> None:
    """Files of 32 MiB, of which 32 are all that an account may have; without their contents."""

    def add(tx: sqlite3.Connection) -> None:
        for _ in range(files):
            made = new_id("art", 1.0)
            tx.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (lab.account_id, made))
            row = (made, lab.account_id, "file", "text/plain", size_bytes, bytes(32), made, 1.0, 1.0)
            tx.execute(
                "INSERT INTO artifacts (id, account_id, name, content_type, size, sha256, content_id, created_at, "
                "updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    await lab.service.state["db"].write(add)
