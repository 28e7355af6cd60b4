"""Parse a cookie in one pass, without unquoting: the standard library's unquoting takes quadratic time."""

from collections.abc import Iterable


def cookie(headers: Iterable[str], name: str) -> str | None:
    """Return the value of the cookie `name` in the values of a request's `Cookie` headers (RFC 6265, 4.2.1).

    Return None if it is missing or occurs twice: which of the two is ours is unknown.
    """
    found = [
        value
        for header in headers
        for key, separator, value in (pair.strip(" \t").partition("=") for pair in header.split(";"))
        if separator and key == name
    ]
    return found[0] if len(found) == 1 else None
