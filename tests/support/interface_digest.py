"""A digest of each operation of the interface document, and the names of settings, commands and tools.
`python -m tests.support.interface_digest` prints them for a release.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from svc import cli
from svc.agents.tools.offered import TOOLS
from svc.config import SETTINGS
from tests.support.openapi import DOCUMENT, resolved

_TEXTS = frozenset({"summary", "description", "example", "examples"})


def commands(parser: argparse.ArgumentParser, *words: str) -> Iterator[str]:
    """Yield the names of the commands, `user add` for one of a group."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for name, inner in ((name, inner) for group in groups for name, inner in group.choices.items()):
        yield from commands(inner, *words, name)
    if not groups:
        yield " ".join(words)


COMMANDS = list(commands(cli._parser()))


def interface() -> dict[str, str]:
    """Return the digests, and `-` for each setting, command and tool."""
    kinds = {"command": COMMANDS, "setting": SETTINGS, "tool": TOOLS}
    names = (f"{kind} {name}" for kind, found in kinds.items() for name in found)
    return {**digests(), **dict.fromkeys(names, "-")}


def digests() -> dict[str, str]:
    """Return the digest of each operation by its method and path. Texts and examples do not count."""
    return {
        f"{method.upper()} {path}": hashlib.sha256(json.dumps(_rules(operation), sort_keys=True).encode()).hexdigest()[
            :16
        ]
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
    }


def _rules(value: Any, named: bool = False, inside: tuple[str, ...] = ()) -> Any:
    """Return `value` with its references resolved. `named`: the keys are names of fields, not words of the document."""
    if isinstance(value, list):
        return [_rules(item, False, inside) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return reference if reference in inside else _rules(resolved(value), named, (*inside, reference))
    return {key: _rules(item, key == "properties", inside) for key, item in value.items() if named or key not in _TEXTS}


if __name__ == "__main__":
    print("\n".join(f"{digest} {operation}" for operation, digest in interface().items()))
