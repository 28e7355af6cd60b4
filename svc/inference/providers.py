"""A user's own model-provider endpoints (BYOK): their records, and their keys encrypted at rest."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import orjson

from svc import quota
from svc.errors import ApiError
from svc.groups import Group
from svc.ids import fields_as_json, new_id
from svc.inference.catalog import API, API_KEY, BASE_URL, KIND, MODEL_NAME, PROVIDER_NAME
from svc.outbound.addresses import same_origin
from svc.secrets import derive, key_check
from svc.shapes import ABSENT, Absent, by_type, list_of, nullable, passed_on, record
from svc.tables import Table, refusals

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_HINTED_KEY_LENGTH = 16
MOST_MODELS = 500


class KeyBox:
    """Encrypts providers' keys with an AEAD bound to account and provider, so that a copied row cannot be decrypted.

    While secrets are rotated it has two master secrets. The one of the database encrypts.
    """

    def __init__(self, master: bytes) -> None:
        self._aeads: dict[bytes, Callable[[], AESGCM]] = {}
        self.add(master)

    def add(self, master: bytes) -> None:
        secret = derive(master, "byok")

        @cache  # so that no attribute holds the secret
        def aead() -> "AESGCM":
            # Late: the import delays a start, and takes 8 MB.
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            return AESGCM(secret)

        self._aeads = {derive(master, "check"): aead, **self._aeads}

    def seal(self, account_id: str, provider_id: str, api_key: str, check: bytes | None = None) -> bytes:
        """Encrypt with the master secret of that `check`, by default the last one added."""
        nonce = os.urandom(_NONCE_BYTES)
        aead = self._aeads[check or next(iter(self._aeads))]
        return nonce + aead().encrypt(nonce, api_key.encode(), f"{account_id}/{provider_id}".encode())

    def open(self, account_id: str, provider_id: str, sealed: bytes) -> str:
        """Return the key. Raises ApiError `invalid_value` if another secret encrypted it."""
        from cryptography.exceptions import InvalidTag

        nonce, data = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        for aead in self._aeads.values():
            with contextlib.suppress(InvalidTag, ValueError):
                return aead().decrypt(nonce, data, f"{account_id}/{provider_id}".encode()).decode()
        raise ApiError("invalid_value", "The stored key cannot be read any more. Set it again.")


def _kinds(models: list[Any]) -> dict[str, str | None]:
    return dict((model["id"], model["kind"]) if isinstance(model, dict) else (model, None) for model in models)


_NAME = PROVIDER_NAME.about(
    "The prefix of its models' ids. Unique for the caller, and not a name that the operator uses."
)
_BASE_URL = BASE_URL.about(
    "The address of its API, mostly with `/v1`: http or https, without user name, query and fragment. All addresses of "
    "its host must be allowed, at creation and at each use. A new scheme, host or port deletes the stored key unless "
    "a new one is sent."
)
_API_KEY = API_KEY.about(
    "Sent as `Authorization: Bearer <key>`, or as `x-api-key` in the format `messages`. It is stored encrypted and "
    "never returned. Printable ASCII without spaces; null means no key."
)
_API = API.about(
    "The format in which its chat models are asked: `chat` (`POST /chat/completions`), `responses` (OpenAI's `POST "
    "/responses`) or `messages` (Anthropic's `POST /messages`). Callers may use every format with every server."
)
OWN_MODEL = by_type(
    MODEL_NAME.expected,
    {str: MODEL_NAME, dict: passed_on({"id": MODEL_NAME, "kind": KIND}, required=("id", "kind"))},
).about("A model by the provider's own name, with its kind unless that is chat.")
_MODELS = list_of(OWN_MODEL, most=MOST_MODELS).about(
    "The models to offer, by the provider's own names. Null means all that the provider lists."
)


@record("CreateProviderRequest")
class NewProvider(NamedTuple):
    name: Annotated[str, _NAME]
    base_url: Annotated[str, _BASE_URL]
    api_key: Annotated[str | None, _API_KEY] = None
    models: Annotated[list[str | dict[str, str]] | None, _MODELS] = None
    api: Annotated[str, _API] = "chat"


@record("UpdateProviderRequest", "Missing fields do not change.")
class ProviderChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    base_url: Annotated[str | Absent, _BASE_URL] = ABSENT
    api_key: Annotated[str | Absent | None, nullable(_API_KEY)] = ABSENT
    models: Annotated[list[str | dict[str, str]] | Absent | None, nullable(_MODELS)] = ABSENT
    api: Annotated[str | Absent, _API] = ABSENT


TABLE = Table[sqlite3.Row]("providers", lambda row: row, "provider", "prov")


def check_allowed(group: Group | None) -> None:
    """Raise ApiError `own_providers_disabled` if the accounts of the group may not use own providers."""
    if group is not None and not group.own_providers:
        raise ApiError("own_providers_disabled")


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    """Return a provider as the API shows it, without its key."""
    models = None if row["models"] is None else orjson.loads(row["models"])
    return fields_as_json({**dict(row), "models": models}, "id name base_url api api_key_hint models created_at")


def own_models(row: sqlite3.Row) -> dict[str, str | None] | None:
    """Return the models that the owner chose, each with its kind if the owner named it, or None for all models."""
    return None if row["models"] is None else _kinds(orjson.loads(row["models"]))


def add_provider(
    tx: sqlite3.Connection, account_id: str, fields: Mapping[str, Any], box: KeyBox, now_seconds: float
) -> sqlite3.Row:
    """Store a provider with checked `fields` and return its row.

    Raises ApiError `name_taken`, `quota_exceeded`, `invalid_value` (one too many), `invalid_api_key` (no account).
    """
    quota.check_row(tx, account_id)
    columns = {"id": new_id("prov", now_seconds), "account_id": account_id, "created_at": now_seconds}
    with _refusals():
        row = TABLE.insert(tx, {**columns, "name": fields["name"], "base_url": fields["base_url"]})
    return change_provider(tx, account_id, row["id"], fields, box)


def change_provider(
    tx: sqlite3.Connection, account_id: str, provider_id: str, fields: Mapping[str, Any], box: KeyBox
) -> sqlite3.Row:
    """Change the given fields and return the row. A new scheme, host or port deletes the key unless a new key is given.

    Raises ApiError `not_found`, `name_taken`, `quota_exceeded`.
    """
    row = TABLE.by_id(tx, account_id, provider_id)
    columns = {name: fields.get(name, row[name]) for name in ("name", "base_url", "api")}
    if not same_origin(columns["base_url"], row["base_url"]):
        fields = {"api_key": None, **fields}
    if "models" in fields:
        columns["models"] = None if fields["models"] is None else _models_as_json(fields["models"])
        quota.check_room(tx, account_id, len(columns["models"] or "") - len(row["models"] or ""))
    if "api_key" in fields:
        columns |= sealed_columns(tx, box, account_id, provider_id, fields["api_key"])
    with _refusals():
        return TABLE.update(tx, account_id, provider_id, columns)


def _models_as_json(models: list[Any]) -> str:
    """Return the JSON of models as it is stored, with each name once."""
    kinds = _kinds(models)
    return orjson.dumps([{"id": name, "kind": kind} if kind else name for name, kind in kinds.items()]).decode()


def _refusals() -> contextlib.AbstractContextManager[None]:
    full = ApiError("invalid_value", "An account may have at most 100 providers. Delete one first.")
    taken = ApiError("name_taken", "A provider of yours has this name. Choose another one.", param="name")
    return refusals(providers_count=full, UNIQUE=taken)


def sealed_columns(
    tx: sqlite3.Connection, box: KeyBox, account_id: str, row_id: str, key: str | None
) -> dict[str, Any]:
    """Return the columns with an encrypted API key and its hint, of a provider or of a tool server."""
    if key is None:
        return {"sealed_key": None, "api_key_hint": None}
    hint = f"…{key[-4:]}" if len(key) >= _HINTED_KEY_LENGTH else "…"
    return {"sealed_key": box.seal(account_id, row_id, key, key_check(tx)), "api_key_hint": hint}


def provider_by_name(conn: sqlite3.Connection, account_id: str, name: str) -> sqlite3.Row | None:
    query = "SELECT * FROM providers WHERE account_id = ? AND name = ?"
    row: sqlite3.Row | None = conn.execute(query, (account_id, name)).fetchone()
    return row


def all_providers(conn: sqlite3.Connection, account_id: str) -> list[sqlite3.Row]:
    """Return every provider of the account, oldest first, with `narrowed` instead of the list of models."""
    return conn.execute(
        """
        SELECT id, account_id, name, base_url, api, sealed_key, models IS NOT NULL AS narrowed
        FROM providers WHERE account_id = ? ORDER BY id
        """,
        (account_id,),
    ).fetchall()
