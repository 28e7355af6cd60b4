"""Groups of accounts, from the catalog file: their models, their monthly allowance and their limit of chats.

[access], for accounts without a group, and [[groups]] -> parse() -> Groups.of(account's group) -> Group
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from svc.shapes import Shape, boolean, integer, label, list_of, mapping, matching, record, required, shape_of, text

AUTO = "auto"  # as the choice of an administrator: the account's address finds its group
_MOST = 1_000  # groups, and patterns of one
NAME = matching(re.compile(r"[a-z0-9][a-z0-9_\-]{0,62}"), "a slug: a-z, 0-9, - and _, at most 63 characters", 63)
_MODEL = text(400, blank=False)
_EMAIL = matching(re.compile(r"[^@\s]+@[^@\s]+"), "a pattern of addresses such as *@research.example", 254)
_CLAIMS = list_of(text(200, blank=False), most=_MOST)  # values of the claim that SVC_OAUTH_<NAME>_GROUPS_CLAIM names
# The keys of [access] that are not of a group: the fields of Groups with these names.
_OF_ALL: dict[str, Shape[Any]] = {
    "admin_claims": _CLAIMS,
    "max_days_without_sign_in": integer(1, 36_500),
    "users_may_delete_themselves": boolean,
    "contact": label(200),
}
_OWN_KEYS = ("name", "emails", "claims")  # of a group; [access] has no members
_GROUPS = list_of(mapping, most=_MOST)


@record("Group")
class Group(NamedTuple):
    """What the accounts of a group may do. `name` is "" for those without a group."""

    name: Annotated[str, NAME] = ""
    emails: Annotated[Sequence[str], list_of(_EMAIL, most=_MOST)] = ()
    claims: Annotated[Sequence[str], _CLAIMS] = ()
    models: Annotated[Sequence[str], list_of(_MODEL, most=_MOST)] = ("*",)
    allowance_micros: Annotated[int, integer(0, 10**12)] = 0
    own_providers: Annotated[bool, boolean] = True
    chats_per_minute: Annotated[int | None, integer(1, 1_000_000)] = None
    sharing: Annotated[bool, boolean] = False  # of conversations by link

    def allows(self, model_id: str) -> bool:
        return _any_of(self.models).match(model_id) is not None

    def has(self, email: str) -> bool:
        """Return whether this verified address joins."""
        return _any_of(self.emails).match(email.lower()) is not None


class Groups(NamedTuple):
    """The groups by name, in the order of the file, and `access` for all other accounts.

    A person whose identity provider sends one of `admin_claims` is an administrator. API keys of an account are refused
    if it has not signed in with its identity provider for `max_days_without_sign_in`. `contact` is whom users ask.
    """

    access: Group
    by_name: Mapping[str, Group]
    admin_claims: Sequence[str] = ()
    max_days_without_sign_in: int | None = None
    users_may_delete_themselves: bool = True
    contact: str | None = None

    def of(self, name: str | None) -> Group:
        return self.by_name.get(name or "", self.access)

    def matching(self, email: str) -> str | None:
        """Return the name of the first group that this verified address joins."""
        return next((name for name, group in self.by_name.items() if group.has(email)), None)

    def claimed(self, claims: Sequence[str]) -> str | None:
        """Return the name of the first group that a person with these claims joins."""
        return next((name for name, group in self.by_name.items() if not {*claims}.isdisjoint(group.claims)), None)


def parse(document: Mapping[str, Any]) -> Groups | None:
    """Return the groups of a catalog file, or None if it has none. Raises ApiError and ValueError for a wrong entry."""
    if "access" not in document and "groups" not in document:
        return None
    table = dict(mapping.check(document.get("access", {}), "access"))
    of_all: dict[str, Any] = {
        key: shape.check(table.pop(key), f"access.{key}") for key, shape in _OF_ALL.items() if key in table
    }
    access = _group(table, "access", tuple(name for name in Group._fields if name not in _OWN_KEYS))
    by_name: dict[str, Group] = {}
    for place, table in enumerate(_GROUPS.check(document.get("groups", []), "groups"), 1):
        name = required(table, "name", NAME, f"group {place}")
        if name == AUTO or name in by_name:
            raise ValueError(f"group {place}: the name {name!r} is {'reserved' if name == AUTO else 'used twice'}")
        by_name[name] = _group(table, f"group {name}", Group._fields)
    return Groups(access, by_name, **of_all)


def check_keys(table: Mapping[str, Any], place: str, known: Sequence[str]) -> None:
    """Raise ValueError if the table at `place` of the catalog file has another key than the known ones."""
    for key in table:
        if key not in known:
            raise ValueError(f"{place}: {key!r} is not known; known are {', '.join(known)}")


def _group(table: dict[str, Any], place: str, known: tuple[str, ...]) -> Group:
    check_keys(table, place, known)
    found = shape_of(Group).check(table, place)
    emails, models = tuple(pattern.lower() for pattern in found.emails), tuple(found.models)
    for patterns in (emails, models):
        _any_of(patterns)  # now, because for a thousand groups it takes too long for a request
    return found._replace(emails=emails, models=models)


@lru_cache(2 * (_MOST + 1))  # both of every group, and those of [access]
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)) or "(?!)")
