"""A digest of each operation of the interface document. `python -m tests.support.interface_digest` prints them for a
release.
"""

import hashlib
import json
from typing import Any

from tests.support.openapi import DOCUMENT, resolved

_TEXTS = frozenset({"summary", "description", "example", "examples"})


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
    print("\n".join(f"{digest} {operation}" for operation, digest in sorted(digests().items())))
