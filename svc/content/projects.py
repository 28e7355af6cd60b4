"""Projects group conversations, runs and artifacts. They have instructions and a cap on planner steps."""

import sqlite3
from typing import Annotated, Any, NamedTuple

from svc import quota
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.shapes import ABSENT, Absent, given, integer, label, nullable, record, text
from svc.tables import Table, refusals

MOST_STEPS = 20
INSTRUCTIONS_LENGTH = 100_000
_NAME = label(200).about("Not blank, without control characters.")
_INSTRUCTIONS = text(INSTRUCTIONS_LENGTH).about(
    "The beginning of the system message of runs and conversations; null removes it."
)
_MAX_PLANNER_STEPS = integer(1, MOST_STEPS).about("The most steps of the project's agent runs; null means no limit.")


@record(
    "CreateProjectRequest",
    example={"name": "Thesis", "instructions": "Answer in British English.", "max_planner_steps": 10},
)
class NewProject(NamedTuple):
    name: Annotated[str, _NAME]
    instructions: Annotated[str, _INSTRUCTIONS] = ""
    max_planner_steps: Annotated[int | None, _MAX_PLANNER_STEPS] = None


@record("UpdateProjectRequest", "Missing fields do not change.", example={"max_planner_steps": None})
class ProjectChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    instructions: Annotated[str | Absent | None, nullable(_INSTRUCTIONS)] = ABSENT
    max_planner_steps: Annotated[int | Absent | None, nullable(_MAX_PLANNER_STEPS)] = ABSENT


class Project(NamedTuple):
    """A row of `projects`; times are Unix seconds."""

    id: str
    account_id: str
    name: str
    instructions: str
    max_planner_steps: int | None
    created_at: float
    updated_at: float

    def as_json(self) -> dict[str, Any]:
        return fields_as_json(self._asdict(), "id name instructions max_planner_steps created_at updated_at")


TABLE = Table("projects", lambda row: Project(**row), "project", "proj", at_once=1)


def add_project(tx: sqlite3.Connection, account_id: str, new: NewProject, now_seconds: float) -> Project:
    """Store a project and return it. Raises ApiError `quota_exceeded`."""
    quota.check_row(tx, account_id, new.instructions)
    full = ApiError("quota_exceeded", "This account has 1,000 projects, the maximum. Delete some first.")
    times = {"created_at": now_seconds, "updated_at": now_seconds}
    with refusals(projects_count=full):
        return TABLE.insert(tx, {"id": new_id("proj", now_seconds), "account_id": account_id, **new._asdict(), **times})


def change_project(
    tx: sqlite3.Connection, account_id: str, project_id: str, sent: ProjectChanges, now_seconds: float
) -> Project:
    """Set the fields that were sent and return the project. Raises ApiError `not_found`."""
    project = TABLE.by_id(tx, account_id, project_id)
    changes = given(sent)
    if not changes:
        return project
    changes["instructions"] = changes.get("instructions", project.instructions) or ""
    quota.check_room(tx, account_id, len(changes["instructions"].encode()) - len(project.instructions.encode()))
    return TABLE.update(tx, account_id, project_id, {**changes, "updated_at": now_seconds})
