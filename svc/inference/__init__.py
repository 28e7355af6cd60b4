"""A call of a model: the catalog, the request, the model server and its wire, what the call costs.

A call holds its worst case, asks the model, rewrites the answer, and settles exactly once.
It may not know of HTTP answers, agents or who is signed in.
"""
