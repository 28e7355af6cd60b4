"""`svc doctor`: for the settings in use what is right, what is wrong, and what to do. It changes nothing.

the settings of the running server, else those given here -> what stands on this machine (doctor_here.py)
-> all that is asked of others at once, each with a deadline (doctor_outside.py)
"""

import argparse
import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from svc.commands import doctor_here, doctor_outside
from svc.commands.finding import WRONG, Finding, fine, look, wrong
from svc.config import SETTINGS, Config, from_environ
from svc.errors import StartError
from svc.server import status

_DEADLINE_SECONDS = 15.0


def add_parsers(commands: Any) -> None:
    text = "look at the settings, the machine and everything that the service relies on; exit status 1 where something is wrong"
    commands.add_parser("doctor", help=text).set_defaults(run=_doctor)


def _doctor(config: Config, options: argparse.Namespace) -> int:
    found, used = _settings(config)
    found += [*doctor_here.examined(used), *asyncio.run(_asked(used))]
    for finding in found:
        print(finding.line())
    faults = sum(finding.grade == WRONG for finding in found)
    print(f"{faults} of {len(found)} are wrong" if faults else f"nothing of {len(found)} is wrong")
    return 1 if faults else 0


def _settings(here: Config) -> tuple[list[Finding], Config]:
    """The settings to examine: those of the server that runs on this data folder, else `here`, those of this command."""
    about = "settings"
    try:
        told = status.ask(here.data_dir, "settings")
        if told is None:
            return [], here
        # The folder has another name where the server sees another file system.
        used = replace(from_environ(told["environ"]), data_dir=here.data_dir.absolute(), base_url=told["base_url"])
    except (OSError, ValueError) as error:
        todo = "Those of this command are examined. Run it as the user of the service"
        return [look(about, f"the running server cannot be asked for its settings: {error}", todo)], here
    except StartError as error:
        return [wrong(about, f"the next start would refuse those of the running server: {error}")], here
    found = [fine(about, "those of the running server are examined")]
    mine, theirs = status.settings(here)["environ"], told["environ"]
    differ = [name for name in sorted(mine) if name in SETTINGS and name != "SVC_DATA_DIR" and mine[name] != theirs.get(name)]
    if differ:
        text = f"{', '.join(differ)} of this command are not those of the running server"
        found.append(look(about, text, "They are examined when no server runs, and hold after a restart with them"))
    return found, used


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
