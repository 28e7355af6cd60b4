"""Prints a table of what each attack did: `python -m tests.attacks [--root CHECKOUT] [--short] [NAME ...]`."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.attacks.lab import Outcome, laboratory, load
from tests.support.server import ROOT


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the attacks to play, all by default")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the checkout whose server is attacked, this one by default"
    )
    parser.add_argument("--short", action="store_true", help="smaller and shorter forms, as the tests play them")
    arguments = parser.parse_args()
    attacks = load()
    print(
        "| attack | longest stall, transaction (CPU) | longest wait | another's write | memory | failed probes | "
        "answers |"
    )
    print("|---|--:|--:|--:|--:|--:|---|")
    for name in arguments.names or sorted(attacks):
        about = attacks[name].about
        with tempfile.TemporaryDirectory() as folder:
            try:
                async with laboratory(Path(folder), arguments.root.resolve(), short=arguments.short) as lab:
                    print(_line(about, await lab.play(attacks[name])), flush=True)
            except Exception as error:  # the next attack gets a new server
                print(f"| {about} | {type(error).__name__}: {str(error)[:200]} |", flush=True)


def _line(about: str, found: Outcome) -> str:
    answers = ", ".join(f"{status}: {number}" for status, number in sorted(found.statuses.items()))
    answers += ", not over in time" if found.over_time else ""
    return (
        f"| {about} | {found.stall_ms:.0f}, {found.transaction_ms:.0f} ms | {found.wait_ms:.0f} ms | "
        f"{found.write_ms:.0f} ms | {found.memory_mb:.0f} MB | {found.failures} | {answers} |"
    )


if __name__ == "__main__":
    asyncio.run(main())
