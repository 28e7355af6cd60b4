"""The models of all GGUF files in the folder: they are found within 10 seconds, and share the memory."""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from svc.config import Config
from svc.errors import describe
from svc.inference.catalog import Catalog
from svc.inference.local.files import LocalSettings, ModelFile, scan
from svc.inference.local.model import HELPER, LocalModel

INSTALL = "install the extra 'local', for example with: pip install 'svc[local]'"
_SCAN_SECONDS = 5.0
_UNKNOWN = object()


def is_installed(config: Config) -> bool:
    return bool(config.local_helper) or _has_bindings()


@cache
def _has_bindings() -> bool:
    return find_spec("xllamacpp") is not None


class LocalModels:
    """Offers the files of the folder in the catalog. `log` is that of the service."""

    def __init__(self, config: Config, catalog: Catalog, log: Callable[..., None]) -> None:
        self._config, self._catalog, self._log = config, catalog, log
        self._command = config.local_helper or HELPER
        self._settings = LocalSettings()
        self._files: dict[str, ModelFile | None] = {}
        self._models: dict[str, LocalModel] = {}  # by the name of the file
        self._old: set[LocalModel] = set()  # no longer offered, and with a helper process
        self._scanning = asyncio.Lock()
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Offer the files of the folder, and look for changes from now on."""
        await self.scan()
        if is_installed(self._config):
            self._ticking = asyncio.create_task(self._tick())
        elif found := [name for name, one in (await self._listed()).items() if one]:
            self._log("local_models", level="warning", message=f"{found[0]} cannot be used: {INSTALL}")

    async def close(self) -> None:
        """End all helper processes."""
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.gather(*(model.unload() for model in self._running()))

    async def reload(self) -> None:
        """Use the settings of the catalog as it is now, and try again what has failed."""
        for model in self._models.values():
            model.forget_failure()
        await self.scan()

    async def scan(self) -> None:
        """Offer the files that are in the folder now, if they can be run."""
        if not is_installed(self._config):
            return
        async with self._scanning:
            found, settings = await self._listed(), self._catalog.local
            if found == self._files and settings == self._settings:
                return
            for name in (name for name, one in found.items() if one is None):
                if self._files.get(name, _UNKNOWN) is not None:
                    self._log("local_models", level="warning", message=f"{name} is no GGUF file and is not listed")
            files = {name: one for name, one in found.items() if one is not None}
            old, self._models = self._models, {}
            for name, file in files.items():
                known = old.get(name)
                same = known is not None and known.file == file and settings == self._settings
                self._models[name] = known if known and same else self._model(file, settings)
            self._files, self._settings = found, settings
            for model in set(old.values()) - set(self._models.values()):
                model.drop()
                self._old.add(model)
            self._catalog.offer_local([model.model for model in self._models.values()])

    @property
    def folder(self) -> Path:
        return self._catalog.local.folder_in(self._config.data_dir)

    def listing(self) -> list[dict[str, Any]]:
        """Return the models with their states, for administrators and `svc status`."""
        return [
            {
                "id": model.model.id,
                "file": model.file.path.name,
                "size_bytes": model.file.size_bytes,
                "used_bytes": model.used_bytes(),
                "state": model.state,
                "error": model.error,
            }
            for model in self._models.values()
        ]

    def _model(self, file: ModelFile, settings: LocalSettings) -> LocalModel:
        return LocalModel(file, settings, self._command, self._make_room, self._config.monotonic)

    async def _listed(self) -> dict[str, ModelFile | None]:
        return await asyncio.to_thread(scan, self.folder, self._files)

    def _running(self) -> Iterator[LocalModel]:
        self._old = {model for model in self._old if model.is_running}
        return (model for model in (*self._models.values(), *self._old) if model.is_running)

    async def _make_room(self, wanted: LocalModel) -> bool:
        """Unload the models that were idle longest until there is memory for this one. Return whether there is."""
        while True:
            others = [model for model in self._running() if model is not wanted]
            needed = wanted.file.size_bytes + sum(model.used_bytes() for model in others)
            if needed <= self._settings.most_bytes:
                return True
            idle = [model for model in others if model.is_idle]
            if not idle:
                return False
            await min(idle, key=lambda model: model.idle_since).unload()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_SCAN_SECONDS)
            try:
                await self.scan()
                for model in self._models.values():
                    model.check()
            except Exception as error:  # the next scan may succeed
                self._log("local_models", level="error", error=describe(error))
