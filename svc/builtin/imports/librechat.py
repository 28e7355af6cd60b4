"""LibreChat: a conversation with `messages`, a list or with `children`, each with a `parentMessageId`."""

import json
import re
from typing import Any

from svc.builtin.imports.chats import (
    Chat,
    Said,
    count_of,
    dict_of,
    dicts_of,
    file_of,
    text_of,
    time_of,
    tool_call,
    tool_result,
)

_THINKING = re.compile(r":::thinking\n(.*?)\n:::\s*", re.DOTALL)


def chat_of(export: dict[str, Any]) -> Chat:
    options = dict_of(export.get("options"))
    listed = export.get("messagesTree") or export.get("messages")
    if isinstance(listed, dict):  # the form of a tree with one root
        listed = listed.get("children") or [listed]
    messages: list[Said] = []
    waiting: list[tuple[dict[str, Any], str | None]] = [(one, None) for one in reversed(dicts_of(listed))]
    while waiting:
        message, above = waiting.pop()
        said = _said(message, above, f"#{len(messages)}")
        messages.append(said)
        waiting += [(child, said.id) for child in reversed(dicts_of(message.get("children")))]
    return Chat(
        id=text_of(export.get("conversationId")),
        title=text_of(export.get("title")),
        created=time_of(export.get("createdAt")),
        updated=time_of(export.get("updatedAt")),
        messages=messages,
        pinned=True in (export.get("pinned"), options.get("pinned")),
        archived=True in (export.get("isArchived"), options.get("isArchived")),
    )


def _said(message: dict[str, Any], above: str | None, place: str) -> Said:
    by_user = message.get("isCreatedByUser")
    is_user = by_user if isinstance(by_user, bool) else text_of(message.get("sender")).lower() == "user"
    said = Said(
        text_of(message.get("messageId")) or place,
        above or text_of(message.get("parentMessageId")) or None,
        "user" if is_user else "assistant",
        created=time_of(message.get("createdAt")),
        model=None if is_user else text_of(message.get("model")) or None,
    )
    if not is_user:
        said.details["output_tokens"] = count_of(message.get("tokenCount"))
    texts = [_read(part, said) for part in dicts_of(message.get("content"))]
    said.text = "\n\n".join(filter(None, texts)) or text_of(message.get("text"))
    said.reasoning = "\n\n".join(filter(None, (said.reasoning, *_THINKING.findall(said.text))))
    said.text = _THINKING.sub("", said.text)
    files = dicts_of(message.get("files")) or dicts_of(message.get("attachments"))
    for number, file in enumerate(files):
        name, text = text_of(file.get("filename")), text_of(file.get("text"))
        if text:
            source_id, content = text_of(file.get("file_id")) or f"{said.id}/{number}", text.encode("utf-8", "replace")
            said.files.append(file_of(source_id, name or "file.txt", content, "text/plain; charset=utf-8", text=True))
        elif name:
            said.text += f"\n\n[{name}]"
    return said


def _read(part: dict[str, Any], said: Said) -> str:
    """Return the text of a part, or add it to the reasoning or the steps."""
    kind, value = text_of(part.get("type")), part.get(text_of(part.get("type")))
    if kind == "think":
        said.reasoning = "\n\n".join(filter(None, (said.reasoning, _plain(value))))
    elif kind == "tool_call":
        call = dict_of(value)
        function = dict_of(call.get("function")) or call
        arguments, output = function.get("arguments", function.get("args")), function.get("output")
        call_id, name = text_of(call.get("id")), text_of(function.get("name")) or text_of(call.get("type"))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        said.steps.append(tool_call(call_id, name, written))
        if output is not None:
            said.steps.append(tool_result(call_id, name, _plain(output)))
    elif kind in ("text", "error"):
        return _plain(value)
    return ""


def _plain(value: Any) -> str:
    """Return a text, or the `value` of an object."""
    return value if isinstance(value, str) else text_of(dict_of(value).get("value"))
