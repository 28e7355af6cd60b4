"""Pictures and speech as artifacts, in the room that their call has reserved; their names come from what was asked for."""

import re
import unicodedata
from typing import NamedTuple

from svc.builtin.voice import CONTENT_TYPES
from svc.content import artifacts
from svc.content.artifacts import Artifact
from svc.inference.media_engines import MediaEngines
from svc.inference.pictures import picture_type

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif", "image/avif": "avif"}


class Home(NamedTuple):
    """Whose files they become, and of which project and agent run."""

    account_id: str
    project_id: str | None = None
    run_id: str | None = None


async def store_picture(
    media: MediaEngines, home: Home, prompt: str, content: bytes, number: int = 1, artifact_id: str | None = None
) -> Artifact:
    """Keeps the `number`th picture of a prompt as an artifact that is named for it. Raises ApiError."""
    content_type = picture_type(content) or "application/octet-stream"
    name = f"{_stem(prompt)}{'' if number == 1 else f'-{number}'}.{_ENDINGS.get(content_type, 'bin')}"
    return await _store(media, home, name, content_type, content, artifact_id)


async def store_speech(media: MediaEngines, home: Home, text: str, content_type: str, content: bytes) -> Artifact:
    """Keeps a spoken text as an artifact that is named for it. Raises ApiError."""
    ending = next((format for format, kind in CONTENT_TYPES.items() if kind == content_type), "bin")
    return await _store(media, home, f"{_stem(text)}.{ending}", content_type, content)


async def _store(
    media: MediaEngines, home: Home, name: str, content_type: str, content: bytes, artifact_id: str | None = None
) -> Artifact:
    return await artifacts.add_artifact(
        media.engines.db,
        home.account_id,
        content,
        name=name,
        content_type=content_type,
        project_id=home.project_id,
        run_id=home.run_id,
        now_seconds=media.engines.clock(),
        artifact_id=artifact_id,
        room_reserved=True,
    )


def _stem(text: str) -> str:
    """The beginning of a text as a file's name."""
    return re.sub(r"\W+", "-", unicodedata.normalize("NFC", text[:200]))[:60].strip("-") or "untitled"
