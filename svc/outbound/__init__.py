"""The HTTP client for all outgoing requests, on asyncio, and the check of addresses.

It is independent of the rest of the service and of what it transports.
"""
