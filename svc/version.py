"""The version of the service. This is its only place: pyproject.toml reads it from here."""

VERSION = "1.1.0"
