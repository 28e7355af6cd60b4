"""The HTTP handlers, one file per part of the API."""
