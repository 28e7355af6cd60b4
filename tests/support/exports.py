"""Exports in the shape of other applications, written for the tests: no person's data."""

import base64
import io
import json
import zipfile
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
NO_PARENT = "00000000-0000-4000-8000-000000000000"


def zipped(files: dict[str, Any]) -> bytes:
    """A ZIP of files: bytes, or a value that is written as JSON."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return buffer.getvalue()


def node(
    node_id: str, parent: str | None, role: str | None, content: Any = None, at: float | None = None, **more: Any
) -> dict[str, Any]:
    """A node of ChatGPT's mapping; a text is content of the type `text`."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    message = {
        "id": node_id,
        "author": author,
        "create_time": at,
        "content": content,
        "recipient": "all",
        "weight": 1.0,
        "metadata": {},
        **more,
    }
    return {"id": node_id, "message": message if role else None, "parent": parent, "children": []}


def mapping(*nodes: dict[str, Any]) -> dict[str, Any]:
    found = {one["id"]: one for one in nodes}
    for one in nodes:
        if one["parent"] in found:
            found[one["parent"]]["children"].append(one["id"])
    return found


def pointer(file_id: str) -> dict[str, Any]:
    return {"content_type": "image_asset_pointer", "asset_pointer": f"sediment://{file_id}", "width": 1, "height": 1}


def chatgpt_chat(chat_id: str, title: str, nodes: dict[str, Any], current: str, **more: Any) -> dict[str, Any]:
    return {
        "id": chat_id,
        "conversation_id": chat_id,
        "title": title,
        "create_time": 1_700_000_000.5,
        "update_time": 1_700_000_900.25,
        "mapping": nodes,
        "current_node": current,
        "is_archived": False,
        "is_starred": None,
        **more,
    }


def chatgpt() -> dict[str, Any]:
    """An export of ChatGPT in two parts: an edited question, a regenerated answer, tools, an image and a PDF."""
    tree = mapping(
        node("root", None, None),
        node("sys", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
        node(
            "ctx",
            "sys",
            "user",
            {"content_type": "user_editable_context", "user_profile": "I am Ada", "user_instructions": "Be brief"},
            metadata={"is_visually_hidden_from_conversation": True},
        ),
        node("q1", "ctx", "user", "When does the train leave?", 1_700_000_001),
        node("a1", "q1", "assistant", "At 7.", 1_700_000_002, metadata={"model_slug": "gpt-5"}),
        node("a1b", "q1", "assistant", "At 7:12.", 1_700_000_003, metadata={"model_slug": "gpt-5-2"}),
        node("q2", "a1b", "user", "And back?", 1_700_000_004),
        node("q2b", "a1b", "user", "And back on Sunday?", 1_700_000_005),
        node(
            "t",
            "q2b",
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "Sunday", "content": "Sundays have few trains."}]},
            1_700_000_006,
            metadata={"model_slug": "gpt-5-2"},
        ),
        node(
            "c", "t", "assistant", {"content_type": "code", "language": "unknown", "text": "find(7)"}, 1_700_000_007,
            recipient="python",
        ),
        node("r", "c", "tool", {"content_type": "execution_output", "text": "19:30"}, 1_700_000_008, name="python"),
        node("recap", "r", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3s"}, 1_700_000_009),
        node(
            "a2", "recap", "assistant", "At 19:30\ue200cite\ue202turn0search1\ue201.", 1_700_000_010,
            metadata={"model_slug": "gpt-5-2"},
        ),
        node("a0", "q2", "assistant", "At 18.", 1_700_000_011),
    )  # fmt: skip
    files = mapping(
        node("root", None, None),
        node(
            "q",
            "root",
            "user",
            {"content_type": "multimodal_text", "parts": [pointer("file_00aa11"), "What is this?"]},
            1_700_000_100,
            metadata={
                "attachments": [
                    {"id": "file_00aa11", "name": "tree.png", "mime_type": "image/png"},
                    {"id": "file-Pdf9", "name": "plan.pdf", "mime_type": "application/pdf"},
                    {"id": "file-Gone", "name": "gone.txt"},
                ]
            },
        ),
        node("a", "q", "assistant", "A tree.", 1_700_000_101),
    )
    deleted = mapping(
        node(
            "only", "missing", "user", {"content_type": "text", "parts": ["Half \ud83d emoji", None, 7]}, 1_700_000_200
        ),
        node("none", "only", "assistant", {"content_type": "text", "parts": []}, 1_700_000_201),
        node("odd", "none", "assistant", {"content_type": "text", "parts": None}, 1_700_000_202),
    )
    archived = mapping(node("x", None, "user", "Old"))
    return {
        "conversations-000.json": [
            chatgpt_chat("chat-1", "Trains", tree, "a2", is_starred=True),
            chatgpt_chat("chat-2", "Tree", files, "a"),
        ],
        "conversations-001.json": [
            chatgpt_chat("chat-3", "", deleted, "gone"),
            chatgpt_chat("chat-4", "Archived", archived, "x", is_archived=True),
            {
                "id": "chat-5",
                "title": "Broken",
                "mapping": {"a": {"message": {"author": {"role": "user"}}, "parent": {}}},
            },
        ],
        "conversation_asset_file_names.json": {"file_00aa11.dat": "tree.png"},
        "file_00aa11.dat": PNG,
        "file-Pdf9-plan.pdf": b"%PDF-1.4 plan",
        "chat.html": b"<html>",
        "user.json": {"id": "user-1"},
        "message_feedback.json": [],
    }


def claude_message(uuid: str, parent: str, sender: str, blocks: list[Any], at: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "text": "",
        "content": blocks,
        "sender": sender,
        "created_at": at,
        "updated_at": at,
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
        **more,
    }


def claude() -> dict[str, Any]:
    """An export of Claude: a branch, thinking, a tool, an attachment and a project."""
    said = [
        claude_message("m1", NO_PARENT, "human", [{"type": "text", "text": "Read this"}], "2026-05-01T10:00:00.000000Z",
            attachments=[{"file_name": "notes.md", "file_type": "md", "file_size": 9, "extracted_content": "# Oak\nold"}],
            files=[{"file_name": "photo.jpg", "file_uuid": "u"}]),
        claude_message("m2", "m1", "assistant", [
            {"type": "thinking", "thinking": "An oak."},
            {"type": "tool_use", "id": "toolu_1", "name": "repl", "input": {"code": "1+1"}},
            {"type": "tool_result", "tool_use_id": "toolu_1", "name": "repl", "is_error": False, "content": [{"type": "text", "text": "2"}]},
            {"type": "text", "text": "It is an oak."}], "2026-05-01T10:00:05Z"),
        claude_message("m3", "m1", "assistant", [{"type": "text", "text": "An old oak."}], "2026-05-01T10:01:00Z"),
        claude_message("m4", "m2", "human", [{"type": "text", "text": "Thanks"}], "2026-05-01T10:02:00Z"),
    ]  # fmt: skip
    return {
        "conversations.json": [
            {
                "uuid": "claude-1",
                "name": "Oaks",
                "summary": "",
                "created_at": "2026-05-01T09:59:00Z",
                "updated_at": "2026-05-01T10:02:00Z",
                "account": {"uuid": "acct"},
                "project": {"uuid": "proj-1"},
                "chat_messages": said,
            }
        ],
        "projects.json": [
            {
                "uuid": "proj-1",
                "name": "Forest",
                "description": "",
                "prompt_template": "Name the species.",
                "is_starter_project": False,
                "created_at": "2026-04-01T00:00:00Z",
                "docs": [
                    {
                        "uuid": "doc-1",
                        "filename": "species.md",
                        "content": "oak, elm",
                        "created_at": "2026-04-02T00:00:00Z",
                    }
                ],
            }
        ],
        "users.json": [{"uuid": "acct", "full_name": "Ada"}],
    }


def open_webui() -> list[dict[str, Any]]:
    """An export of Open WebUI: two answers side by side, reasoning, a tool, an image and a document."""
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    folded = (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n&gt; Let me see.\n'
        '</details>\n<details type="tool_calls" done="true" id="call_1" name="search" arguments="{&quot;q&quot;: &quot;elm&quot;}" '
        'result="&quot;found&quot;">\n<summary>Tool Executed</summary>\n</details>\nAn elm.'
    )
    messages = {
        "u1": {"id": "u1", "parentId": None, "childrenIds": ["s1", "s2"], "role": "user", "content": "What is it?", "timestamp": 1_760_000_000,
               "files": [{"type": "image", "url": url}, {"type": "file", "name": "list.txt", "file": {"id": "f", "filename": "list.txt", "data": {"content": "elm\noak"}}}]},
        "s1": {"id": "s1", "parentId": "u1", "childrenIds": [], "role": "assistant", "content": folded, "model": "llama3", "timestamp": 1_760_000_001,
               "usage": {"prompt_tokens": 12, "completion_tokens": 5}, "done": True},
        "s2": {"id": "s2", "parentId": "u1", "childrenIds": ["u2"], "role": "assistant", "content": "A tree.", "model": "qwen3", "timestamp": 1_760_000_002, "done": True},
        "u2": {"id": "u2", "parentId": "s2", "childrenIds": [], "role": "user", "content": "Thanks", "timestamp": 1_760_000_003},
    }  # fmt: skip
    chat = {
        "title": "Elm",
        "models": ["llama3"],
        "history": {"messages": messages, "currentId": "u2"},
        "messages": [],
        "timestamp": 1_760_000_000_000,
    }
    head = {
        "user_id": "u",
        "updated_at": 1_760_000_009,
        "created_at": 1_760_000_000,
        "share_id": None,
        "archived": False,
        "meta": {},
    }
    return [
        {"id": "owui-1", "title": "Elm", "chat": chat, **head, "pinned": True, "folder_id": None},
        {"id": "owui-2", "title": "Old", "chat": chat, **head, "archived": True},
    ]


def librechat(*, recursive: bool = False) -> dict[str, Any]:
    """An export of LibreChat: flat with parents, or nested."""
    no_parent = "00000000-0000-0000-0000-000000000000"

    def message(message_id: str, parent: str, sender: str, at: str, **more: Any) -> dict[str, Any]:
        by_user = sender == "User"
        return {"messageId": message_id, "conversationId": "libre-1", "parentMessageId": parent, "sender": sender, "isCreatedByUser": by_user,
                "text": "", "createdAt": at, "error": False, "unfinished": False, "children": [], **more}  # fmt: skip

    said = [
        message("l1", no_parent, "User", "2026-02-01T08:00:00.000Z", text="Hello"),
        message("l2", "l1", "GPT-5", "2026-02-01T08:00:02.000Z", model="gpt-5", tokenCount=7, content=[
            {"type": "think", "think": "A greeting."},
            {"type": "tool_call", "tool_call": {"id": "call_9", "name": "clock", "args": "{}", "output": "8:00"}},
            {"type": "text", "text": {"value": "Good morning"}}]),
        message("l3", "l1", "GPT-5", "2026-02-01T08:00:09.000Z", model="gpt-5", content=[{"type": "text", "text": "Hi"}]),
        message("l4", "l2", "User", "2026-02-01T08:01:00.000Z", text="Bye"),
    ]  # fmt: skip
    if recursive:
        nested = {one["messageId"]: {**one, "children": []} for one in said}
        for one in said[1:]:
            nested[one["parentMessageId"]]["children"].append(nested[one["messageId"]])
        body: dict[str, Any] = {"messagesTree": [nested["l1"]]}
    else:
        body = {"messages": said}
    return {
        "conversationId": "libre-1",
        "endpoint": "openAI",
        "title": "Greetings",
        "exportAt": "08:05:00 GMT",
        "branches": True,
        "recursive": recursive,
        **body,
    }
