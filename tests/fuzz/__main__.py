"""`python -m tests.fuzz [--count N] [--seed S] [--first K]`: rounds of requests, half of them documented, half of them
bytes.
"""

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.fuzz import documented, wire
from tests.support.watchdog import WATCHDOG

_ROUND = 10_000


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="how many requests")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--first", type=int, default=0, metavar="K", help=f"the first round, of {_ROUND} requests each")
    arguments = parser.parse_args()
    gc.freeze()
    faults, began = 0, time.monotonic()
    rounds = -(-arguments.count // _ROUND)
    corpus = documented.Corpus(random.Random(f"{arguments.seed}"))
    plays = ((partial(documented.play, corpus=corpus), "documented"), (wire.play, "wire"))
    for number in range(arguments.first, rounds):
        play, name = plays[number % 2]
        with tempfile.TemporaryDirectory() as folder, WATCHDOG.watching():
            found = await play(
                Path(folder), f"{arguments.seed} {number}", min(_ROUND, arguments.count - number * _ROUND)
            )
        faults += len(found)
        for line in found:
            print(line, flush=True)
        print(f"round {number + 1} of {rounds}, {name}, {time.monotonic() - began:.0f} s, {faults} faults", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
