"""A module for helper processes: it answers with the order, and with the priority and the limits of its process."""

import json
import os
import resource
from typing import Any

CPU_SECONDS, MEMORY_BYTES = 30, 1 << 30


def answer(order: dict[str, Any]) -> bytes:
    limits = [resource.getrlimit(limit) for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    return json.dumps([order, os.getpriority(os.PRIO_PROCESS, 0), limits]).encode()
