"""The files of projects, whose text chats and runs may use."""

import re
from functools import partial

from svc.content import project_files
from svc.routes.schemas.common import COUNT, NO_ROOM, TIMESTAMP, WRONG_PARAMETER, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal
from svc.server.web import Request, Response, reply
from svc.shapes import boolean, integer, json_object, list_of, nullable, one_of, string, text

describes = partial(Operation, "Projects")
_FILE = json_object(
    "ProjectFile",
    artifact_id=id_of("art"),
    project_id=id_of("proj"),
    name="report.pdf",
    content_type="application/pdf",
    size=COUNT.about("The size of the artifact in bytes.", 12_000),
    status=one_of("reading", "ready", "failed").about("`ready`: chats and runs can use the text.", "ready"),
    error=nullable(
        json_object("ProjectFileError", code=string.about(example="no_text"), message="No text was found in this file.")
    ).about("Why the file is `failed`.", None),
    text_bytes=COUNT.about("The bytes of its text. They count in the storage of the account.", 4_000),
    created_at=TIMESTAMP,
)
_LIST = json_object(
    "ProjectFileList",
    object=one_of("list"),
    data=list_of(_FILE),
    has_more=boolean.about("Always false.", False),
)
_PASSAGES = json_object(
    "PassageList",
    data=list_of(
        json_object(
            "Passage",
            page=nullable(COUNT).about("Its page or slide.", 3),
            from_line=COUNT.about("Its first line in the text of the file, from 1.", 41),
            to_line=COUNT.about("Its last line.", 58),
            text="The night train leaves at 22:40.",
        )
    ),
    offset=COUNT.about("How many passages come before these.", 20),
    total=COUNT.about("The passages of the file.", 320),
)
_PASSAGES_AT_ONCE = 40
_BEGIN_CHARACTERS = 200
_LINE = Parameter("line", "The line that the passages surround.", integer(1, 99_999_999), 42, default="1")
_BEGIN = Parameter(
    "begin",
    "Of a long line, which has many passages: how the passage in the middle begins. Ignored if none begins so.",
    text(_BEGIN_CHARACTERS),
    "The night train",
)
_OFFSET = Parameter("offset", "Instead of `line`: the number of passages to leave out.", integer(0, 99_999_999), 60)
_NO_ARTIFACT = Refusal("not_found", "There is no such artifact.", "artifact_id")
_TOO_MANY = Refusal(
    "PAYLOAD_TOO_LARGE", f"This project has {project_files.MOST_FILES} files, the maximum. Remove some first."
)
_TOO_MUCH = Refusal("PAYLOAD_TOO_LARGE", str(project_files.too_much_text()))


@describes(
    "Add a file to a project",
    "Its text is read in the background. A file that is there already is returned with status 200.",
    answer=Answer("The file.", _FILE, 201),
    others=[Answer("The file that was there already.", _FILE, 200)],
    errors=[_NO_ARTIFACT, _TOO_MANY, _TOO_MUCH, NO_ROOM],
)
async def add_project_file(request: Request, caller: Caller, project_id: str, body: project_files.NewFile) -> Response:
    state = request.state
    file, is_new = await state.db.write(project_files.add_file, caller.id, project_id, body, state.clock())
    state.file_reading.wake()
    return reply(file, 201 if is_new else 200)


@describes("List the files of a project", answer=Answer("All files, in the order of their addition.", _LIST))
async def list_project_files(request: Request, caller: Caller, project_id: str) -> object:
    files = await request.state.db.read(project_files.listed, caller.id, project_id)
    return {"object": "list", "data": files, "has_more": False}


@describes("Remove a file from a project", "The artifact stays.", answer=Answer("The file is removed."))
async def remove_project_file(request: Request, caller: Caller, project_id: str, artifact_id: str) -> None:
    await request.state.db.write(project_files.remove_file, caller.id, project_id, artifact_id)


@describes(
    "Show the passages of a file",
    f"The text of a file of a project, as chats and runs find and cite it: {_PASSAGES_AT_ONCE} passages at once.",
    parameters=[_LINE, _BEGIN, _OFFSET],
    answer=Answer("Passages that follow one another.", _PASSAGES),
    errors=[Refusal("not_found", str(project_files.not_read())), WRONG_PARAMETER],
)
async def list_artifact_passages(request: Request, caller: Caller, artifact_id: str) -> object:
    place = project_files.FilePlace(_number(request, _LINE), _BEGIN.of(request) or "", _number(request, _OFFSET))
    near = project_files.passages_near
    return await request.state.db.heavy_read(near, caller.id, artifact_id, place, _PASSAGES_AT_ONCE)


def _number(request: Request, parameter: Parameter) -> int | None:
    """Return an integer of the query. Raises ApiError `invalid_value`."""
    sent = request.query_params.get(parameter.name, parameter.default)
    value = int(sent) if sent and re.fullmatch("[0-9]{1,8}", sent) else sent
    return None if value is None else int(parameter.shape.check(value, parameter.name))
