"""Request formats other than chat completions: each one becomes a chat request, and its answer is written from a chat
call.

`request.py` and `answer.py` hold what all formats share; a format adds one module for each direction.
Formats keep no conversations. They may not know of HTTP answers, agents or who is signed in.
"""
