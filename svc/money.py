"""Convert whole micros to and from dollars as people write them, exactly, without floats."""

import re

MICROS_PER_DOLLAR = 1_000_000
_AMOUNT = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?")


def dollars(micros: int) -> str:
    """Return micros as `$1,234.50`, with two to six decimals."""
    whole, part = divmod(abs(micros), MICROS_PER_DOLLAR)
    decimals = f"{part:06}"
    return f"{'-' if micros < 0 else ''}${whole:,}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def micros_of(text: str) -> int | None:
    """Return `12.5` as micros, or None for anything but up to 9 ASCII digits and up to 6 after a point."""
    match = _AMOUNT.fullmatch(text)
    return None if match is None else int(match[1]) * MICROS_PER_DOLLAR + int((match[2] or "").ljust(6, "0"))
