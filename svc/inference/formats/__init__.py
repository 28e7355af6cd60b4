"""Request formats other than chat completions: a request becomes a chat request, and a chat call's answer theirs.

`request.py` and `answer.py` hold what all formats share. A format adds the shape of its request and its translation.
Formats keep no conversations. They may not know of HTTP answers, agents or who is signed in.
"""
