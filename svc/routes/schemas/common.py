"""Schemas that every part of the interface uses."""

from svc.server.interface import schema, string

ID = schema(
    "Id",
    string(
        "A prefix that tells the kind of object, and 26 characters that sort by the time of creation.",
        pattern="^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$",
        examples=["user_01m3250v3vn4qvxnatpwzmywwn"],
    ),
)
TIMESTAMP = schema(
    "Timestamp",
    string(
        "ISO 8601 in UTC, with milliseconds and `Z`.",
        format="date-time",
        pattern="^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
        examples=["2026-09-21T14:13:20.123Z"],
    ),
)
