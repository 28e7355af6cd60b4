"""The files of projects, whose text chats and runs may use."""

from functools import partial

from svc.content import project_files
from svc.routes.schemas.common import COUNT, NO_ROOM, TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal
from svc.server.web import Request, Response, reply
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string

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
_LIST = json_object("ProjectFileList", data=list_of(_FILE), has_more=boolean.about("Always false.", False))
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
    return {"data": files, "has_more": False}


@describes("Remove a file from a project", "The artifact stays.", answer=Answer("The file is removed."))
async def remove_project_file(request: Request, caller: Caller, project_id: str, artifact_id: str) -> None:
    await request.state.db.write(project_files.remove_file, caller.id, project_id, artifact_id)
