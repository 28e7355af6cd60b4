"""What the built-in voice says as samples, programs that stand in for encoders, and the helper processes of the tests'
own.
"""

import array
import asyncio
import contextlib
import os
import stat
import tempfile
import wave
from pathlib import Path

from svc.builtin.voice import Spoken, Voice

TEXT = "The quick brown fox jumps over the lazy dog. She sells sea shells, and everyone agrees that it is so. "


async def say(
    voice: Voice,
    text: str,
    *,
    name: str = "alloy",
    speed: float = 1.0,
    format: str = "wav",
    most_seconds: float = 180.0,
) -> tuple[Spoken, bytes]:
    with tempfile.TemporaryFile() as file:
        spoken = await voice.speak(
            text, file, voice=name, speed=speed, format=format, most_seconds=most_seconds, account_id=""
        )
        file.seek(0)
        return spoken, file.read()


def samples(sound: bytes) -> "array.array[int]":
    with tempfile.TemporaryFile() as file:
        file.write(sound)
        file.seek(0)
        with wave.open(file, "rb") as reader:
            assert (reader.getnchannels(), reader.getsampwidth(), reader.getframerate()) == (1, 2, 22_050)
            return array.array("h", reader.readframes(reader.getnframes()))


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def children() -> set[int]:
    """The helper processes of this one, zombies left out. It may also have servers and browsers."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            is_helper = b"svc.builtin.helper" in (entry / "cmdline").read_bytes()
            if is_helper and int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(entry.name))
    return found


async def until_children(count: int, within_seconds: float = 5.0) -> set[int]:
    async with asyncio.timeout(within_seconds):
        while len(children()) != count:
            await asyncio.sleep(0.01)
    return children()
