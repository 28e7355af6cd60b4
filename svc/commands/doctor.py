"""`svc doctor`: for the given settings what is right, what is wrong, and what to do. It changes nothing.

what stands on this machine (doctor_here.py), then all that is asked of others at once, each with a deadline (doctor_outside.py)
"""

import argparse
import asyncio
from collections.abc import Awaitable
from typing import Any

from svc.commands import doctor_here, doctor_outside
from svc.commands.finding import WRONG, Finding, wrong
from svc.config import Config

_DEADLINE_SECONDS = 15.0


def add_parsers(commands: Any) -> None:
    text = "look at the settings, the machine and everything that the service relies on; exit status 1 where something is wrong"
    commands.add_parser("doctor", help=text).set_defaults(run=_doctor)


def _doctor(config: Config, options: argparse.Namespace) -> int:
    found = [*doctor_here.examined(config), *asyncio.run(_asked(config))]
    for finding in found:
        print(finding.line())
    faults = sum(finding.grade == WRONG for finding in found)
    print(f"{faults} of {len(found)} are wrong" if faults else f"nothing of {len(found)} is wrong")
    return 1 if faults else 0


async def _asked(config: Config) -> list[Finding]:
    async with doctor_outside.probes(config) as probes:
        answers = await asyncio.gather(*(_in_time(about, probe) for about, probe in probes))
    return [finding for answer in answers for finding in answer]


async def _in_time(about: str, probe: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            return await probe
    except TimeoutError:
        return [wrong(about, f"no answer within {_DEADLINE_SECONDS:g} seconds")]
