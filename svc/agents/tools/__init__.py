"""Agents: the planner's loop, its tools, the run as a stream that ends exactly once, records of runs.

The loop uses neither HTTP nor SQL; `run` joins it to the wallet, the tools and the record.
This package does not import routes and builds no HTTP answers.
"""
