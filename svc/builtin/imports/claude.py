"""Claude: `conversations.json` with `chat_messages`, and `projects.json`."""

import json
from typing import Any

from svc.builtin.imports.chats import (
    Attachment,
    Chat,
    Said,
    dict_of,
    dicts_of,
    file_of,
    text_of,
    time_of,
    tool_call,
    tool_result,
)


def chat_of(export: dict[str, Any]) -> Chat:
    messages = dicts_of(export["chat_messages"])
    return Chat(
        id=text_of(export.get("uuid")),
        title=text_of(export.get("name")),
        created=time_of(export.get("created_at")),
        updated=time_of(export.get("updated_at")),
        messages=[_said(message, f"#{number}") for number, message in enumerate(messages)],
        pinned=export.get("is_starred") is True,
        archived=export.get("is_archived") is True,
        project=text_of(dict_of(export.get("project")).get("uuid")) or text_of(export.get("project_uuid")) or None,
        current=text_of(export.get("current_leaf_message_uuid")),
    )


def _said(message: dict[str, Any], place: str) -> Said:
    said = Said(
        text_of(message.get("uuid")) or place,
        text_of(message.get("parent_message_uuid")) or None,
        "user" if message.get("sender") == "human" else "assistant",
        created=time_of(message.get("created_at")),
        model=text_of(message.get("model")) or None,
    )
    texts = [_read(block, said) for block in dicts_of(message.get("content"))]
    said.text = "\n\n".join(filter(None, texts)) or text_of(message.get("text"))
    for number, attachment in enumerate(dicts_of(message.get("attachments"))):
        name, extracted = text_of(attachment.get("file_name")) or "pasted.txt", attachment.get("extracted_content")
        if isinstance(extracted, str) and extracted:
            content = extracted.encode("utf-8", "replace")
            said.files.append(file_of(f"{said.id}/{number}", name, content, "text/plain; charset=utf-8", text=True))
        else:
            said.text += f"\n\n[{name}]"
    files = {text_of(one.get("file_name")): 0 for key in ("files", "files_v2") for one in dicts_of(message.get(key))}
    said.text += "".join(f"\n\n[{name}]" for name in files if name and name not in {file.name for file in said.files})
    return said


def _read(block: dict[str, Any], said: Said) -> str:
    """Return the text of a block, or add it to the reasoning or the steps."""
    kind = block.get("type")
    if kind == "thinking":
        said.reasoning = "\n\n".join(filter(None, (said.reasoning, text_of(block.get("thinking")))))
    elif kind == "tool_use":
        arguments = json.dumps(block.get("input"), ensure_ascii=False)
        said.steps.append(tool_call(text_of(block.get("id")), text_of(block.get("name")), arguments))
    elif kind == "tool_result":
        ids, name = text_of(block.get("tool_use_id")), text_of(block.get("name"))
        said.steps.append(tool_result(ids, name, _result(block.get("content")), block.get("is_error") is not True))
    else:
        return text_of(block.get("text"))
    return ""


def _result(content: Any) -> str:
    if isinstance(content, list):
        return "\n\n".join(
            text_of(part.get("text")) or json.dumps(part, ensure_ascii=False) for part in dicts_of(content)
        )
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def project_of(export: dict[str, Any]) -> tuple[dict[str, Any], list[Attachment]]:
    """Return a project, and its documents as files."""
    head = {
        "id": text_of(export.get("uuid")),
        "name": text_of(export.get("name")),
        "instructions": text_of(export.get("prompt_template")),
        "created": time_of(export.get("created_at")),
    }
    files = []
    for number, document in enumerate(dicts_of(export.get("docs"))):
        content = text_of(document.get("content")).encode("utf-8", "replace")
        source_id = text_of(document.get("uuid")) or f"{head['id']}/{number}"
        file = file_of(source_id, text_of(document.get("filename")), content, "text/plain; charset=utf-8")
        file.created = time_of(document.get("created_at"))
        files.append(file)
    return head, files
