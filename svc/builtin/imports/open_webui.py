"""Open WebUI: a list of chats, each with the tree `chat.history.messages`."""

import base64
import binascii
import html
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

_FOLD = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>(.*?)</details>\s*', re.DOTALL)
_SUMMARY = re.compile(r"<summary>.*?</summary>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")


def chat_of(export: dict[str, Any]) -> Chat:
    chat = dict_of(export.get("chat")) or export
    history = dict_of(chat.get("history"))
    messages = dict_of(history.get("messages")) or {
        text_of(message.get("id")) or f"#{place}": message
        for place, message in enumerate(dicts_of(chat.get("messages")))
    }
    return Chat(
        id=text_of(export.get("id")) or text_of(chat.get("id")),
        title=text_of(export.get("title")) or text_of(chat.get("title")),
        created=time_of(export.get("created_at")) or time_of(chat.get("timestamp")),
        updated=time_of(export.get("updated_at")),
        messages=[_said(message_id, dict_of(message)) for message_id, message in messages.items()],
        pinned=export.get("pinned") is True,
        archived=export.get("archived") is True,
        current=text_of(history.get("currentId")),
    )


def _said(message_id: str, message: dict[str, Any]) -> Said:
    role = text_of(message.get("role"))
    said = Said(
        message_id,
        text_of(message.get("parentId")) or None,
        role if role in ("user", "assistant", "system") else "",
        created=time_of(message.get("timestamp")),
        model=text_of(message.get("model")) or None if role == "assistant" else None,
    )
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [text_of(one.get("text")) for one in dicts_of(content)]
    said.text = _FOLD.sub(lambda fold: _unfold(fold, said), "\n\n".join(texts)) or text_of(
        dict_of(message.get("error")).get("content")
    )
    usage = dict_of(message.get("usage")) or dict_of(message.get("info"))
    said.details = {
        "input_tokens": count_of(
            usage.get("prompt_tokens") or usage.get("input_tokens") or usage.get("prompt_eval_count")
        ),
        "output_tokens": count_of(
            usage.get("completion_tokens") or usage.get("output_tokens") or usage.get("eval_count")
        ),
    }
    for number, file in enumerate(dicts_of(message.get("files"))):
        _attach(said, number, file)
    return said


def _unfold(fold: re.Match[str], said: Said) -> str:
    """Move a folded section of a message to its reasoning or steps."""
    kind, attributes, inner = fold[1], dict(_ATTRIBUTE.findall(fold[2])), _SUMMARY.sub("", fold[3]).strip()
    if kind == "reasoning":
        text = re.sub(r"(?m)^&gt; ?|^> ?", "", inner)
        said.reasoning = "\n\n".join(filter(None, (said.reasoning, html.unescape(text))))
        return ""
    call_id, name = (
        attributes.get("id", f"{said.id}/{len(said.steps)}"),
        html.unescape(attributes.get("name") or fold[1]),
    )
    arguments = html.unescape(attributes.get("arguments", "")) or inner
    said.steps.append(tool_call(call_id, name, arguments))
    if result := attributes.get("result") or attributes.get("output"):
        said.steps.append(tool_result(call_id, name, html.unescape(result)))
    return ""


def _attach(said: Said, number: int, file: dict[str, Any]) -> None:
    stored, url = dict_of(file.get("file")), text_of(file.get("url"))
    name = text_of(file.get("name")) or text_of(stored.get("filename"))
    text = text_of(dict_of(stored.get("data")).get("content")) or text_of(dict_of(file.get("data")).get("content"))
    source_id = f"{said.id}/{number}"
    if found := _DATA_URL.match(url):
        try:
            content = base64.b64decode(url[found.end() :])
        except binascii.Error:
            content = b""
        name = name or f"image.{found[1].partition('/')[2].partition('+')[0]}"
        said.files.append(file_of(source_id, name, content, found[1]))
    elif text:
        content = text.encode("utf-8", "replace")
        said.files.append(file_of(source_id, name or "file.txt", content, "text/plain; charset=utf-8", text=True))
    elif name:
        said.text += f"\n\n[{name}]"
