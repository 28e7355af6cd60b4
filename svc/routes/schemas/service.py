"""Schemas of what tells about the service itself."""

from svc.server.interface import choice, record

HEALTH = record("Health", {"status": choice("ok")}, example={"status": "ok"})
READINESS = record("Readiness", {"status": choice("ready")}, example={"status": "ready"})
