"""The answer of a model server: read as it arrives, repaired, and written as chunks of chat completions.

bytes -> `raw_answer.py` (`repeats.py`) -> `chunk_writer.py` (`normalize.py`, `said.py`, `token_usage.py`)
      -> `events.py`
Faults become errors of the caller in `upstream_errors.py` and `too_long.py`. It knows no requests and no money.
"""
