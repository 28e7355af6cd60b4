"""Artifacts: files of an account, from its caller or from its agent runs, within bounds."""

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc import quota
from svc.content.contents import ArtifactContent, add_content
from svc.db import Database, Page, page
from svc.errors import ApiError
from svc.ids import new_id, timestamp
from svc.shapes import ABSENT, Absent, label, matching, nullable, record, string
from svc.slices import run_some, without_overwriting

NAME_LENGTH = 200
_SLICE_SECONDS = 0.005
CONTENT_TYPE_LENGTH = 200
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CONTENT_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}(?: *; *{_TOKEN}=(?:{_TOKEN}|"[ !#-\[\]-~]*"))*')


class Artifact(NamedTuple):
    """A row of `artifacts`, without its content; `size` in bytes, times in Unix seconds."""

    id: str
    account_id: str
    project_id: str | None
    run_id: str | None
    name: str
    content_type: str
    size: int
    sha256: bytes
    content_id: str
    created_at: float
    updated_at: float

    def as_json(self) -> dict[str, Any]:
        """The artifact as the API shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "content_type": self.content_type,
            "size": self.size,
            "project_id": self.project_id,
            "run_id": self.run_id,
            "sha256": self.sha256.hex(),
            "created_at": timestamp(self.created_at),
            "updated_at": timestamp(self.updated_at),
        }


_NAME = label(NAME_LENGTH).about("A file name; not blank, without control characters.")
# It comes back as a header: nothing but RFC 9110's media type may pass.
_TYPE = matching(
    _CONTENT_TYPE, f"a media type such as text/markdown, of at most {CONTENT_TYPE_LENGTH} characters", CONTENT_TYPE_LENGTH
).about("A media type.")


class NewArtifact(NamedTuple):
    name: Annotated[str, _NAME]
    content_type: Annotated[str | None, _TYPE] = None
    project_id: Annotated[str | None, string.about("The project under which to file it.")] = None
    content: Annotated[str | None, string.about("Text. Its type is `text/plain; charset=utf-8` if none is named.")] = None
    content_base64: Annotated[
        str | None,
        string.about(
            "Standard base64 with its padding. Its type is `application/octet-stream` if none is named.",
            contentEncoding="base64",
            pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        ),
    ] = None


class ArtifactChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    content_type: Annotated[str | Absent, _TYPE] = ABSENT
    project_id: Annotated[str | Absent | None, nullable(string).about("Null takes it out of its project.")] = ABSENT


NEW_ARTIFACT = record(
    "CreateArtifactRequest",
    NewArtifact,
    "The content as text, or in base64, and not both; at most 32 MiB.",
    anyOf=[
        {"required": ["content"], "properties": {"content": {"type": "string"}, "content_base64": {"type": "null"}}},
        {"required": ["content_base64"], "properties": {"content_base64": {"type": "string"}, "content": {"type": "null"}}},
    ],
)
ARTIFACT_CHANGES = record(
    "UpdateArtifactRequest", ArtifactChanges, "An absent field stays as it is.", example={"name": "notes.md"}
)


async def add_artifact(
    db: Database,
    account_id: str,
    data: bytes,
    *,
    name: str | None,
    content_type: str,
    project_id: str | None,
    run_id: str | None,
    now_seconds: float,
    artifact_id: str | None = None,
    room_reserved: bool = False,
) -> Artifact:
    """Store a new artifact, which shows when its content is whole, and return it.

    `room_reserved` skips the check of room: the call that made the artifact has reserved it. Raises ApiError `missing_field` or
    `invalid_value` for the name or type, `PAYLOAD_TOO_LARGE` or `quota_exceeded` beyond a bound, `not_found` (param
    `project_id`) for another's or no project.
    """
    values: dict[str, Any] = {
        "name": _NAME.check(name, "name"),
        "content_type": _TYPE.check(content_type, "content_type"),
        "id": artifact_id or new_id("art", now_seconds),
        "account_id": account_id,
        "project_id": project_id,
        "run_id": run_id,
        "now": now_seconds,
    }

    def check(tx: sqlite3.Connection) -> None:
        if not room_reserved:
            quota.check_room(tx, account_id, quota.ROW_BYTES + len(values["name"].encode()) + len(data), artifacts=1)

    return await add_content(db, account_id, [data], check=check, finish=partial(_add, values))


def _add(values: dict[str, Any], tx: sqlite3.Connection, content: ArtifactContent) -> Artifact:
    with _refusals(values["project_id"]):
        row = tx.execute(
            """
            INSERT INTO artifacts
                (id, account_id, project_id, run_id, name, content_type, size, sha256, content_id, created_at, updated_at)
            VALUES (:id, :account_id, :project_id, :run_id, :name, :content_type, :size, :sha256, :content_id, :now, :now)
            RETURNING *
            """,
            {**values, "size": content.size, "sha256": content.sha256, "content_id": content.id},
        ).fetchone()
    return Artifact(**row)


def artifact_by_id(conn: sqlite3.Connection, account_id: str, artifact_id: str) -> Artifact:
    """One artifact of the account, without its content. Raises ApiError `not_found`."""
    row = conn.execute("SELECT * FROM artifacts WHERE account_id = ? AND id = ?", (account_id, artifact_id)).fetchone()
    if row is None:
        raise _not_found()
    return Artifact(**row)


def artifacts_page(
    conn: sqlite3.Connection, account_id: str, limit: int, after: str | None, project_id: str | None, run_id: str | None
) -> Page[Artifact]:
    """A page of the account's artifacts, as svc/db.py's `page`; None for `project_id` or `run_id` narrows nothing."""
    rows = page(conn, "artifacts", account_id, limit, after, project_id=project_id, run_id=run_id)
    return rows.of(lambda row: Artifact(**row))


def artifacts_of_run(conn: sqlite3.Connection, account_id: str, run_id: str) -> list[Artifact]:
    """What an agent run has made, in that order, as far as it is still there."""
    rows = conn.execute("SELECT * FROM artifacts WHERE account_id = ? AND run_id = ? ORDER BY rowid", (account_id, run_id))
    return [Artifact(**row) for row in rows]


def change_artifact(
    tx: sqlite3.Connection, account_id: str, artifact_id: str, changes: Mapping[str, Any], now_seconds: float
) -> Artifact:
    """Sets `name`, `content_type` and `project_id`, checked, and returns the artifact. Raises ApiError `not_found`, with param
    `project_id` for another's or no project."""
    artifact = artifact_by_id(tx, account_id, artifact_id)
    if not changes:
        return artifact
    values = {**artifact._asdict(), **changes, "now": now_seconds}
    with _refusals(values["project_id"]):
        tx.execute(
            """
            UPDATE artifacts SET name = :name, content_type = :content_type, project_id = :project_id, updated_at = :now
            WHERE account_id = :account_id AND id = :id
            """,
            values,
        )
    return artifact_by_id(tx, account_id, artifact_id)


def check_replacing(conn: sqlite3.Connection, account_id: str, artifact_id: str, content_type: str | None) -> Artifact:
    """The artifact whose content is to be replaced by one of `content_type`; None is the old one. Raises ApiError `not_found`, or
    `invalid_value` for the type."""
    if content_type is not None:
        _TYPE.check(content_type, "content_type")
    return artifact_by_id(conn, account_id, artifact_id)


async def replace_content(
    db: Database, account_id: str, artifact_id: str, chunks: list[bytes], *, content_type: str | None, now_seconds: float
) -> Artifact:
    """Puts `chunks`, a list that is emptied, in the place of the artifact's content when it is whole, and returns the artifact;
    without a `content_type` the old one stays.

    Raises ApiError `not_found`, `invalid_value` for the type, `PAYLOAD_TOO_LARGE` or `quota_exceeded` beyond a bound.
    """
    size = sum(map(len, chunks))

    def check(tx: sqlite3.Connection) -> None:
        quota.check_room(tx, account_id, size - check_replacing(tx, account_id, artifact_id, content_type).size)

    def finish(tx: sqlite3.Connection, content: ArtifactContent) -> Artifact:
        with without_overwriting(tx):  # a trigger deletes the old one
            row = tx.execute(
                """
                UPDATE artifacts
                SET content_type = ifnull(?, content_type), size = ?, sha256 = ?, content_id = ?, updated_at = ?
                WHERE account_id = ? AND id = ? RETURNING *
                """,
                (content_type, content.size, content.sha256, content.id, now_seconds, account_id, artifact_id),
            ).fetchone()
        return Artifact(**row)

    return await add_content(db, account_id, chunks, check=check, finish=finish)


def delete_artifact(tx: sqlite3.Connection, account_id: str, artifact_id: str) -> None:
    """Deletes an artifact with its content. Raises ApiError `not_found`."""
    with without_overwriting(tx):
        deleted = tx.execute("DELETE FROM artifacts WHERE account_id = ? AND id = ?", (account_id, artifact_id)).rowcount
    if deleted == 0:
        raise _not_found()


def detach_from_project(tx: sqlite3.Connection, account_id: str, project_id: str) -> bool:
    """Takes artifacts out of a project that is being deleted, for 5 ms; whether there are more in it."""
    filed = "SELECT rowid FROM artifacts WHERE account_id = ?1 AND project_id = ?3 LIMIT ?2"
    return run_some(tx, f"UPDATE artifacts SET project_id = NULL WHERE rowid IN ({filed})", account_id, project_id)  # noqa: S608


def delete_some(tx: sqlite3.Connection, account_id: str) -> bool:
    """Deletes artifacts of an account for 5 ms; whether there are more. To be called until there are none, before the account is
    deleted: all at once would hold up everybody else's writes."""
    ends = time.monotonic() + _SLICE_SECONDS
    while time.monotonic() < ends:
        row = tx.execute("SELECT id FROM artifacts WHERE account_id = ? LIMIT 1", (account_id,)).fetchone()
        if row is None:
            return False
        delete_artifact(tx, account_id, row["id"])
    return True


def _not_found() -> ApiError:
    return ApiError("not_found", "There is no such artifact.")


@contextlib.contextmanager
def _refusals(project_id: str | None) -> Iterator[None]:
    """What the constraints of schema.sql refuse, as the caller sees it."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if str(error) == "artifacts_count":
            raise quota.too_many_artifacts() from None
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_FOREIGNKEY":
            raise
        if project_id is None:  # the account went while we were here
            raise ApiError("invalid_api_key") from None
        raise ApiError("not_found", "There is no such project.", param="project_id") from None
