"""The shape of the web application's scripts: line length and imports. Biome and tsc check the rest
(tests/web/package.json).
"""

import re
from graphlib import TopologicalSorter
from pathlib import Path

from tests.support.schema_types import type_of

STATIC = Path(__file__).parent.parent.parent / "svc" / "static"
SCRIPTS = sorted([*STATIC.glob("*.js"), *(STATIC / "app").rglob("*.js")])


def test_scripts_do_not_import_one_another_in_a_circle() -> None:
    graph = {
        path.resolve(): {
            (path.parent / name).resolve()
            for name in re.findall(r"""\b(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""", path.read_text())
        }
        for path in SCRIPTS
    }
    assert graph.keys() >= set().union(*graph.values())
    assert len(list(TopologicalSorter(graph).static_order())) == len(SCRIPTS)  # raises CycleError


def test_a_line_has_at_most_110_characters() -> None:
    lines = ((path, number, line) for path in SCRIPTS for number, line in enumerate(path.read_text().splitlines(), 1))
    assert [f"{path.relative_to(STATIC)}:{number}" for path, number, line in lines if len(line) > 110] == []


def test_schema_types_check_the_scripts() -> None:
    fields = {
        "id": {"$ref": "#/components/schemas/Id"},
        "n": {"type": ["integer", "null"]},
        "kind": {"enum": ["a", "b"]},
    }
    schema = {"type": "array", "items": {"type": "object", "required": ["id"], "properties": fields}}
    assert type_of(schema) == 'Array<{ id: Id; n?: number | null; kind?: "a" | "b" }>'
