"""The one way out: a small HTTP client on asyncio, and the judgement of addresses.

Every request to a model server, a payment processor or an identity provider goes through it.
It may not know what it carries, nor anything else of this service.
"""
