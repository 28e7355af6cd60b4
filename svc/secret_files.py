"""Secrets in files: `<NAME>_FILE` names a file with the secret setting `<NAME>`, as systemd and containers provide them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from svc.errors import StartError

SECRET_FILE_BYTES = 16 * 1024
_SUFFIX = "_FILE"


def with_secret_files(environ: Mapping[str, str], is_secret: Callable[[str], bool]) -> dict[str, str]:
    """Return `environ` with `<NAME>` in place of each `<NAME>_FILE` of a setting that `is_secret`; empty values are ignored.

    Raises StartError. Its text does not quote the path, because an operator may have put the secret there by mistake.
    """
    found = dict(environ)
    for name_of_file in sorted(environ):
        name = name_of_file.removesuffix(_SUFFIX)
        if name == name_of_file or not is_secret(name):
            continue
        path = found.pop(name_of_file).strip()
        if not path:
            continue
        if environ.get(name, "").strip():
            raise StartError(f"{name} and {name_of_file} are both set: keep one of them")
        found[name] = _read(name_of_file, path)
    return found


def _read(setting: str, path: str) -> str:
    try:
        if not Path(path).is_file():  # opening a named pipe could block without end
            raise StartError(f"{setting}: there is no such file")
        with Path(path).open("rb") as file:
            content = file.read(SECRET_FILE_BYTES + 1)
    except OSError as error:
        raise StartError(f"{setting}: the file cannot be read: {str(error.strerror).lower()}") from None
    if len(content) > SECRET_FILE_BYTES:
        raise StartError(f"{setting}: the file has more than {SECRET_FILE_BYTES} bytes, too many for a secret of one line")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise StartError(f"{setting}: the file is no UTF-8 text") from None
    if not text:
        raise StartError(f"{setting}: the file is empty")
    return text
