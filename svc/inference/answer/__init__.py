"""The answer of a model server: read as it arrives, repaired, and written as chunks of chat completions.

bytes -> `raw_answer.py` (`repeats.py`) -> `chunk_writer.py` (`normalize.py`, `said.py`, `token_usage.py`) -> `events.py`.
Its faults become the caller's errors by `upstream_errors.py` and `too_long.py`. It may not know of requests and money.
"""
