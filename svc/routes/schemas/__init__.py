"""The long parts of the interface: the shapes of wire formats, and what several operations share.

The shape of any other answer is in the module of its handler. Its example consists of the examples of its fields.
"""
