"""E-mail addresses: which ones an account may have, and when two of them are the same."""

import re
import unicodedata
from typing import Any

from svc.shapes import refusal

LONGEST = 254  # RFC 5321 allows no longer path
# Characters with a meaning in a mail header or an address list are not accepted; a domain in square brackets would be an address
# literal. There is no empty part between dots (RFC 5322, dot-atom); no label begins or ends with a hyphen (RFC 1123). U+3002
# separates labels as well (RFC 3490, 3.1).
_ATOM = r"[^\s@<>()\[\]\\,;:\".\x00-\x20\x7f-\x9f]+"
_WORD = _ATOM.replace("[^", "[^\\-\u3002")
_LABEL = f"{_WORD}(?:-+{_WORD})*"
_FORM = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:[.\u3002]{_LABEL})*")
# What shows nothing, or turns the direction of what follows: Unicode's formats, separators and unassigned code points, and those
# letters, marks and signs that are blank by default (Default_Ignorable_Code_Point, and the empty Braille pattern).
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def check_email(value: Any, param: str = "email") -> str:
    """`value` as an address of at most 254 characters. Raises ApiError `missing_field` or `invalid_value`.

    What stands for another character must be well-formed too: a full-width @ is a second one once it is normalized.
    """
    if not isinstance(value, str) or not 3 <= len(value) <= LONGEST or not _well_formed(value):
        raise refusal(value, param, "an address such as ada@example.com")
    return value


def _well_formed(text: str) -> bool:
    return (
        _FORM.fullmatch(text) is not None
        and _UNSEEN.search(text) is None
        and not any(unicodedata.category(character) in _UNSEEN_CATEGORIES for character in text)
        and _FORM.fullmatch(unicodedata.normalize("NFKC", text)) is not None
    )


def lookalike_key(email: str) -> str:
    """One form for all addresses that a person could take for one another; it keeps a second such account from being made.

    Nothing for an address that no account can have: normalizing takes time beyond all measure for some long texts.
    """
    return unicodedata.normalize("NFKC", email).casefold() if len(email) <= LONGEST else ""


def same_email(one: str, other: str) -> bool:
    """Whether mail to both reaches one person: the case of ASCII letters is all in which they may differ."""
    return _ascii_lower(one) == _ascii_lower(other)


def _ascii_lower(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)
