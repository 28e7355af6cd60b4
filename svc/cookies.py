"""Reading a cookie of ours: one pass over the header, no unquoting. The standard library's unquoting takes quadratic time."""

from collections.abc import Iterable


def cookie(headers: Iterable[str], name: str) -> str | None:
    """The value of the cookie `name` in the values of a request's `Cookie` headers (RFC 6265, 4.2.1: `name=value; name=value`).

    None where it is missing, and where it stands twice: nobody could tell which of the two is ours.
    """
    found = [
        value
        for header in headers
        for key, separator, value in (pair.strip(" \t").partition("=") for pair in header.split(";"))
        if separator and key == name
    ]
    return found[0] if len(found) == 1 else None
