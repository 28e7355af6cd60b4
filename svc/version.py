"""Which version of the service this is."""

# What `pyproject.toml` says, too, which a test holds: to ask the installation for it would take the start 20 ms.
VERSION = "0.1.0"
