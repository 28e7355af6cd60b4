"""Dollars as people write them, to and from whole micros: exact, never by way of a float."""

import re

MICROS_PER_DOLLAR = 1_000_000
_AMOUNT = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?")


def dollars(micros: int) -> str:
    """Micros as `$1,234.50`: two decimals, up to six where they are needed."""
    whole, part = divmod(abs(micros), MICROS_PER_DOLLAR)
    decimals = f"{part:06}"
    return f"{'-' if micros < 0 else ''}${whole:,}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def micros_of(text: str) -> int | None:
    """`12.5` as micros; None for anything but up to 9 ASCII digits and, after a point, up to 6 more."""
    match = _AMOUNT.fullmatch(text)
    return None if match is None else int(match[1]) * MICROS_PER_DOLLAR + int((match[2] or "").ljust(6, "0"))
