"""Web search as a hosted tool of Responses and Messages, which becomes a function that the service runs."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from svc.errors import invalid_value
from svc.inference.passed_fields import hosted_family

NAME = "web_search"
MOST_USES = 8
_QUERY = {"type": "string", "description": "What to search for."}
FUNCTION = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Searches the web: up to 8 numbered results, each with title, url, snippet and date.",
        "parameters": {
            "type": "object",
            "properties": {"query": _QUERY},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
USED_UP = "The request allows no further search."
_CITED = re.compile(r"\[(\d{1,4})\]")
_DOMAINS = 100
_DOMAIN_CHARACTERS = 300


class HostedSearch(NamedTuple):
    """What a request says of its searches. Without `allowed`, all domains are; `with_sources` are for Responses."""

    most_uses: int
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    with_sources: bool = False

    def permits(self, url: str) -> bool:
        """Return whether results may have this address: its host, or a domain above it, and the path, are named."""
        parts = urlsplit(url)
        host, path = (parts.hostname or "").lower(), parts.path or "/"

        def is_in(domain: str) -> bool:
            name, _, below = domain.partition("/")
            return bool(host == name or host.endswith(f".{name}")) and path.startswith(f"/{below}")

        if any(map(is_in, self.blocked)):
            return False
        return not self.allowed or any(map(is_in, self.allowed))


def is_search(tool: dict[str, Any]) -> bool:
    return hosted_family(tool.get("type") or "") == NAME


def is_wanted(body: dict[str, Any]) -> bool:
    """Return whether the checked request `body`, of Responses or Messages, has a hosted web search."""
    items = body.get("input")
    later = [item for item in items if item.get("type") == "additional_tools"] if isinstance(items, list) else []
    return any(is_search(tool) for holder in (body, *later) for tool in holder.get("tools") or ())


def of_tools(placed: Iterable[tuple[dict[str, Any], str]]) -> HostedSearch | None:
    """Return what the first search of the tools with their places says, or None. Raises what `of_tool` does."""
    return next((of_tool(tool, param) for tool, param in placed if is_search(tool)), None)


def of_tool(tool: dict[str, Any], param: str) -> HostedSearch:
    """Return what the tool at `param` says. Raises ApiError `invalid_value`."""
    filters = tool.get("filters") if isinstance(tool.get("filters"), dict) else tool
    allowed = _domains(filters, "allowed_domains", param)
    blocked = _domains(filters, "blocked_domains", param)
    if allowed and blocked:
        raise invalid_value("Send allowed_domains or blocked_domains, not both.", f"{param}.allowed_domains")
    most_uses = tool.get("max_uses")
    if most_uses is not None and (type(most_uses) is not int or most_uses < 1):
        raise invalid_value(f"{param}.max_uses must be an integer of at least 1.", f"{param}.max_uses")
    return HostedSearch(MOST_USES if most_uses is None else most_uses, allowed, blocked)


def _domains(filters: Any, name: str, param: str) -> tuple[str, ...]:
    given = filters.get(name) or []
    if not isinstance(given, list) or len(given) > _DOMAINS or not all(isinstance(one, str) for one in given):
        raise invalid_value(f"{param}.{name} must be a list of at most {_DOMAINS} strings.", f"{param}.{name}")
    plain = [re.sub(r"^(?:https?:)?//", "", one[:_DOMAIN_CHARACTERS].strip().lower()) for one in given]
    return tuple(one.removeprefix("*.") for one in plain if one)


def citations(text: str, found: dict[int, dict[str, Any]]) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the places of `[1]` in `text`, from and to, each with the result that has this number."""
    hits = ((hit.start(), hit.end(), found.get(int(hit[1]))) for hit in _CITED.finditer(text))
    return [(start, end, entry) for start, end, entry in hits if entry is not None]


def entries(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a search that has succeeded. A list that was cut to its limit has become a text."""
    return [*result["result"]] if result["ok"] and isinstance(result["result"], list) else []
