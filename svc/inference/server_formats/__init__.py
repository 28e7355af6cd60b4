"""Model servers in the formats of Responses and Messages. request.py makes their request from a chat request, and
answer.py makes chunks of chat from their answers and events. svc/inference/formats/ has the same formats for callers.
The format of a server is `api` of its model.
"""
