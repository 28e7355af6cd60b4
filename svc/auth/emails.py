"""Email addresses: which ones an account may have, and when two of them are the same."""

import re
import unicodedata
from typing import Any

from svc.shapes import Shape, refusal

LONGEST = 254  # RFC 5321 allows no longer path
# Not accepted: characters with a meaning in mail headers, address literals in brackets, an empty part between dots (RFC
# 5322), labels that begin or end with a hyphen (RFC 1123), controls, invisible characters, other forms of @.
# U+3002 separates labels as well (RFC 3490, 3.1).
_HIDDEN = (
    "\\u0000-\\u0020\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u2069\\ufe6b\\ufeff\\uff20"
)
_ATOM = f'[^\\s@<>()\\[\\]\\\\,;:".{_HIDDEN}]+'
_WORD = _ATOM.replace("[^", "[^\\-\\u3002")
_LABEL = f"{_WORD}(?:-+{_WORD})*"
ADDRESS_FORM = re.compile(f"^{_ATOM}(?:\\.{_ATOM})*@{_LABEL}(?:[.\\u3002]{_LABEL})*$")
# Printable for Python, but blank by default (Default_Ignorable_Code_Point, and the empty Braille pattern).
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_EXPECTED = "an address such as ada@example.com"


def check_email(value: Any, param: str = "email") -> str:
    """Return `value` if it is an address. Raises ApiError `missing_field` or `invalid_value`.

    The normalized form must be an address, too: a full-width @ becomes a second @.
    """
    if not isinstance(value, str) or not 3 <= len(value) <= LONGEST or not ADDRESS_FORM.fullmatch(value):
        raise refusal(value, param, _EXPECTED)
    # Formats, separators and unassigned code points are not printable: they are invisible, or change the direction.
    if (
        not value.isprintable()
        or _UNSEEN.search(value)
        or not ADDRESS_FORM.fullmatch(unicodedata.normalize("NFKC", value))
    ):
        raise refusal(value, param, _EXPECTED)
    return value


EMAIL = Shape(
    check_email,
    _EXPECTED,
    {
        "type": "string",
        "description": "One account per email address, whatever its case. Invisible characters, characters that "
        "change the direction of the text, a second @ in compatibility form, and address literals are refused.",
        "minLength": 3,
        "maxLength": LONGEST,
        "pattern": ADDRESS_FORM.pattern,
        "examples": ["ada@example.com"],
    },
).named("Email")


def lookalike_key(email: str) -> str:
    """Return one form for all addresses that people could confuse, so that only one of them gets an account.

    It is empty for an address that is too long for an account: some long texts take very long to normalize.
    """
    return unicodedata.normalize("NFKC", email).casefold() if len(email) <= LONGEST else ""


def same_email(one: str, other: str) -> bool:
    """Return whether two addresses are the same mailbox: they may differ in the case of ASCII letters only."""
    return one.encode().lower() == other.encode().lower()  # bytes.lower() changes ASCII letters only
