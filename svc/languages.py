"""The languages of the application: which one a request asks for, and the texts of pages and mails."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers

from svc.cookies import cookie

LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "ja", "zh", "ar")
RIGHT_TO_LEFT = ("ar",)
COOKIE = "svc_language"  # the page writes it: the account's setting, or the choice before the sign-in
FOLDER = Path(__file__).parent / "translations"
_RANGE = re.compile(r"[ \t]*([A-Za-z*]{1,8})(?:-[A-Za-z0-9-]*)?[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?)[ \t]*)?")
_MOST_RANGES = 50


def requested(headers: Headers) -> str:
    """Return the language of a request: that of the cookie, else of Accept-Language, else English."""
    chosen = cookie(headers.getlist("cookie"), COOKIE)
    return chosen if chosen in LANGUAGES else accepted(headers.get("accept-language", ""))


def accepted(header: str) -> str:
    """Return the language with the highest weight in an Accept-Language header (RFC 9110, 12.5.4), or English."""
    ranges = [_RANGE.fullmatch(part) for part in header.split(",", _MOST_RANGES)[:_MOST_RANGES]]
    weights = [(match[1].lower(), 1.0 if match[2] is None else float(match[2])) for match in ranges if match]
    known = [(weight, name) for name, weight in weights if name in LANGUAGES and weight > 0]
    return max(known, key=lambda one: one[0], default=(0, "en"))[1]


def direction(language: str) -> str:
    return "rtl" if language in RIGHT_TO_LEFT else "ltr"


@functools.cache
def texts(language: str) -> dict[str, Any]:
    """Return the sections of `translations/<language>.toml`."""
    from tomllib import loads  # late: the start needs no texts

    return loads((FOLDER / f"{language}.toml").read_text())


def message(language: str, code: str, english: str) -> str:
    """Return the sentence for an error. Without one, that is the `english` message."""
    sentence: str = texts(language)["errors"].get(code, english)
    return sentence


def filled(text: str, values: Mapping[str, object]) -> str:
    """Insert values at their names in braces. Other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), text)


def number(language: str, written: str) -> str:
    """Write a number such as `1,234.50` as the language does."""
    shared = texts(language)["shared"]
    marks = {".": shared["point"], ",": shared["comma"]}
    return re.sub("[.,]", lambda match: marks[match[0]], written)


def money(language: str, amount: str) -> str:
    """Write an amount such as `$1,234.50` as the language does."""
    written: str = texts(language)["shared"]["dollars"].format(amount=number(language, amount.lstrip("$")))
    return written
