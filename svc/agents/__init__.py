"""Agents: the planner's loop, its tools, the run as a stream that ends exactly once, records of runs.

The loop knows neither HTTP nor SQL; `run` joins it to the wallet, the tools and the record.
It may not know of routes, nor build an HTTP answer.
"""
