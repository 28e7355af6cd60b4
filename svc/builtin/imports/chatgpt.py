"""ChatGPT: `conversations.json`, or `conversations-000.json` and so on, with a `mapping` of nodes, and files."""

import re
from collections.abc import Callable
from typing import Any

from svc.builtin.imports.chats import (
    Attachment,
    Chat,
    Said,
    dict_of,
    dicts_of,
    text_of,
    time_of,
    tool_call,
    tool_result,
)

Find = Callable[[str, str], Attachment | None]  # a file of the archive by its id, and its name if it is known
_MARKS = re.compile("\ue200[^\ue201]*\ue201|[\ue200-\ue20f]")  # citations of searches, which only ChatGPT can show
_ID = re.compile(r"file[-_][A-Za-z0-9]+")


def chat_of(export: dict[str, Any], find: Find) -> Chat:
    messages = [_said(node_id, dict_of(node), find) for node_id, node in dict_of(export["mapping"]).items()]
    return Chat(
        id=text_of(export.get("conversation_id")) or text_of(export.get("id")),
        title=text_of(export.get("title")),
        created=time_of(export.get("create_time")),
        updated=time_of(export.get("update_time")),
        messages=messages,
        pinned=export.get("is_starred") is True or bool(export.get("pinned_time")),
        archived=export.get("is_archived") is True,
        current=text_of(export.get("current_node")),
    )


def _said(node_id: str, node: dict[str, Any], find: Find) -> Said:
    message, parent = dict_of(node.get("message")), text_of(node.get("parent")) or None
    role, metadata = text_of(dict_of(message.get("author")).get("role")), dict_of(message.get("metadata"))
    said = Said(node_id, parent, "", created=time_of(message.get("create_time")))
    if role not in ("user", "assistant", "tool") or (
        role == "user" and metadata.get("is_visually_hidden_from_conversation")
    ):
        return said
    said.role, said.joins = ("user", False) if role == "user" else ("assistant", True)
    said.model = text_of(metadata.get("model_slug")) or None
    content = dict_of(message.get("content"))
    kind = text_of(content.get("content_type"))
    if kind in ("user_editable_context", "model_editable_context", "reasoning_recap"):
        said.role = said.role if said.joins else ""
    elif kind == "thoughts":
        thoughts = dicts_of(content.get("thoughts"))
        said.reasoning = "\n\n".join(text_of(one.get("content")) or text_of(one.get("summary")) for one in thoughts)
    else:
        text = _text(content, metadata, said.files, find)
        name, recipient = text_of(dict_of(message.get("author")).get("name")), text_of(message.get("recipient"))
        if role == "tool":
            said.steps.append(tool_result(parent or node_id, name, text, ok=kind != "system_error"))
        elif role == "assistant" and recipient not in ("", "all"):
            said.steps.append(tool_call(node_id, recipient, text))
        else:
            said.text = f"```{_language(content)}\n{text}\n```" if kind == "code" else text
    return said


def _language(content: dict[str, Any]) -> str:
    language = text_of(content.get("language"))
    return language if language != "unknown" and re.fullmatch(r"\w{1,20}", language) else ""


def _text(content: dict[str, Any], metadata: dict[str, Any], files: list[Attachment], find: Find) -> str:
    """Return the text of the parts, and add their files, and the attached ones, to `files`."""
    attached = {text_of(one.get("id")): text_of(one.get("name")) for one in dicts_of(metadata.get("attachments"))}
    parts = content.get("parts")
    texts, pointers = [], dict(attached)
    for part in parts if isinstance(parts, list) else [content.get("text") or content.get("result")]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.append(text_of(part.get("text")))
            inner = part.get("audio_asset_pointer")
            pointer = text_of(dict_of(inner).get("asset_pointer") or part.get("asset_pointer"))
            if found := _ID.search(pointer):
                pointers.setdefault(found[0], attached.get(found[0], ""))
    for file_id, name in pointers.items():
        if file := find(file_id, name):
            files.append(file)
        elif name:
            texts.append(f"[{name}]")
    return _MARKS.sub("", "\n\n".join(filter(None, texts)))
