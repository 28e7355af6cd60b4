"""svc/admin/catalog_notes.py: what `svc doctor` and `svc reload` say about a catalog that is valid."""

from pathlib import Path

from svc.admin.catalog_notes import notes
from svc.inference.catalog import Catalog, ListedModels, Provider
from svc.inference.catalog_file import read_file
from tests.support.cases import each

MODELS = """
[[providers]]
name = "lab"
base_url = "http://127.0.0.1:1/v1"
models = [
    {id = "cheap", input_micros_per_million_tokens = 1, fallback = "lab/dear"},
    {id = "dear", input_micros_per_million_tokens = 2, fallback = "lab/cheap"},
]
"""
LISTED = """
[[providers]]
name = "listed"
base_url = "http://127.0.0.1:1/v1"
"""
DEFAULT = "default_model = 'lab/cheap'\n"
FALLBACK = ("model lab/cheap", "its fallback lab/dear costs more, so it is never used")


async def unasked(provider: Provider) -> ListedModels:
    raise AssertionError("notes ask no model server")


@each(
    ("text", "in_use", "expected"),
    [
        (DEFAULT + MODELS, {}, [FALLBACK]),
        (DEFAULT + MODELS, {"a": 2}, [FALLBACK, ("group a", "it is not in the catalog. Its 2 accounts have what [access] allows")]),
        (DEFAULT + MODELS + "[[groups]]\nname = 'a'", {"a": 1}, [FALLBACK]),
        (DEFAULT + MODELS + "[[groups]]\nname = 'a'", {}, [FALLBACK, ("group a", "it has no accounts")]),
        (
            DEFAULT + MODELS + "[access]\nmodels = ['lab/c*', 'lba/*', '*']",
            {},
            [FALLBACK, ("group [access]", "no model is named lba/*")],
        ),
        (
            DEFAULT + MODELS + "[access]\nmodels = ['lab/dear']",
            {},
            [FALLBACK, ("group [access]", "it may not use lab/cheap, so requests without a model fail")],
        ),
        ("default_model = 'listed/x'\n" + LISTED + "[access]\nmodels = ['listed/x', 'l*/y', 'x']", {}, [("group [access]", "no model is named x")]),
    ],
)  # fmt: skip
def test_likely_mistakes_of_a_valid_catalog_are_named(
    tmp_path: Path, text: str, in_use: dict[str, int], expected: list[tuple[str, str]]
) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    found = list(notes(Catalog(read_file(path, {}), unasked, 0), in_use))
    assert [(note.about, note.text) for note in found] == expected and {note.grade for note in found} <= {"look"}
