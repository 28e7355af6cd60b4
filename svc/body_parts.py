"""Collect the parts of a body."""

_SHORT_BYTES = 4096


def add_part(parts: list[bytes], part: bytes) -> None:
    """Append `part`, or join it to a short last one: a list of tiny parts is larger than their bytes."""
    if parts and len(parts[-1]) < _SHORT_BYTES:
        parts[-1] += part
    else:
        parts.append(part)
