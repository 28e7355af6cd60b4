"""The limits for the forms of the web application, from the shapes that check requests."""

from collections.abc import Mapping
from typing import Any

from svc.auth import tokens
from svc.billing import payments
from svc.content import search
from svc.content.artifacts import NEW_ARTIFACT
from svc.content.conversations import CONVERSATION_FIELDS, NEW_MESSAGE
from svc.content.projects import NEW_PROJECT
from svc.content.support import NEW_SUPPORT
from svc.inference.providers import NEW_PROVIDER
from svc.money import MICROS_PER_DOLLAR
from svc.routes.agents import NEW_RUN
from svc.routes.auth import SIGN_UP
from svc.routes.media_bodies import IMAGE
from svc.routes.user import NEW_KEY
from svc.server.limits import CHAT_PER_MINUTE
from svc.shapes import Schema, Shape

# The bodies that the application's forms fill in.
_FORMS: Mapping[str, Shape[Any]] = {
    "sign_up": SIGN_UP,
    "key": NEW_KEY,
    "project": NEW_PROJECT,
    "provider": NEW_PROVIDER,
    "run": NEW_RUN,
    "artifact": NEW_ARTIFACT,
    "support": NEW_SUPPORT,
    "conversation": CONVERSATION_FIELDS,
    "message": NEW_MESSAGE,
    "image": IMAGE,
}
# JSON schema keyword: attribute of an input element.
_ATTRIBUTES = {"minLength": "minlength", "maxLength": "maxlength", "minimum": "min", "maximum": "max"}


def page_limits() -> dict[str, Any]:
    """Return the input attributes by form and field, and the limits in the application's texts."""
    return {
        **{name: {field.name: _bounds(field.shape.schema) for field in shape.fields} for name, shape in _FORMS.items()},
        "provider_name_pattern": next(field.shape.schema["pattern"] for field in NEW_PROVIDER.fields if field.name == "name"),
        "search": {"maxlength": search.QUERY_LENGTH},
        "session_hours": tokens.SESSION_SECONDS // 3600,
        "chats_per_minute": CHAT_PER_MINUTE,
        "least_dollars": payments.LEAST_MICROS // MICROS_PER_DOLLAR,
    }


def _bounds(schema: Schema) -> dict[str, int]:
    return {attribute: schema[keyword] for keyword, attribute in _ATTRIBUTES.items() if keyword in schema}
