"""Schemas of what tells about the service itself."""

from svc.server.interface import choice, record, string

HEALTH = record(
    "Health",
    {"status": choice("ok"), "version": string(description="The version of the service.")},
    example={"status": "ok", "version": "0.1.0"},
)
READINESS = record("Readiness", {"status": choice("ready")}, example={"status": "ready"})
