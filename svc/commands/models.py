"""`svc models …`: the GGUF files that the service runs itself."""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from svc import audit
from svc.commands.database import argument, command, printable, served_settings, writing
from svc.config import Config
from svc.errors import StartError
from svc.inference.catalog_file import on_offer
from svc.inference.local import add
from svc.inference.local.files import scan
from svc.inference.local.models import INSTALL, is_installed
from svc.outbound.client import Outbound
from svc.server import status

_MIB = 1024**2
_SUGGESTED = (
    ("Qwen3-0.6B-Q8_0", "Qwen/Qwen3-0.6B-GGUF", "0.6 GB", "3 GB"),
    ("Qwen3-1.7B-Q8_0", "Qwen/Qwen3-1.7B-GGUF", "1.8 GB", "4 GB"),
    ("Qwen3-4B-Q4_K_M", "Qwen/Qwen3-4B-GGUF", "2.5 GB", "5.5 GB"),
    ("Qwen3-8B-Q4_K_M", "Qwen/Qwen3-8B-GGUF", "5.0 GB", "8 GB"),
)


def _folder(config: Config) -> Path:
    """Return the folder that the running server uses, else that of the settings. Raises StartError."""
    with contextlib.suppress(OSError, ValueError):
        config = served_settings(config) or config
    return on_offer(config).local.folder_in(config.data_dir)


@command(
    "models add",
    "copy or download a GGUF file. The same command continues after an interruption",
    argument("source", help="the path of a file, or an http or https address"),
    argument("--name", help="the name after local/ (the file's name)"),
    argument("--sha256", help="the hash that the file must have"),
    argument("--replace", action="store_true", help="replace a model of this name"),
)
def _add(config: Config, options: argparse.Namespace) -> None:
    folder = _folder(config)
    try:
        order = add.wanted(options.source, folder, options.name, options.sha256, replace=options.replace)
        path = asyncio.run(_added(order))
    except add.NotAdded as refusal:
        raise StartError(f"not added: {printable(str(refusal))}") from None
    except KeyboardInterrupt:
        raise StartError("interrupted. The same command continues") from None
    _audit(config, "model.add", path.name)
    print(f"added {path}. The model is local/{path.stem}")
    if not is_installed(config):
        print(f"to use it, {INSTALL}")


async def _added(order: add.Wanted) -> Path:
    async with contextlib.aclosing(Outbound()) as client:
        return await add.add(order, client, _Progress().show)


class _Progress:
    """A bar on a terminal, and elsewhere one line each 10 %, or each 100 MiB if the size is unknown."""

    def __init__(self) -> None:
        self._step = -1

    def show(self, done: int, size: int | None) -> None:
        text = f"{done // _MIB:,} of {size // _MIB:,} MiB, {done * 100 // size} %" if size else f"{done // _MIB:,} MiB"
        if sys.stdout.isatty():
            filled = done * 40 // size if size else 0
            print(f"\r[{'#' * filled:<40}] {text}", end="\n" if done == size else "", flush=True)
            return
        step = done * 10 // size if size else done // (100 * _MIB)
        if step > self._step:
            self._step = step
            print(text, flush=True)


@command("models list", "list the GGUF files with their sizes and states")
def _list(config: Config, options: argparse.Namespace) -> None:
    states: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):  # without a server there are no states
        states = {one["file"]: one["state"] for one in (status.ask(config.data_dir) or {}).get("local_models", ())}
    for name, file in scan(_folder(config), {}).items():
        if file is None:
            print(f"{printable(name)}\tis no GGUF file")
        else:
            state = states.get(name, "not in use")
            print(f"local/{file.name}\t{file.size_bytes // _MIB:,} MiB\t{state}")


@command("models remove", "delete a GGUF file", argument("name", help="the name, with or without local/"))
def _remove(config: Config, options: argparse.Namespace) -> None:
    folder, name = _folder(config), options.name.removeprefix("local/")
    path = add.file_named(folder, name)
    if path is None:
        raise StartError("there is no such model; 'svc models list' lists them")
    path.unlink()
    _audit(config, "model.remove", path.name)
    print(f"removed {path}")


@command("models suggest", "print four good small models, with address, size, licence and memory needed")
def _suggest(config: Config, options: argparse.Namespace) -> None:
    for name, repository, size, memory in _SUGGESTED:
        print(f"{name}: {size}, needs {memory} of memory, licence Apache-2.0")
        print(f"  svc models add https://huggingface.co/{repository}/resolve/main/{name}.gguf")


def _audit(config: Config, action: str, file: str) -> None:
    """Write to the audit log, if there is a database yet."""
    with contextlib.suppress(StartError), writing(config) as tx:
        audit.add(tx, config.clock(), audit.OPERATOR, action, None, {"file": file})
