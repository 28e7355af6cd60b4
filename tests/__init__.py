"""The tests; tests/README.md says how they are made."""

import os
import sys

# Where bytecode must not be written, each server and command would compile the service again: half of its start.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
