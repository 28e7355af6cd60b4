"""What a model says in a delta or a message of chat completions: text, refusal and reasoning.

The page reads deltas by the same rules: `textOf` and `reasoningOf` in svc/static/app/live.js.
"""

from collections.abc import Mapping
from typing import Any


def text(said: Mapping[str, Any]) -> str:
    """Return the text that people read as the answer: the content, followed by the refusal."""
    content, refusal = said.get("content") or "", said.get("refusal")
    return f"{content}{refusal}" if refusal else content


def reasoning(said: Mapping[str, Any]) -> str | None:
    """Return the reasoning in DeepSeek's field, or in that of OpenRouter and vLLM, or None.

    Some model servers send the same text in both. A value that is not a string is ignored.
    """
    found = said.get("reasoning_content")
    if not found or type(found) is not str:
        found = said.get("reasoning")
    return found if found and type(found) is str else None


def parts(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each kind of text that is not empty, `reasoning`, `text` and `refusal`, in this order."""
    found = []
    if thought := reasoning(said):
        found.append(("reasoning", thought))
    if content := said.get("content"):
        found.append(("text", content))
    if refusal := said.get("refusal"):
        found.append(("refusal", refusal))
    return found
