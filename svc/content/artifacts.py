"""Artifacts: files of an account, made by its user or by its agent runs."""

import hmac
import re
import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from svc import quota
from svc.content.artifact_contents import ArtifactContent, add_content
from svc.db import Database
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id, signature
from svc.shapes import ABSENT, Absent, label, matching, nullable, record, string
from svc.tables import Table, delete_found, refusals

LINK_SECONDS = 3600
NAME_LENGTH = 200
PROMPT_LENGTH = 4_000
CONTENT_TYPE_LENGTH = 200
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CONTENT_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}(?: *; *{_TOKEN}=(?:{_TOKEN}|"[ !#-\[\]-~]*"))*')


def content_url(key: bytes, base_url: str, account_id: str, artifact_id: str, now_seconds: float) -> str:
    """Return the address of an artifact's content, valid for an hour from `now_seconds` (Unix time)."""
    expires = str(int(now_seconds) + LINK_SECONDS)
    signed = signature(key, f"{account_id}\n{artifact_id}\n{expires}")
    query = urlencode({"account": account_id, "expires": expires, "signature": signed})
    return f"{base_url}/artifacts/{artifact_id}/content?{query}"


def account_of_link(key: bytes, query: Mapping[str, str], artifact_id: str, now_seconds: float) -> str | None:
    """Return the id of the account of a link to an artifact with this query, or None if it is not valid."""
    account_id, expires = query.get("account", ""), query.get("expires", "")
    signed = signature(key, f"{account_id}\n{artifact_id}\n{expires}")
    if not hmac.compare_digest(signed.encode(), query.get("signature", "").encode()):
        return None
    return account_id if int(expires) > now_seconds else None


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
    prompt: str | None  # of a generated image, cut

    def as_json(self) -> dict[str, Any]:
        names = "id name content_type size project_id run_id prompt created_at updated_at"
        return {**fields_as_json(self._asdict(), names), "sha256": self.sha256.hex()}


TABLE = Table(
    "artifacts", lambda row: Artifact(**row), "artifact", "art", at_once=16
)  # a deleted row's content is unused


_NAME = label(NAME_LENGTH).about("A file name; not blank, without control characters.")
# It is sent as a header, so only a media type of RFC 9110 is valid.
_TYPE = matching(
    _CONTENT_TYPE,
    f"a media type such as text/markdown, of at most {CONTENT_TYPE_LENGTH} characters",
    CONTENT_TYPE_LENGTH,
).about("A media type.")


@record(
    "CreateArtifactRequest",
    "The content is text or base64, at most 32 MiB.",
    anyOf=[
        {"required": [one], "properties": {one: {"type": "string"}, other: {"type": "null"}}}
        for one, other in (("content", "content_base64"), ("content_base64", "content"))
    ],
)
class NewArtifact(NamedTuple):
    name: Annotated[str, _NAME]
    content_type: Annotated[str | None, _TYPE] = None
    project_id: Annotated[str | None, string.about("The project under which to file it.")] = None
    content: Annotated[str | None, string.about("Text. Its type is `text/plain; charset=utf-8` by default.")] = None
    content_base64: Annotated[
        str | None,
        string.about(
            "Standard base64 with its padding. Its type is `application/octet-stream` by default.",
            contentEncoding="base64",
            pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        ),
    ] = None


@record("UpdateArtifactRequest", "Missing fields do not change.", example={"name": "notes.md"})
class ArtifactChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    content_type: Annotated[str | Absent, _TYPE] = ABSENT
    project_id: Annotated[str | Absent | None, nullable(string).about("Null removes it from its project.")] = ABSENT


class Home(NamedTuple):
    """The account, project and agent run to which a file belongs."""

    account_id: str
    project_id: str | None = None
    run_id: str | None = None


async def add_artifact(
    db: Database,
    home: Home,
    data: bytes,
    *,
    name: str | None,
    content_type: str,
    now_seconds: float,
    created_at: float | None = None,
    artifact_id: str | None = None,
    room_reserved: bool = False,
    prompt: str | None = None,
) -> Artifact:
    """Store a new artifact and return it. It is visible once its whole content is stored.

    `room_reserved`: the call that made the artifact has reserved its room. A long `prompt` of an image is cut.
    Raises ApiError `missing_field`, `invalid_value`, `PAYLOAD_TOO_LARGE`, `quota_exceeded`, `not_found` (the project).
    """
    values: dict[str, Any] = {
        **home._asdict(),
        "name": _NAME.check(name, "name"),
        "content_type": _TYPE.check(content_type, "content_type"),
        "id": artifact_id or new_id("art", now_seconds),
        "created_at": now_seconds if created_at is None else created_at,
        "updated_at": now_seconds,
        "prompt": prompt and prompt[:PROMPT_LENGTH],
    }

    def check(tx: sqlite3.Connection) -> None:
        if not room_reserved:
            size = quota.ROW_BYTES + len(values["name"].encode()) + len(data)
            quota.check_room(tx, home.account_id, size, artifacts=1)

    def finish(tx: sqlite3.Connection, content: ArtifactContent) -> Artifact:
        with refusals(home.project_id, artifacts_count=quota.too_many_artifacts()):
            return TABLE.insert(tx, {**values, **content._asdict()})

    return await add_content(db, home.account_id, [data], check=check, finish=finish)


def valid_type(value: object) -> str | None:
    """Return a media type if it is one that an artifact may have, or None."""
    try:
        return _TYPE.check(value, "content_type")
    except ApiError:
        return None


def exists(conn: sqlite3.Connection, account_id: str, artifact_id: str) -> bool:
    query = "SELECT 1 FROM artifacts WHERE account_id = ? AND id = ?"
    return conn.execute(query, (account_id, artifact_id)).fetchone() is not None


def artifacts_of_run(conn: sqlite3.Connection, account_id: str, run_id: str) -> list[Artifact]:
    """Return all artifacts of an agent run, the oldest first. A page of the table may lack some."""
    query = "SELECT * FROM artifacts WHERE account_id = ? AND run_id = ? ORDER BY rowid"
    return list(map(TABLE.make, conn.execute(query, (account_id, run_id))))


def change_artifact(
    tx: sqlite3.Connection, account_id: str, artifact_id: str, changes: Mapping[str, Any], now_seconds: float
) -> Artifact:
    """Set the checked fields and return the artifact. Raises ApiError `not_found`."""
    if not changes:
        return TABLE.by_id(tx, account_id, artifact_id)
    with refusals(changes.get("project_id")):
        return TABLE.update(tx, account_id, artifact_id, {**changes, "updated_at": now_seconds})


def check_replacing(conn: sqlite3.Connection, account_id: str, artifact_id: str, content_type: str | None) -> Artifact:
    """Return the artifact whose content a request replaces. Raises ApiError `not_found`, `invalid_value` (the type)."""
    if content_type is not None:
        _TYPE.check(content_type, "content_type")
    return TABLE.by_id(conn, account_id, artifact_id)


async def replace_content(
    db: Database,
    account_id: str,
    artifact_id: str,
    chunks: list[bytes],
    *,
    content_type: str | None,
    now_seconds: float,
) -> Artifact:
    """Replace the content with `chunks`, a list that is emptied, and return the artifact. The type may be kept (None).

    Raises ApiError `not_found`, `invalid_value` for the type, `PAYLOAD_TOO_LARGE` and `quota_exceeded`.
    """
    size = sum(map(len, chunks))

    def check(tx: sqlite3.Connection) -> None:
        quota.check_room(tx, account_id, size - check_replacing(tx, account_id, artifact_id, content_type).size)

    def finish(tx: sqlite3.Connection, content: ArtifactContent) -> Artifact:
        columns = {**content._asdict(), "prompt": None, "updated_at": now_seconds}
        if content_type is not None:
            columns["content_type"] = content_type
        return TABLE.update(tx, account_id, artifact_id, columns)

    return await add_content(db, account_id, chunks, check=check, finish=finish)


_OLD = "SELECT account_id, id FROM artifacts WHERE updated_at < ? ORDER BY updated_at LIMIT 1"
delete_old = partial(delete_found, _OLD, TABLE.delete)
