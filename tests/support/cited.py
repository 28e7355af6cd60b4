"""A project whose files an answer cites, once with a quotation that is there and once with one that is not."""

import asyncio
import base64

from tests.support.browser import Visitor
from tests.support.server import RunningServer

RIGHT = "the night train to Vienna leaves at 22:40 from platform nine"
WRONG = "the night train to Vienna leaves at 23:40 from platform nine"
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
        while any(file["status"] == "reading" for file in (await client.get(path)).json()["data"]):
            await asyncio.sleep(0.02)
    return project, ids
