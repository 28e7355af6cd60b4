"""Shapes that every part of the interface uses."""

from svc.shapes import Shape, string, whole

ID = string.about(
    "A prefix that names the kind of object, and 26 characters that sort by the time of creation.",
    pattern="^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$",
    examples=["user_01m3250v3vn4qvxnatpwzmywwn"],
).named("Id")
TIMESTAMP = string.about(
    "ISO 8601 in UTC, with milliseconds and `Z`.",
    "2026-09-21T14:13:20.123Z",
    format="date-time",
    pattern="^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
    examples=["2026-09-21T14:13:20.123Z"],
).named("Timestamp")
COUNT = whole.about(minimum=0)
SECONDS = whole.about("Unix seconds.", 1790000000)
MICROS = COUNT.about("The cost in micros (millionths of a US dollar).")


def example_id(prefix: str) -> str:
    return f"{prefix}_01m3250v3vn4qvxnatpwzmywwn"


def id_of(prefix: str) -> Shape[str]:
    """Return the shape of an id whose example has this prefix."""
    return ID.about(example=example_id(prefix))
