"""Tables whose rows belong to accounts: rows by id, pages of lists, errors for broken rules, and deletion in slices.

Between two slices, of some milliseconds, other writes run.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from svc.errors import ApiError, invalid_value
from svc.ids import fields_as_json, made_at

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
SOME_SECONDS = 0.005
_OVERWRITTEN_BYTES = 1_000_000
PAGE_CHARACTERS = 2_000_000
_MOST_NUMBER = 2**63 - 1


class Page(NamedTuple, Generic[T]):
    """Part of a list, and whether more of it follows."""

    items: list[T]
    has_more: bool

    def as_json(self) -> dict[str, Any]:
        return {"object": "list", "data": self.items, "has_more": self.has_more}

    def of(self, make: Callable[[T], U]) -> "Page[U]":
        return Page([make(item) for item in self.items], self.has_more)


@dataclass(frozen=True)
class Table(Generic[R]):
    """A table with the columns `id` and `account_id`. The module that owns it declares it.

    `noun` names a row in error messages, and its id begins with `prefix`. Lists have the columns `listed` in descending
    `order`; the default is the order of insertion, which does not depend on the clock. The table `places` has the
    `order` of deleted rows. A statement changes at most `at_once` rows: 1 for rows that can have 100 KB. `texts` are
    the columns that can have over a MB.
    """

    name: str
    make: Callable[[sqlite3.Row], R]
    noun: str
    prefix: str = ""
    order: tuple[str, ...] = ("rowid",)
    places: str | None = None
    at_once: int = 64
    listed: str = "*"
    texts: tuple[str, ...] = ()

    def by_id(self, conn: sqlite3.Connection, account_id: str, row_id: str, param: str | None = None) -> R:
        """Return a row of the account. Raises ApiError `not_found`; `param` is the field that held the id."""
        query = f"SELECT * FROM {self.name} WHERE account_id = ? AND id = ?"
        row = conn.execute(query, (account_id, row_id)).fetchone()
        return self._made(row, param)

    def _made(self, row: sqlite3.Row | None, param: str | None = None) -> R:
        if row is None:
            raise ApiError("not_found", f"There is no such {self.noun}.", param=param)
        return self.make(row)

    def page(
        self,
        conn: sqlite3.Connection,
        account_id: str | None,
        limit: int,
        after: str | None,
        /,
        **narrowed: str | int | list[int] | tuple[float, float] | None,
    ) -> Page[R]:
        """Return up to `limit` rows of the account, or of all for None, after the one with the id `after`.

        `narrowed` keeps the rows whose column equals a text, is in a list, or is from one number
        to below another. None does not narrow. Its names must be constants. A page of long rows has fewer than
        `limit` rows, so that it fits in memory, and at least one. Raises ApiError `invalid_value` if `after` is no id
        of such a row. Its row may be deleted.
        """
        values: dict[str, Any] = {"account_id": account_id, "after": after, "most": limit + 1}
        owned = "true" if account_id is None else "account_id = :account_id"
        further = "" if after is None else self._further(conn, owned, after, values)
        own = f"FROM {self.name} WHERE {owned}"
        for column, value in narrowed.items():
            if isinstance(value, list):
                values[column] = str(value)
                own += f" AND {column} IN (SELECT value FROM json_each(:{column}))"
            elif isinstance(value, tuple):
                values[f"{column}_from"], values[f"{column}_to"] = value
                own += f" AND {column} >= :{column}_from AND {column} < :{column}_to"
            elif value is not None:
                values[column] = value
                own += f" AND {column} = :{column}"
        descending = ", ".join(f"{column} DESC" for column in self.order)
        items: list[R] = []
        characters = 0
        for row in conn.execute(f"SELECT {self.listed} {own}{further} ORDER BY {descending} LIMIT :most", values):
            if len(items) == limit or characters > PAGE_CHARACTERS:
                return Page(items, has_more=True)
            items.append(self.make(row))
            characters += sum(len(value) for value in row if isinstance(value, str | bytes))
        return Page(items, has_more=False)

    def _further(self, conn: sqlite3.Connection, owned: str, after: str, values: dict[str, Any]) -> str:
        """Return the condition of the rows after the one with the id `after`, and add its values.

        A deleted row looks like an unknown one. It has the place that its id shows: in the order of insertion, or
        as if it was never used after that.
        """
        order = ", ".join(self.order)
        for table in (self.name, self.places) if self.places else (self.name,):
            if place := conn.execute(f"SELECT {order} FROM {table} WHERE {owned} AND id = :after", values).fetchone():
                break
        else:
            made_seconds = made_at(after, self.prefix)
            if made_seconds is None:
                raise invalid_value("after must be the id of an item of this list.", "after")
            if "updated_at" not in self.order:
                return " AND +id < :after"  # The plus sign keeps SQLite from reading the rows of all accounts.
            unused = {"pinned": 0, "updated_at": made_seconds, "number": _MOST_NUMBER, "id": after}
            place = [unused[column] for column in self.order]
        values |= {f"after_{column}": value for column, value in zip(self.order, place, strict=True)}
        return f" AND ({order}) < ({', '.join(f':after_{column}' for column in self.order)})"

    def insert(self, tx: sqlite3.Connection, columns: Mapping[str, Any]) -> R:
        """Store a row and return it. Raises sqlite3.IntegrityError, see `refusals`."""
        values = ", ".join(f":{column}" for column in columns)
        statement = f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({values}) RETURNING *"
        return self.make(tx.execute(statement, columns).fetchone())

    def update(self, tx: sqlite3.Connection, account_id: str, row_id: str, columns: Mapping[str, Any]) -> R:
        """Set `columns` of a row of the account, at least one, and return the row. Raises ApiError `not_found`."""
        assigned = ", ".join(f"{column} = :{column}" for column in columns)
        statement = f"UPDATE {self.name} SET {assigned} WHERE account_id = :account_id AND id = :id RETURNING *"
        values = {**columns, "account_id": account_id, "id": row_id}
        return self._made(tx.execute(statement, values).fetchone())

    def sealed(self, conn: sqlite3.Connection) -> list[sqlite3.Row]:
        """Return the owner, the id and the encrypted key of the rows of all accounts that have one."""
        query = f"SELECT account_id, id, sealed_key FROM {self.name} WHERE sealed_key IS NOT NULL"
        return conn.execute(query).fetchall()

    def delete(self, tx: sqlite3.Connection, account_id: str, row_id: str) -> None:
        """Delete a row of the account. Raises ApiError `not_found`."""
        statement = f"DELETE FROM {self.name} WHERE account_id = ? AND id = ?"
        if not tx.execute(statement, (account_id, row_id)).rowcount:
            raise ApiError("not_found", f"There is no such {self.noun}.")

    def delete_some(self, tx: sqlite3.Connection, account_id: str) -> bool:
        """Delete rows of the account for 5 ms; return whether there are more."""
        own = f"SELECT rowid FROM {self.name} WHERE account_id = ?1 LIMIT ?2"
        return run_some(f"DELETE FROM {self.name} WHERE rowid IN ({own})", tx, account_id, at_once=self.at_once)

    def delete_row(self, tx: sqlite3.Connection, account_id: str, rowid: int) -> bool:
        """Delete a row of the account, or overwrite the next MB of its `texts`. Return whether it is deleted.

        SQLite overwrites what it deletes, 3 ms for each MB. So texts of more than a MB are overwritten before, and then
        shortened without that.
        """
        columns = ", ".join(f"ifnull(length(CAST({text} AS BLOB)), 0)" for text in self.texts)
        query = f"SELECT {columns} FROM {self.name} WHERE account_id = ? AND rowid = ?"
        sizes = tx.execute(query, (account_id, rowid)).fetchone() or ()
        if sum(sizes) > _OVERWRITTEN_BYTES:
            texts = [text for text, size in zip(self.texts, sizes, strict=True) if size]
            if any(_overwrite_some(tx, self.name, text, rowid) for text in texts):
                return False
            self._shorten(tx, account_id, rowid, texts)
        tx.execute(f"DELETE FROM {self.name} WHERE account_id = ? AND rowid = ?", (account_id, rowid))
        return True

    def _shorten(self, tx: sqlite3.Connection, account_id: str, rowid: int, texts: list[str]) -> None:
        """Free the pages of overwritten texts. A statement that shortens a row frees no page with other rows."""
        shortened = ", ".join(f"{text} = 'x'" for text in texts)
        tx.execute("PRAGMA secure_delete = FAST")
        try:
            tx.execute(f"UPDATE {self.name} SET {shortened} WHERE account_id = ? AND rowid = ?", (account_id, rowid))
        finally:
            tx.execute("PRAGMA secure_delete = ON")

    def detach_some(self, tx: sqlite3.Connection, account_id: str, project_id: str) -> bool:
        """Take rows out of a project that is being deleted, for 5 ms; return whether there are more."""
        filed = f"SELECT rowid FROM {self.name} WHERE account_id = ?1 AND project_id = ?3 LIMIT ?2"
        statement = f"UPDATE {self.name} SET project_id = NULL WHERE rowid IN ({filed})"
        return run_some(statement, tx, account_id, project_id, at_once=self.at_once)


def json_of(names: str) -> Callable[[sqlite3.Row], dict[str, Any]]:
    """Return the `make` of a Table whose rows have these fields in the API."""
    return lambda row: fields_as_json(dict(row), names)


def storable(text: str, most: int) -> str:
    """Return the first `most` characters. A model's answer may hold half an emoji, which UTF-8 cannot encode."""
    return text[:most].encode("utf-8", "replace").decode()


@contextlib.contextmanager
def refusals(project_id: str | None = None, **limits: Exception) -> Iterator[None]:
    """Raise ApiError if schema.sql refuses what the block writes: one of `limits`, by the name of the broken rule.

    If a row refers to a missing one, that is its project, or without a project its account.
    """
    try:
        yield
    except sqlite3.IntegrityError as error:
        for rule, limit in limits.items():
            if rule in str(error):
                raise limit from None
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_FOREIGNKEY":
            raise
        if project_id is None:
            raise ApiError("invalid_api_key") from None
        raise ApiError("not_found", "There is no such project.", param="project_id") from None


# --- deletion in slices


def delete_found(query: str, delete: Callable[..., object], tx: sqlite3.Connection, *values: float | str) -> bool:
    """Call `delete(tx, *row)` with the first row of `query` for `values`, for 5 ms; return whether more may be left."""
    ends = time.monotonic() + SOME_SECONDS
    while row := tx.execute(query, values).fetchone():
        delete(tx, *row)
        if time.monotonic() > ends:
            return True
    return False


def run_some(statement: str, tx: sqlite3.Connection, account_id: str, *more: str, at_once: int = 64) -> bool:
    """Repeat a statement that deletes up to ?2 rows of the account ?1 for 5 ms. Return whether rows are left.

    `at_once` is the maximum of ?2. Use 1 for rows that can have 100 KB.
    """
    ends, rows = time.monotonic() + SOME_SECONDS, 1
    while tx.execute(statement, (account_id, rows, *more)).rowcount == rows:
        if time.monotonic() > ends:
            return True
        rows = min(rows * 2, at_once)
    return False


def _overwrite_some(tx: sqlite3.Connection, table: str, text: str, rowid: int) -> bool:
    # For long texts only: Python 3.11 keeps 88 bytes of each blob that was opened as long as the connection.
    with tx.blobopen(table, text, rowid) as blob:
        for start in range(0, len(blob), _OVERWRITTEN_BYTES):
            blob.seek(start)
            if blob.read(1_000).strip(b"\0"):
                blob.seek(start)
                blob.write(bytes(min(_OVERWRITTEN_BYTES, len(blob) - start)))
                return True
    return False
