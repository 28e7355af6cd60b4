"""A helper process of processes.py: `python -m svc.builtin.helper MODULE`.

The order as a JSON line on stdin -> MODULE.answer(order) within CPU_SECONDS and MEMORY_BYTES of the module -> stdout
"""

import importlib
import json
import os
import resource
import sys


def main() -> None:
    os.nice(15)  # the server goes first
    module = importlib.import_module(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (module.CPU_SECONDS, module.CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (module.MEMORY_BYTES, module.MEMORY_BYTES))
    sys.stdout.buffer.write(module.answer(json.loads(sys.stdin.buffer.readline())))


if __name__ == "__main__":
    main()
