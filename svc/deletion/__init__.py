"""Deletions that take long: of an account, and of what is older than the operator keeps it.

They may not know of requests and HTTP answers; the SQL stays with the modules that own the tables.
"""
