"""Shapes of the administration."""

from svc.routes.schemas.common import TIMESTAMP, example_id, id_of
from svc.server.interface import page_of
from svc.shapes import json_object, mapping, nullable, string

_USER = example_id("user")
AUDIT_ENTRY = json_object(
    "AuditEntry",
    {
        "id": id_of("aud"),
        "at": TIMESTAMP,
        "actor": string.about("The id of the administrator, or `operator` for a command.", _USER),
        "action": string.about("What was done.", "user.admin"),
        "subject": nullable(string).about("The id of the account that was changed, or another name.", _USER),
        "details": mapping.about("What changed, without secrets.", {"email": "ada@example.com", "admin": True}),
    },
)
AUDIT_LIST = page_of("AuditList", AUDIT_ENTRY)
