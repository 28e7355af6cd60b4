"""Shapes of health and readiness."""

from svc.shapes import json_object, one_of, string
from svc.version import VERSION

HEALTH = json_object("Health", {"status": one_of("ok"), "version": string.about("The version of the service.", VERSION)})
READINESS = json_object("Readiness", {"status": one_of("ready")})
