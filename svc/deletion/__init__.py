"""The deletion of an account, from the first step to its last row.

The server and the operator's command use the same steps; `account.py` lists them.
It may not know of requests and HTTP answers; the SQL stays with the modules that own the tables.
"""
