"""Images in requests to models that are known not to read any.

An image of the person is refused. One in the result of a tool becomes a text: coding agents send their whole
conversation again with each request, so a refusal would end the session.
"""

from typing import Any

from svc.errors import invalid_value
from svc.inference.catalog import Model

# The types of images in chat, Responses and Messages, the field of their data, and the type of a text beside them.
_IMAGES = {
    "image_url": ("image_url", "text"),
    "input_image": ("image_url", "input_text"),
    "image": ("source", "text"),
}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_result"})
_IN_PLACE = "[An image, which this model cannot read.]"


def check_images(model: Model, messages: Any, param: str) -> None:
    """Raise ApiError `invalid_value` for an image if `model` is known not to read images.

    `messages` are those of a checked request, or the items of one in the Responses format, in the field `param`. Images
    in the results of tools are replaced in them.
    """
    if model.capabilities is None or "vision" in model.capabilities or not isinstance(messages, list):
        return
    for place, message in enumerate(messages):
        for field in ("content", "output"):
            if type(parts := message.get(field)) is list:
                in_result = message.get("role") == "tool" or message.get("type") in _RESULTS
                _check_parts(model, parts, f"{param}[{place}].{field}", in_result)


def _check_parts(model: Model, parts: list[dict[str, Any]], param: str, in_result: bool) -> None:
    for place, part in enumerate(parts):
        at, kind = f"{param}[{place}]", part.get("type")
        inner = part.get("source") if kind == "document" else part
        if kind in _IMAGES and in_result:
            marked = {name: part[name] for name in ("cache_control",) if name in part}
            part.clear()
            part.update({"type": _IMAGES[kind][1], "text": _IN_PLACE, **marked})
        elif kind in _IMAGES:
            message = f"{model.id} cannot read images. Leave the image out, or choose another model."
            raise invalid_value(message, f"{at}.{_IMAGES[kind][0]}")
        elif isinstance(inner, dict) and type(nested := inner.get("content")) is list:
            holder = "source.content" if kind == "document" else "content"
            _check_parts(model, nested, f"{at}.{holder}", in_result or kind in _RESULTS)
