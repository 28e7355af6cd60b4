"""HTTP/1.1 on sockets: accepted connections, heads, bodies, and one answer after the other.

`listener.py` accepts, `protocol.py` reads, `head.py` checks a head, `cycle.py` has one request and its answer.
It has limits and deadlines, but does not know routes, accounts or content. A `Context` only carries them.
"""
