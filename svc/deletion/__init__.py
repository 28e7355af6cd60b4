"""Deletions that take long. The SQL stays with the modules that own the tables."""
