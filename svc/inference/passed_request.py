"""A request in the format of its model server: the server gets the caller's bytes, but for what this service owns.

the caller's JSON -> PassedRequest.for_model(): the wanted body -> PassedRequest.json_of(): the bytes to send

Owned are the model's name, the output limit, `store`, and hosted tools without a price. Fields that a model with a
price may not have are left out, and so are those that would make a proxy ask another server.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson

from svc.errors import ApiError, invalid_value
from svc.inference import cache_marks
from svc.inference.catalog import Model
from svc.inference.chat_request import Ignored, drop_routing_fields, other_price
from svc.inference.passed_fields import hosted_family, words
from svc.inference.server_formats import seals
from svc.json_splice import spliced, with_only

# The fields whose cost the service can settle: https://platform.openai.com/docs/api-reference/responses/create,
# https://platform.claude.com/docs/en/api/messages/create. Others, such as `service_tier`, `speed`, `inference_geo` and
# `container`, change prices, or name what the vendor keeps under the operator's key.
_FIELDS_OF_KNOWN_COST = {
    "responses": words(
        """
        model input instructions stream stream_options max_output_tokens temperature top_p presence_penalty
        frequency_penalty top_logprobs tools tool_choice parallel_tool_calls max_tool_calls text reasoning metadata user
        store include truncation safety_identifier prompt_cache_key prompt_cache_retention client_metadata background
        previous_response_id conversation prompt
        """
    ),
    "messages": words(
        """
        model max_tokens messages system tools tool_choice thinking output_config output_format stop_sequences
        temperature top_p top_k stream metadata cache_control context_management mcp_servers thread compaction
        """
    ),
}
_LIMIT_OF = {"responses": "max_output_tokens", "messages": "max_tokens"}
# Tools that the client runs.
_CLIENT_TOOLS = {"responses": (None, "function", "custom", "namespace"), "messages": (None, "custom")}
_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_USES = 8  # of a hosted tool in the hold, if the request has no `max_uses`
_ANY_TOOL = ("required", "any")
_SEALED = frozenset({"reasoning", "thinking", "redacted_thinking"})
_CHOICES = frozenset({"auto", "any", "none", "function", "custom"})

Body = dict[str, Any]
_Filter = Callable[[list[Any]], list[Any]]  # of tools


class PassedRequest:
    """A checked request `body` in the format `api`, whose JSON is `text`.

    `referenced(id, param)` returns the JSON of the item that an `item_reference` names, for an operator's server.
    `as_chat(model)` translates the request for a fallback whose server has another format, and `headers` go along.
    `ignored` is what `first_model` does not get. Raises ApiError for a demand that it must not get.

    `text` has the caller's bytes, `body` their fields, `wanted` these without unreadable images, and `_edited` what the
    server of `first_model` gets.

    A chat request is edited elsewhere, and only keeps its bytes here.
    """

    headers: tuple[tuple[bytes, bytes], ...] = ()
    as_chat: Callable[[Model], Body] | None = None
    ignored = Ignored()
    hosted_micros = 0

    def __init__(
        self,
        api: str,
        text: bytes,
        body: Body,
        first_model: Model,
        *,
        wanted: Body | None = None,
        referenced: Callable[[str, str], bytes] | None = None,
        as_chat: Callable[[Model], Body] | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.api, self.text, self.body = api, text, body
        if api == "chat":
            return
        self.headers = headers
        self.as_chat = as_chat
        self._wanted = body if wanted is None else wanted
        self._referenced = referenced
        self._first_model = first_model
        self._edited, self.ignored = self._for_server(first_model)
        self.hosted_micros = self._hosted_micros() if first_model.hosted_tools else 0

    @property
    def skeleton(self) -> Body:
        """A chat request with the sizes of this one: its texts, its limit, and whether it wants a stream."""
        body = self.body
        given = body.get("input") if self.api == "responses" else body["messages"]
        items = given if isinstance(given, list) else [{"role": "user", "content": given}]
        system = body.get("instructions") or body.get("system")
        messages = [{"role": "system", "content": system}, *items] if system else items
        chat = {"messages": messages, "tools": body.get("tools"), "stream": bool(body.get("stream"))}
        chat["stop"] = body.get("stop_sequences")  # a fallback may have no stop sequences
        limit = body.get(_LIMIT_OF[self.api])
        return chat if limit is None else {**chat, "max_tokens": limit}

    def estimated_from(self) -> Body:
        """Return the chat request whose input is estimated if the model server does not count it."""
        with contextlib.suppress(ApiError):
            if self.as_chat is not None:
                return self.as_chat(self._first_model)
        return self.skeleton

    @property
    def added(self) -> Collection[str]:
        """The names of the fields that this service adds, and that a model server may refuse."""
        return ("store",) if self._edited.keys() - self.body.keys() else ()

    def _hosted_micros(self) -> int:
        """Return the most that the request's hosted tools cost at the model that was asked for."""
        prices, total = self._first_model.hosted_tools, 0
        items = self._edited.get("input") if self.api == "responses" else None
        holders = [self._edited, *(filter(_holds_tools, items) if isinstance(items, list) else ())]
        for tool in [tool for holder in holders for tool in holder.get("tools") or ()]:
            uses = tool.get("max_uses")
            uses = uses if type(uses) is int and uses >= 0 else _USES
            total += uses * prices.get(hosted_family(tool.get("type") or "") or "", 0)
        return total

    def for_model(self, model: Model, limits: Mapping[str, int]) -> Body:
        """Return the body for `model`, whose server has this format. Raises ApiError for what it must not get."""
        edited = self._edited if model is self._first_model else self._for_server(model)[0]
        limit = {_LIMIT_OF[self.api]: min(limits.values())} if limits else {}
        return {**edited, "model": model.name, **limit}

    def json_of(self, body: Body) -> bytes:
        """Return the JSON of `body`, with the caller's bytes for all that is the same. Work for a thread if it is
        large.
        """
        given, model = self.body, body["model"]
        if "model" in given and body == {**given, "model": model}:  # like most chat requests
            renamed = with_only(self.text, "model", model)
            if renamed is not None:
                return renamed
        return spliced(self.text, given, body)

    def forget(self) -> None:
        """Release the memory of the text: no other request follows."""
        self.text = b""

    def _for_server(self, model: Model) -> tuple[Body, Ignored]:
        body, fields, tools = self._wanted, dict[str, None](), dict[str, None]()
        if self.text.find(seals.PREFIX.encode()) >= 0:
            body = _with_seals_of(self.api, body)
        if model.byok:
            return body, Ignored()
        if self._referenced:
            body = _with_items(body, self._referenced)
        if model.paid:
            body = _with_known_cost(self.api, body, model, fields)
            if self.api == "messages":
                body = cache_marks.for_messages(body, model)
        if "tools" not in model.extra_fields:
            body = _without_unpriced_tools(self.api, body, model, tools)
        body = drop_routing_fields(body, (), model.extra_fields, fields)
        if self.api == "responses":
            body["store"] = False  # the vendor would keep what one account asked under the operator's key
        return body, Ignored(tuple(fields), tuple(tools))


def _with_known_cost(api: str, body: Body, model: Model, ignored: dict[str, None]) -> Body:
    known = _FIELDS_OF_KNOWN_COST[api] | model.extra_fields
    kept = {name: value for name, value in body.items() if name in known}
    management = kept.get("context_management")
    if "context_management" not in model.extra_fields and not _only_clears(management):
        del kept["context_management"]  # a summary is an answer of its own, which `usage` does not count
    ignored.update((name, None) for name, value in body.items() if name not in kept and value is not None)
    return kept


def _only_clears(management: Any) -> bool:
    edits = management.get("edits") if isinstance(management, dict) else management
    kinds = [edit.get("type") if isinstance(edit, dict) else None for edit in edits] if isinstance(edits, list) else []
    return all(isinstance(kind, str) and kind.startswith("clear_") for kind in kinds)


def _with_items(body: Body, referenced: Callable[[str, str], bytes]) -> Body:
    """Return `body` with items in the place of the references to them."""
    if not isinstance(items := body.get("input"), list):
        return body
    found: dict[int, bytes | None] = {}
    known = set()
    for place, item in enumerate(items):
        if item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item):
            param = f"input[{place}].id"
            if item["id"] in known:  # a small request could otherwise become gigabytes
                raise invalid_value(f"Duplicate item found with id {item['id']!r}.", param)
            known.add(item["id"])
            found[place] = _item_for_server(referenced(item["id"], param))
    if not found:
        return body
    placed = [found.get(place, item) for place, item in enumerate(items)]
    return {**body, "input": [item for item in placed if item is not None]}


# --- reasoning that other servers have sealed, in the answers of fallbacks and of other models


def _item_for_server(item: bytes) -> bytes | None:
    if item.find(seals.PREFIX.encode()) < 0:
        return item
    kept = seals.for_server("responses", orjson.loads(item))
    return None if kept is None else orjson.dumps(kept)


def _with_seals_of(api: str, body: Body) -> Body:
    if api == "responses":
        items = body.get("input")
        return {**body, "input": _kept(api, items)} if isinstance(items, list) else body
    turns = [
        {**turn, "content": _kept(api, turn["content"])} if isinstance(turn["content"], list) else turn
        for turn in body["messages"]
    ]
    return {**body, "messages": [turn for turn in turns if turn["content"] != []]}


def _kept(api: str, parts: list[Body]) -> list[Body]:
    found = [seals.for_server(api, part) if part.get("type") in _SEALED else part for part in parts]
    return [part for part in found if part is not None]


# --- tools


def _without_unpriced_tools(api: str, body: Body, model: Model, ignored: dict[str, None]) -> Body:
    """Return `body` without hosted tools that have no price. Raises ApiError if the request demands one."""
    of_client = _CLIENT_TOOLS[api]

    def without_unpriced(tools: list[Any]) -> list[Any]:
        known = model.hosted_tools
        return [tool for tool in tools if tool.get("type") in of_client or hosted_family(tool["type"]) in known]

    items = body.get("input") if api == "responses" else None
    if isinstance(items, list) and any(map(_holds_tools, items)):
        found = [{**item, "tools": without_unpriced(item["tools"])} if _holds_tools(item) else item for item in items]
        _note_ignored(items, found, ignored)
        body = {**body, "input": found}
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    kept = without_unpriced(tools)
    if isinstance(choice, dict):
        choice = _allowed_choice(choice, tools, kept, without_unpriced)
    if tools and not kept and (choice["type"] if isinstance(choice, dict) else choice) in _ANY_TOOL:
        raise other_price("tool_choice")
    if len(kept) < len(tools):
        _note_ignored([body], [{"tools": kept}], ignored)
        if not kept:
            return {name: body[name] for name in body if name not in _OF_TOOLS}
        body = {**body, "tools": kept}
    return body if choice == body.get("tool_choice") else {**body, "tool_choice": choice}


def _holds_tools(item: Any) -> bool:
    return type(item) is dict and item.get("type") == "additional_tools"


def _note_ignored(holders: list[Any], kept: list[Any], ignored: dict[str, None]) -> None:
    for holder, rest in zip(holders, kept, strict=True):
        if isinstance(holder, dict) and len(rest.get("tools") or ()) < len(holder.get("tools") or ()):
            gone = [tool for tool in holder["tools"] if tool not in rest["tools"]]
            ignored.update((tool["type"], None) for tool in gone)


def _allowed_choice(choice: Any, tools: list[Any], kept: list[Any], without_unpriced: _Filter) -> Any:
    """Return the choice of a tool without hosted ones that have no price. Raises ApiError if it demands one."""
    kind = choice["type"]
    if kind == "allowed_tools":
        allowed = without_unpriced(choice["tools"])
        if len(allowed) == len(choice["tools"]):
            return choice
        if not allowed and choice["mode"] == "required":
            raise other_price("tool_choice")
        return {**choice, "tools": allowed} if allowed else "none"
    if kind == "tool":
        foreign = {tool.get("name") for tool in tools} - {tool.get("name") for tool in kept}
        demanded = choice["name"] in foreign
    else:
        demanded = kind not in _CHOICES and not without_unpriced([choice])
    if demanded:
        raise other_price("tool_choice")
    return choice
