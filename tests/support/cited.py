"""A project whose files an answer cites, once with a quotation that is there and once with one that is not."""

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator

import httpx

from tests.support.browser import Visitor
from tests.support.server import RunningServer
from tests.support.tool_server import Asked, http, scripted

RIGHT = "the night train to Vienna leaves at 22:40 from platform nine"
WRONG = "the night train to Vienna leaves at 23:40 from platform nine"
CITING = f'say It says "{RIGHT}" [26]. Or "{WRONG}" [26]. Every day [26], `[26]`.'  # the number of its passage
FIND = 'tool find_in_files {"query": "night train to Vienna"}\n---\n'
_OTHERS = [
    f"## Section {number}\n\nAbout lamps, fog or horns, part {number}. " + "Words. " * 70 for number in range(60)
]
_TRAINS = f"## Trains\n\nEvery day {RIGHT}. Bring a ticket.\n"
TIMETABLE = "\n\n".join([*_OTHERS[:25], _TRAINS, *_OTHERS[25:]])  # more than a model gets as a whole


async def project_with(server: RunningServer, visitor: Visitor, *files: tuple[str, bytes]) -> tuple[str, list[str]]:
    """Create a project with files, and wait until they are read. Return its id and those of the artifacts."""
    async with server.client(headers=visitor.headers) as client:
        project: str = (await client.post("/projects", json={"name": "Travel"})).json()["id"]
        path, ids = f"/projects/{project}/files", []
        for name, content in files:
            body = {"name": name, "content_base64": base64.b64encode(content).decode()}
            ids.append(str((await client.post("/artifacts", json=body)).json()["id"]))
            assert (await client.post(path, json={"artifact_id": ids[-1]})).status_code == 201
        await are_read(client, project)
    return project, ids


async def are_read(client: httpx.AsyncClient, project: str) -> None:
    """Wait until no file of a project is being read."""
    while any(file["status"] == "reading" for file in (await client.get(f"/projects/{project}/files")).json()["data"]):
        await asyncio.sleep(0.02)


# --- the pictures

QUESTION = "When does the night train to Vienna leave, and may I take my bicycle?"
_WRAPPED_GUIDE = """# Night trains from Hamburg, 2026

## Before you go

Tickets are sold from 180 days before departure. A seat costs less than a bed, and a bed less than a compartment of your
own. Children under six travel free if they share a bed.

## To Vienna

The night train to Vienna leaves at 22:40 from platform nine every day except on 24 December. It stops in Hannover,
Nuremberg and Linz, and reaches Vienna at 08:55. Breakfast is served from six o'clock.

## To Zurich

The night train to Zurich leaves at 21:05 from platform seven. On Sundays it has no sleeping cars. It reaches Zurich at
08:20, after stops in Frankfurt and Basel.

## Bicycles

A bicycle needs its own ticket for 12 euros, which is sold only together with a bed or a seat. Each train has room for six
bicycles. Folded bicycles are luggage and travel free of charge.

## Luggage

Each passenger may take two suitcases and a small bag. Skis are allowed in the luggage rack of the compartment. Prams are
folded before departure.
"""
_WRAPPED_ANSWER = """The guide says: "The night train to Vienna leaves at 22:40 from platform nine every day except on 24 December" [{vienna}].

You may take a bicycle: "a bicycle needs its own ticket for 15 euros, which is sold at the platform" [{bicycles}]. A folded one is luggage and free
[{bicycles}]."""
GUIDE, ANSWER = (re.sub(r"(?<=\S)\n(?=\S)", " ", text) for text in (_WRAPPED_GUIDE, _WRAPPED_ANSWER))


def _said(prompt: str) -> str:
    """Return the answer with the numbers that the passages have in the prompt, or the title of the chat."""
    numbers = re.findall(r"\[(\d+)\] lines [^\n]*\n## (To Vienna|Bicycles)", prompt)
    found = {heading.split()[-1].lower(): number for number, heading in numbers}
    return ANSWER.format(**found) if found else "Night train to Vienna"


def _answer(asked: Asked) -> bytes:
    prompt = "\n".join(str(message["content"]) for message in asked.body["messages"])
    chunks = [({"content": _said(prompt)}, None), ({}, "stop")]
    lines = [
        json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}, ensure_ascii=False)
        for delta, reason in chunks
    ]
    return http("".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), content_type="text/event-stream")


@contextlib.asynccontextmanager
async def librarian() -> AsyncIterator[str]:
    """Serve a model that answers QUESTION; the value is a catalog."""
    async with scripted(_answer) as server:
        origin = server.url.removesuffix("/mcp")
        yield f'[[providers]]\nname = "lab"\nbase_url = "{origin}/v1"\nmodels = [{{ id = "librarian" }}]\n'
