"""The fields of the operator's log for a failure of a model server.

A message of a model server may quote the request or the answer, in any form: cut, escaped, without quotes. The log must
not have texts of users. So it gets only the words of `error_words.txt`, names of request fields, and the model's name.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.passed_fields import DEMANDS, OTHER_LIMITS, PASSED

_READ_CHARACTERS, _LOGGED_CHARACTERS = 2000, 300
_QUOTED = re.compile(r"""“[^”]*”|(?<!\w)(["'`])(?:(?!\1).)*\1(?!\w)""", re.DOTALL)
_QUOTED_WORDS = 3  # a longer quote may be a text of the caller, even if the list has all its words
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
# A number is a size or a status, or it may be the caller's.
_WORD = re.compile(
    r"(?P<number>\d{1,9}(?:\.\d{1,3})?(?=\s?(?:tokens?|bytes|characters|[kmg]i?b|seconds?|minutes?|m?s|images|messages)\b)"
    r"|(?<=status )\d{3}\b|(?<=status code )\d{3}\b|(?<=code: )\d{3}\b)|(?P<word>\w+)|(?P<sign>[^\w\s]+)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[-.,:;()\[\]{}'\"`/=<>|*!?%_]{1,3}")
_HIDDEN = re.compile(r"…\W*…")
_TOKEN = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


def log_fields(fault: UpstreamFault, *, byok: bool, model_name: str) -> dict[str, Any]:
    """Return what the operator's log shows of a fault. A user's own server (`byok`) is not the operator's to repair."""
    if fault.kind != "status":
        return {"upstream_fault": fault.kind}
    fields: dict[str, Any] = {"upstream_fault": fault.kind, "upstream_status": fault.status}
    error = fault.error
    if byok or not error:
        return fields
    for name in ("code", "type"):  # constants of the model server
        value = error.get(name)
        if isinstance(value, str) and _TOKEN.fullmatch(value):
            fields[f"upstream_{name}"] = value
    for name, value in (("param", error.get("param")), ("error", error.get("message"))):
        if isinstance(value, str) and value:
            fields[f"upstream_{name}"] = without_callers_words(value, model_name)
    return fields


def without_callers_words(text: str, model_name: str) -> str:
    """Return the beginning of `text`, with an ellipsis for each part that may be a user's."""
    known = _known_words() | {*re.findall(r"\w+", model_name.casefold())}
    text = _ESCAPE.sub("…", text[:_READ_CHARACTERS])
    text = _QUOTED.sub(lambda quoted: "…" if len(quoted[0].split()) > _QUOTED_WORDS else quoted[0], text)
    words = hidden = 0

    def kept(found: re.Match[str]) -> str:
        nonlocal words, hidden
        words += found["sign"] is None
        word = found[0].casefold()
        is_known = found["number"] or (
            _SIGNS.fullmatch(word) if found["sign"] else word in known or known.issuperset(word.split("_"))
        )
        hidden += not is_known
        return found[0] if is_known else "…"

    text = _HIDDEN.sub("…", " ".join(_WORD.sub(kept, text).split()))
    if 2 * hidden > words:  # more a quote than a message
        return "…"
    return text if len(text) <= _LOGGED_CHARACTERS else f"{text[: _LOGGED_CHARACTERS - 1]}…"


@cache
def _known_words() -> frozenset[str]:
    listed = Path(__file__).with_name("error_words.txt").read_text().split()
    return frozenset((*listed, *PASSED, *DEMANDS, *OTHER_LIMITS))
