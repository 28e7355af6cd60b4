"""HTTP as this service speaks it: protocol (`http`), middleware, guards, bodies, event streams, limits.

It hands the typed state to every request, and so stands above what the state holds.
It may not know what a route answers, nor import from `routes` or `agents`.
"""
