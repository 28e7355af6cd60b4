"""The model `echo`: answers with the last user message."""

from svc.builtin.answer import Piece, TextPiece
from svc.builtin.request import Request
from svc.builtin.structured import in_format


def pieces(request: Request) -> list[Piece]:
    """The text of the last user message, images and the like as `[image]`; empty without one. Never calls a tool."""
    return [TextPiece(in_format(request.goal, request.response_format))]
