"""What a valid catalog probably does not mean: `svc doctor` prints it, and `svc reload` when it reads the catalog."""

import fnmatch
from collections.abc import Iterator, Mapping

from svc.admin.health import Finding
from svc.groups import Group
from svc.inference.catalog import BUILTIN, LOCAL, Catalog


def notes(catalog: Catalog, in_use: Mapping[str, int]) -> Iterator[Finding]:
    """Yield what to check. `in_use` has the number of accounts by the name of their group."""
    for model_id, fallback_id in catalog.dearer_fallbacks():
        yield Finding("look", f"model {model_id}", f"its fallback {fallback_id} costs more, so it is never used")
    if catalog.hearing_folder and catalog.configured(f"{BUILTIN}/whisper-tiny") is None:
        yield Finding("look", "[hearing]", "its folder is not used. Install the extra 'hearing'")
    groups = catalog.groups
    for name, number in in_use.items():
        if groups is None or name not in groups.by_name:
            text = f"it is not in the catalog. Its {number} accounts have what [access] allows"
            yield Finding("look", f"group {name}", text)
    if groups is None:
        return
    for group in (groups.access, *groups.by_name.values()):
        about = f"group {group.name or '[access]'}"
        if group.name and not in_use.get(group.name):
            yield Finding("look", about, "it has no accounts")
        default = catalog.configured(catalog.default_model(group) or f"{BUILTIN}/assistant")
        if default and not group.allows(default.id):
            yield Finding("look", about, f"it may not use {default.id}, so requests without a model fail")
        for pattern in _without_models(group, catalog):
            yield Finding("look", about, f"no model is named {pattern}")


def _without_models(group: Group, catalog: Catalog) -> Iterator[str]:
    """Yield the patterns that match no model. A provider that lists its own models may have any."""
    listed = [*catalog.listed_names(), LOCAL]  # files may come at any time
    for pattern in group.models:
        of_listed = any(fnmatch.fnmatchcase(name, pattern.partition("/")[0]) for name in listed)
        if not of_listed and not any(fnmatch.fnmatch(model_id, pattern) for model_id in catalog.configured_ids()):
            yield pattern
