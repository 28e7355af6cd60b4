"""The bounds of saved prompts that no request reaches."""

from svc.content import prompts
from svc.shapes import shape_of


def test_longest_shared_list_fits_its_request() -> None:
    """100 prompts of 8,000 characters of four bytes are 3.2 MB; the body may have 4 MiB."""
    longest = {"name": "x", "text": "\U0001f642" * 8_000}
    shape = shape_of(prompts.SharedPrompts)
    assert len(shape.check({"prompts": [longest] * prompts.MOST_SHARED}, "").prompts) == prompts.MOST_SHARED
    assert prompts.MOST_SHARED * (8_000 * 4 + 500) < 4 * 1024 * 1024
