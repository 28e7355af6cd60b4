"""The built-in model provider: small models that answer without a model server, and say that they are none.

It may not know of accounts, wallets or HTTP: `inference` asks it as it would ask a model server.
Nothing is imported here: `speak`, `painter` and `pdf` are separate processes with the standard library (and `pdf` with
pypdf).
"""
