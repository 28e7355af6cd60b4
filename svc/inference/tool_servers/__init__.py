"""Tool servers (MCP) of the operator and of users: a client, the tools that a server lists, and their records.

It speaks Streamable HTTP of the revisions 2025-06-18 and 2026-07-28. It does not know agents, models or money.
"""
