"""Model servers in the formats of Responses and Messages: the request made from a chat request (request.py), and the
chunks of chat made from their answers and events (answer.py). svc/inference/formats/ has the same formats for callers.
The format of a server is `api` of its model.
"""
