"""The caller's projects."""

from functools import partial

from svc.agents import run_records
from svc.content import artifacts, conversations, projects
from svc.routes.schemas.common import NO_ROOM, PROJECT_NOT_FOUND, TIMES, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, paged
from svc.server.web import Request, read_page
from svc.shapes import integer, json_object, nullable, string

describes = partial(Operation, "Projects")
_PROJECT = json_object(
    "Project",
    id=id_of("proj"),
    name="Thesis",
    instructions="Answer in British English.",
    max_planner_steps=nullable(integer(1, projects.MOST_STEPS)).about(example=10),
    **TIMES,
)
IN_PROJECT = Parameter("project_id", "Only those of this project.", string, refusal=PROJECT_NOT_FOUND)


async def project_filter(request: Request, caller: Caller) -> str | None:
    """Return the parameter IN_PROJECT. Raises ApiError `not_found` if the account has no such project."""
    project_id = request.query_params.get("project_id")
    if project_id is not None:
        await request.state.db.read(projects.TABLE.by_id, caller.id, project_id, "project_id")
    return project_id


@describes(
    "Create a project",
    answer=Answer("The project.", _PROJECT, 201),
    errors=[Refusal("quota_exceeded", "This account has 1,000 projects, the maximum. Delete some first.")],
)
async def create_project(request: Request, caller: Caller, body: projects.NewProject) -> object:
    return await request.state.db.write(projects.add_project, caller.id, body, request.state.clock())


@describes("List the projects", answer=paged("A page of projects.", "ProjectList", _PROJECT))
async def list_projects(request: Request, caller: Caller) -> object:
    return await read_page(request, projects.TABLE.page, caller.id)


@describes("Show a project", answer=Answer("The project.", _PROJECT))
async def get_project(request: Request, caller: Caller, project_id: str) -> object:
    return await request.state.db.read(projects.TABLE.by_id, caller.id, project_id)


@describes("Change a project", answer=Answer("The changed project.", _PROJECT), errors=[NO_ROOM])
async def update_project(request: Request, caller: Caller, project_id: str, body: projects.ProjectChanges) -> object:
    return await request.state.db.write(projects.change_project, caller.id, project_id, body, request.state.clock())


@describes(
    "Delete a project",
    "Its runs, artifacts and conversations stay, without a project.",
    answer=Answer("The project is deleted."),
)
async def delete_project(request: Request, caller: Caller, project_id: str) -> None:
    db = request.state.db
    for table in (artifacts.TABLE, conversations.TABLE, run_records.TABLE):
        while await db.write_as("alone", table.detach_some, caller.id, project_id):
            pass
    await db.write(projects.TABLE.delete, caller.id, project_id)
