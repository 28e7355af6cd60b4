"""The caller's projects."""

from starlette.requests import Request
from starlette.responses import Response

from svc.content import projects
from svc.content.projects import Project
from svc.server.bodies import read_json
from svc.server.gate import Caller
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply


async def create_project(request: Request[State], caller: Caller) -> Response:
    """`{name, instructions?, max_planner_steps?}` -> 201."""
    state = request.state
    values = projects.check_fields({"name": None, **await read_json(request)})
    return reply((await state.db.write(projects.add_project, caller.id, values, state.clock())).as_json(), 201)


async def list_projects(request: Request[State], caller: Caller) -> Response:
    """Newest first, `?limit= ?after=`."""
    page = await request.state.db.read(projects.projects_page, caller.id, page_limit(request), page_after(request))
    return listing(page, Project.as_json)


async def show_project(request: Request[State], caller: Caller) -> Response:
    project = await request.state.db.read(projects.project_by_id, caller.id, request.path_params["project_id"])
    return reply(project.as_json())


async def change_project(request: Request[State], caller: Caller) -> Response:
    """Any of the fields; an absent one stays, null takes back instructions and max_planner_steps."""
    state = request.state
    changes = projects.check_fields(await read_json(request))
    project_id = request.path_params["project_id"]
    return reply((await state.db.write(projects.change_project, caller.id, project_id, changes, state.clock())).as_json())


async def delete_project(request: Request[State], caller: Caller) -> Response:
    """204; the project's artifacts stay, with `project_id` null."""
    await request.state.db.write(projects.delete_project, caller.id, request.path_params["project_id"])
    return no_content()
