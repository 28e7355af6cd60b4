"""The interface: one file for each part, handlers that go straight down.

Nothing imports them but `app.py` and the command line.
They hold no SQL and build no error bodies: they call the rooms below and raise named errors.
"""
