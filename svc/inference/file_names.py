"""Names of model files, which some model servers list by their paths."""

import re
from collections.abc import Iterable

_PATH = r"(?i)(?:[~.]{0,2}[/\\]|[A-Za-z]:[/\\])(?:.*[/\\])?([^/\\]+\.(?:gguf|llamafile))"


def file_of(name: str) -> str | None:
    """Return the name of the file if a model's name is the path of one, as llama.cpp lists it, else None."""
    found = re.fullmatch(_PATH, name)
    return found[1] if found else None


def is_file(name: str) -> bool:
    """Return whether a name may be that of a file whose path a model server lists."""
    return file_of(f"/{name}") == name


def path_to(file: str, names: Iterable[str]) -> str | None:
    """Return the one path among `names` that ends with this name of a file, or None."""
    paths = [name for name in names if file_of(name) == file] if is_file(file) else []
    return paths[0] if len(paths) == 1 else None
