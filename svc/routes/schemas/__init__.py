"""The shapes of bodies and answers, a module for each part of the interface: plain JSON Schema, with an example of each.

The handlers of `svc/routes` name them in `@describes`; what a handler checks, its schema says as strictly. The Markdown files are
the long descriptions.
"""
