"""The operator's commands, a module for each kind, for svc/cli.py.

They work beside a running server, in short transactions, and print when these have ended.
They may not know of requests and answers.
"""
