"""Unusual requests: `python -m tests.fuzz [--count N] [--seed S]` sends them and prints each broken rule.

documented.py  made by schemathesis from our own interface document, right and wrong, and what mutation makes of them,
to the
               application in this process: each answer is held against the document, each step of the loop to 100 ms
wire.py        bytes that were HTTP, over sockets, to a server process: its loop is held to 50 ms

Each round has its own seed and a new database: `--first K` continues where an earlier run ended.
"""
