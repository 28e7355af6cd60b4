"""Requests that nobody would think of: `python -m tests.fuzz [--count N] [--seed S]` sends them and tells what did not hold.

documented.py  made by schemathesis from our own interface document, right and wrong, and what mutation makes of them, to the
               application in this process: each answer is held against the document, each step of the loop to 100 ms
wire.py        bytes that were HTTP, over sockets, to a server process: its loop is held to 50 ms

They go in rounds, each with a seed of its own and a new database: `--first K` goes on where an earlier run ended.
"""
