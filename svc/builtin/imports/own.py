"""This service's own export: JSON lines for each kind of object, and artifacts as files (svc/routes/export.py)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from svc.builtin.imports.chats import MOST_FILE_BYTES, Attachment, dict_of, text_of, time_of

Lines = Callable[[str], Iterator[bytes]]  # of a file of the archive
Place = tuple[int, int]  # of a line that was put aside
_ROW_BYTES = 512
_ANSWER = (
    "input_tokens output_tokens cost_micros duration_ms finish_reason cached_input_tokens saved_micros memory sources "
    "first_sent_message_id"
)


class Own:
    """The archive's lines. The constructor puts messages and details aside with `keep`, because an archive orders them
    by time, and `kept` returns them by conversation.
    """

    def __init__(
        self,
        lines: Lines,
        file: Callable[[str], Attachment | None],
        keep: Callable[[bytes], Place],
        kept: Callable[..., bytes],
    ) -> None:
        self._lines, self._file, self._keep, self._kept = lines, file, keep, kept
        self._details = {text_of(one.get("message_id")): place for place, one in self._placed("answers.jsonl")}
        self._forgotten = {
            text_of(one.get("message_id")): time_of(one.get("forgotten_at")) for one in self._objects("forgotten.jsonl")
        }
        self._messages: dict[str, list[tuple[str, int, Place]]] = {}  # id, branch and place, by conversation
        for place, one in self._placed("messages.jsonl"):
            if (conversation := text_of(one.get("conversation_id"))) and (message_id := text_of(one.get("id"))):
                branch = one.get("branch")
                said = (message_id, branch if isinstance(branch, int) else 0, place)
                self._messages.setdefault(conversation, []).append(said)

    def records(self) -> Iterator[tuple[str, Any]]:
        """Yield settings, prompts, projects, artifacts, files of projects, then each conversation with its messages."""
        yield "settings", dict_of(json.loads(b"".join(self._lines("account.json")) or b"{}"))
        for prompt in self._objects("prompts.jsonl"):
            yield "prompt", {**prompt, **_times_of(prompt)}
        for project in self._objects("projects.jsonl"):
            yield "project", {**project, "created": time_of(project.get("created_at"))}
        for line in self._objects("artifacts.jsonl"):
            if (file := self._file(text_of(line.get("file")))) and file.size <= MOST_FILE_BYTES:
                file.key, file.name, file.content_type = (
                    text_of(line.get(key)) for key in ("id", "name", "content_type")
                )
                file.created = time_of(line.get("created_at"))
                yield "artifact", (file, {"project": line.get("project_id"), "prompt": line.get("prompt")})
        for line in self._objects("project_files.jsonl"):
            ids = {"project": line.get("project_id"), "artifact": line.get("artifact_id")}
            yield "project_file", {**ids, "created": time_of(line.get("created_at"))}
        yield from self._chats()

    def _objects(self, name: str) -> Iterator[dict[str, Any]]:
        return (dict_of(json.loads(line)) for line in self._lines(name) if line.strip())

    def _chats(self) -> Iterator[tuple[str, Any]]:
        branches: dict[str, list[dict[str, Any]]] = {}
        for one in self._objects("branches.jsonl"):
            branches.setdefault(text_of(one.get("conversation_id")), []).append(one)
        for chat in self._objects("conversations.jsonl"):
            said = self._messages.pop(text_of(chat.get("id")), [])
            parents, current = _tree(said, branches.get(text_of(chat.get("id")), []))
            size = sum(
                place[1] + self._details.get(message_id, (0, 0))[1] + _ROW_BYTES for message_id, _, place in said
            )
            size += len(text_of(dict_of(chat.get("summary")).get("text")).encode("utf-8", "replace"))
            head = {**chat, "current": current, "ids": [message_id for message_id, _, _ in said], **_times_of(chat)}
            yield "chat", {**head, "project": chat.get("project_id"), "bytes": size + _ROW_BYTES, "artifacts": 0}
            for message_id, _, place in said:
                yield "message", self._message(place, parents[message_id], self._details.get(message_id))

    def _placed(self, name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
        return ((self._keep(line), dict_of(json.loads(line))) for line in self._lines(name) if line.strip())

    def _message(self, place: Place, parent: str | None, details: Place | None) -> dict[str, Any]:
        message, answer = json.loads(self._kept(*place)), json.loads(self._kept(*details)) if details else {}
        own = {name: answer[name] for name in _ANSWER.split() if name in answer}
        own |= {"answer": bool(answer), "status": message.get("status"), "error": message.get("error")}
        return {
            **{name: message.get(name) for name in ("id", "role", "content", "model")},
            "parent": parent,
            "created": time_of(message.get("created_at")),
            "forgotten": self._forgotten.get(text_of(message.get("id"))),
            "reasoning": answer.get("reasoning"),
            "steps": answer.get("steps") or [],
            "details": own,
        }


def _times_of(row: dict[str, Any]) -> dict[str, float | None]:
    return {"created": time_of(row.get("created_at")), "updated": time_of(row.get("updated_at"))}


def _tree(
    said: list[tuple[str, int, Place]], branches: list[dict[str, Any]]
) -> tuple[dict[str, str | None], str | None]:
    """Return the parent of each message, and the last message of the branch that is shown."""
    replaced = {text_of(one.get("first_id")): text_of(one.get("replaces_id")) for one in branches}
    shown = next((one.get("branch") for one in branches if one.get("current") is True), None)
    parents: dict[str, str | None] = {}
    newest: dict[int, str] = {}
    for message_id, branch, _ in said:
        parents[message_id] = parents.get(replaced[message_id]) if message_id in replaced else newest.get(branch)
        newest[branch] = message_id
    current = newest.get(shown) if isinstance(shown, int) else None
    return parents, current or (said[-1][0] if said else None)
