"""Attacks on what accounts keep, and on the writer and the index that they share."""

import asyncio
import zlib
from base64 import b64encode

from tests.attacks.lab import PASSWORD, Lab, attack
from tests.support.pdfs import of_streams, stream

WORDS = " ".join(f"word{number}" for number in range(11_000))[:100_000]


@attack("100 messages of 100,000 characters at once")
async def long_messages(lab: Lab) -> None:
    made = await lab.post("/conversations", {"title": "long"})
    assert made is not None
    path = f"/conversations/{made.json()['id']}/messages"
    await lab.at_once(20 if lab.short else 100, lambda: lab.post(path, {"role": "user", "content": WORDS}))


@attack("8,000 search words, 20 times at once")
async def search_words(lab: Lab) -> None:
    words = " ".join(f"w{number}" for number in range(8_000))
    await lab.at_once(20, lambda: lab.request("GET", "/conversations", params={"q": words}))


@attack("4 chats, and 4 agents that search their memory, for misspellings of 1,500 look-alike words")
async def look_alike_words(lab: Lab) -> None:
    ends = [f"{a}{b}{c}" for a in "abcdefghijklmno" for b in "abcdefghij" for c in "abcdefghij"]
    made = await lab.post("/conversations", {"title": "look-alikes"})
    assert made is not None
    words = [f"yya{'y' * 50}{end}zzzz" for end in ends]
    await lab.post(f"/conversations/{made.json()['id']}/messages", {"role": "user", "content": " ".join(words)})
    while (
        not (found := await lab.request("GET", "/conversations", params={"q": words[-1]})) or not found.json()["data"]
    ):
        await asyncio.sleep(0.1)  # it is still being indexed
    under_way = []
    for number in range(2 if lab.short else 4):
        # Different words each time, since what a chat asks is known afterwards.
        one, other = (
            " ".join(f"yy{sign}{'y' * 50}{end}xzzz" for end in ends[:8]) for sign in ("bcde"[number], "fghi"[number])
        )
        goal = f'tool search_memory {{"query": "{other}"}}\n---\nsay ok'
        under_way += [
            asyncio.create_task(lab.chat(messages=[{"role": "user", "content": one}])),
            asyncio.create_task(lab.post("/v1/agents/run", {"model": "builtin/script", "goal": goal})),
        ]
        await asyncio.sleep(0.05)  # at once they would share one reader
    await asyncio.gather(*under_way)


@attack("32 common words searched for in 2 MB of messages, 12 times at once")
async def common_words(lab: Lab) -> None:
    words = [f"common{number}" for number in range(40)]
    message = {"role": "user", "content": " ".join(words * 10)}
    for _ in range(5 if lab.short else 25):
        made = await lab.post("/conversations", {"title": "common"})
        assert made is not None
        path = f"/conversations/{made.json()['id']}/messages"
        await asyncio.gather(*(lab.post(path, message) for _ in range(20)))
    under_way = []
    for _ in range(12):
        under_way.append(asyncio.create_task(lab.request("GET", "/conversations", params={"q": " ".join(words[:32])})))
        await asyncio.sleep(0.05)
    await asyncio.gather(*under_way)


@attack("24 artifacts of 30 MB stored at once")
async def artifacts(lab: Lab) -> None:
    made = await lab.post("/artifacts", {"name": "big", "content": ""})
    assert made is not None
    path, content = f"/artifacts/{made.json()['id']}/content", bytes(30_000_000)
    await lab.at_once(6 if lab.short else 24, lambda: lab.request("PUT", path, content=content))


@attack("20 texts of PDFs at once, each PDF with a page of 6 MB")
async def slow_documents(lab: Lab) -> None:
    slow = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * (8_000 if lab.short else 250_000), 9)
    pdf = b64encode(of_streams(stream(slow, b"/Filter /FlateDecode "))).decode()
    made = await lab.post("/artifacts", {"name": "slow.pdf", "content_type": "application/pdf", "content_base64": pdf})
    assert made is not None
    await lab.at_once(5 if lab.short else 20, lambda: lab.request("GET", f"/artifacts/{made.json()['id']}/text"))


@attack("1,000 projects and conversations, 10 long messages and 8 artifacts of 30 MB, deleted with their account")
async def departure(lab: Lab) -> None:
    project = await lab.post("/projects", {"name": "all of it"})
    assert project is not None
    number, filed = 100 if lab.short else 1_000, {"project_id": project.json()["id"]}
    for _ in range(number // 10):
        await lab.at_once(10, lambda: lab.post("/conversations", {"title": WORDS[:200], **filed}))
    made = await lab.post("/conversations", {"title": "long"})
    assert made is not None
    path = f"/conversations/{made.json()['id']}"
    for _ in range(3 if lab.short else 10):
        await lab.post(f"{path}/messages", {"role": "user", "content": WORDS})
    for _ in range(2 if lab.short else 8):
        made = await lab.post("/artifacts", {"name": "big", "content": ""})
        assert made is not None
        await lab.request("PUT", f"/artifacts/{made.json()['id']}/content", content=bytes(30_000_000))
    await lab.request("DELETE", path)
    await lab.request("DELETE", f"/projects/{filed['project_id']}")
    await lab.request("DELETE", "/user/me", json={"password": PASSWORD})
