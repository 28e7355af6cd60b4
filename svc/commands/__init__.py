"""The operator's commands, a module for each kind: what svc/cli.py finds on the command line runs here.

They work beside a running server, on a connection of their own, in short transactions, and print when these are over.
They may not know of requests and answers.
"""
