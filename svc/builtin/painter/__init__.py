"""Programs that the server starts as processes of their own, for work that would block it or that may not run inside it.

They use the standard library and one another, and nothing else of the service: a process starts in a few milliseconds.
"""
