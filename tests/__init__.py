"""The tests; tests/README.md says how they are made."""

import os
import sys

# Where bytecode must not be written, each of some hundred servers and commands would compile the service anew: half of its start.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
