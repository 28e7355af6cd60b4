"""The caller's projects."""

from starlette.requests import Request
from starlette.responses import Response

from svc.agents import runs
from svc.content import artifacts, conversations, projects
from svc.content.projects import NEW_PROJECT, PROJECT_CHANGES, NewProject, Project, ProjectChanges
from svc.routes.schemas.content import PROJECT, PROJECT_LIST
from svc.routes.schemas.refusals import NO_ROOM
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, path_id
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply

_PROJECT_ID = path_id("project_id", "The project's id.", "proj_01m3250v3vn4qvxnatpwzmywwn")
_NOT_FOUND = Refusal("not_found", "There is no such project.", when="The account has no such project.")


@describes(
    "Projects",
    "createProject",
    "Create a project",
    body=NEW_PROJECT,
    answers={201: Answer("The project.", PROJECT)},
    errors=[
        Refusal("quota_exceeded", "This account has 1,000 projects, the most there can be. Delete some first."),
    ],
)
async def create_project(request: Request[State], caller: Caller, body: NewProject) -> Response:
    state = request.state
    return reply((await state.db.write(projects.add_project, caller.id, body, state.clock())).as_json(), 201)


@describes(
    "Projects", "listProjects", "List the projects", answers={200: Answer("A page of projects.", PROJECT_LIST)}, paged=True
)
async def list_projects(request: Request[State], caller: Caller) -> Response:
    """Newest first, `?limit= ?after=`."""
    page = await request.state.db.read(projects.projects_page, caller.id, page_limit(request), page_after(request))
    return listing(page, Project.as_json)


@describes(
    "Projects",
    "getProject",
    "Show one project",
    parameters=[_PROJECT_ID],
    answers={200: Answer("The project.", PROJECT)},
    errors=[_NOT_FOUND],
)
async def show_project(request: Request[State], caller: Caller) -> Response:
    project = await request.state.db.read(projects.project_by_id, caller.id, request.path_params["project_id"])
    return reply(project.as_json())


@describes(
    "Projects",
    "updateProject",
    "Change a project",
    body=PROJECT_CHANGES,
    parameters=[_PROJECT_ID],
    answers={200: Answer("The project as it is now.", PROJECT, {**PROJECT.example, "max_planner_steps": None})},
    errors=[_NOT_FOUND, NO_ROOM],
)
async def change_project(request: Request[State], caller: Caller, body: ProjectChanges) -> Response:
    """An absent field stays; null takes back instructions and max_planner_steps."""
    state, project_id = request.state, request.path_params["project_id"]
    return reply((await state.db.write(projects.change_project, caller.id, project_id, body, state.clock())).as_json())


@describes(
    "Projects",
    "deleteProject",
    "Delete a project",
    "What was filed under it stays, without a project.",
    parameters=[_PROJECT_ID],
    answers={204: Answer("The project is gone.")},
    errors=[_NOT_FOUND],
)
async def delete_project(request: Request[State], caller: Caller) -> Response:
    """204; what was filed under it stays, with `project_id` null."""
    db, project_id = request.state.db, request.path_params["project_id"]
    for leave_project in (artifacts.leave_project, conversations.leave_project, runs.leave_project):
        while await db.write_as("alone", leave_project, caller.id, project_id):
            pass
    await db.write(projects.delete_project, caller.id, project_id)
    return no_content()
