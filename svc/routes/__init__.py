"""Request handlers, one module for each topic.

They hold no SQL and build no error bodies: they raise named errors.
"""
