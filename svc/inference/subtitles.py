"""Segments of recognized speech as subtitles: SubRip (srt) and WebVTT (vtt)."""

from collections.abc import Iterable, Mapping
from typing import Any


def as_srt(segments: Iterable[Mapping[str, Any]]) -> str:
    cues = enumerate(_cues(segments, ","), 1)
    return "".join(f"{number}\n{cue}\n\n" for number, cue in cues)


def as_vtt(segments: Iterable[Mapping[str, Any]]) -> str:
    return "WEBVTT\n\n" + "".join(f"{cue}\n\n" for cue in _cues(segments, "."))


def _cues(segments: Iterable[Mapping[str, Any]], mark: str) -> Iterable[str]:
    for segment in segments:
        text = " ".join(segment["text"].split()).replace("-->", "->")  # the arrow would begin another cue
        yield f"{_time(segment['start'], mark)} --> {_time(segment['end'], mark)}\n{text}"


def _time(seconds: float, mark: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{milliseconds // 1000:02}{mark}{milliseconds % 1000:03}"
