"""Pictures and speech as artifacts, named for their prompt, in the space that their call has reserved."""

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
    """The account, project and agent run to which the files belong."""

    account_id: str
    project_id: str | None = None
    run_id: str | None = None


async def store_picture(
    media: MediaEngines, home: Home, prompt: str, content: bytes, number: int = 1, artifact_id: str | None = None
) -> Artifact:
    """Store the `number`th picture of a prompt as an artifact. Raises ApiError."""
    content_type = picture_type(content) or "application/octet-stream"
    ending = f"{'' if number == 1 else f'-{number}'}.{_ENDINGS.get(content_type, 'bin')}"
    return await _store(media, home, prompt, ending, content_type, content, artifact_id)


async def store_speech(media: MediaEngines, home: Home, text: str, content_type: str, content: bytes) -> Artifact:
    """Store a spoken text as an artifact. Raises ApiError."""
    ending = next((format for format, kind in CONTENT_TYPES.items() if kind == content_type), "bin")
    return await _store(media, home, text, f".{ending}", content_type, content)


async def _store(
    media: MediaEngines, home: Home, text: str, ending: str, content_type: str, content: bytes, artifact_id: str | None = None
) -> Artifact:
    return await artifacts.add_artifact(
        media.engines.db,
        home.account_id,
        content,
        name=_stem(text) + ending,
        content_type=content_type,
        project_id=home.project_id,
        run_id=home.run_id,
        now_seconds=media.engines.clock(),
        artifact_id=artifact_id,
        room_reserved=True,
    )


def _stem(text: str) -> str:
    return re.sub(r"\W+", "-", unicodedata.normalize("NFC", text[:200]))[:60].strip("-") or "untitled"
