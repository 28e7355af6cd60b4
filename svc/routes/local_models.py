"""What administrators do with the GGUF files that the service runs itself: list, add by address, remove."""

import asyncio
import re
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc import audit
from svc.errors import ApiError, invalid_value
from svc.inference.local import add
from svc.inference.local.files import STATES
from svc.inference.local.models import is_installed
from svc.outbound.errors import AddressNotAllowed
from svc.routes.schemas.common import COUNT
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal, path_id
from svc.server.state import State
from svc.server.web import Request
from svc.shapes import boolean, json_object, list_of, matching, nullable, one_of, record, string

describes = partial(Operation, "Administration")
_ADDRESS = "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf"
_URL = matching(re.compile(r"[Hh][Tt][Tt][Pp][Ss]?://[!-~]{1,4000}"), "an http or https address", 4010)
_NAME = matching(add.NAME, "1 to 64 letters, digits, '.', '_' and '-'", 64)
_SHA256 = matching(add.SHA256, "64 hexadecimal digits", 64)
_LOCAL_MODEL = json_object(
    "LocalModel",
    id="local/Qwen3-0.6B-Q8_0",
    file="Qwen3-0.6B-Q8_0.gguf",
    size_bytes=COUNT.about("The size of the file."),
    used_bytes=COUNT.about("The memory of its helper process. 0: it is not loaded."),
    state=one_of(*STATES),
    error=nullable(string).about("Why it failed, with the last lines of its log.", None),
)
_DOWNLOAD = json_object(
    "Download",
    name="Qwen3-0.6B-Q8_0",
    url=_ADDRESS,
    running=boolean.about("Whether it is in progress.", True),
    bytes=COUNT.about("What has arrived."),
    size_bytes=nullable(COUNT).about("The size of the whole file, if it is known."),
    error=nullable(string).about("Why it failed. Null: it did not.", None),
)
_LOCAL_MODELS = json_object(
    "LocalModels",
    installed=boolean.about("Whether the extra `local`, which runs the files, is installed.", True),
    folder=string.about("The folder of the files, on the server.", "/var/lib/svc/models"),
    data=list_of(_LOCAL_MODEL),
    download=nullable(_DOWNLOAD).about("The last download since the start of the server."),
)


@record("AddModelRequest", example={"url": _ADDRESS})
class NewModel(NamedTuple):
    url: Annotated[str, _URL.about("The address of a GGUF file. Redirects are followed.")]
    name: Annotated[str | None, nullable(_NAME).about("The name after `local/`. Null: that of the file.")] = None
    sha256: Annotated[str | None, nullable(_SHA256).about("The hash that the file must have.")] = None
    replace: Annotated[bool, boolean.about("Replace a model of this name.")] = False


@describes(
    "List the local models", "The GGUF files in the folder, and the download.", answer=Answer("All.", _LOCAL_MODELS)
)
async def list_local_models(request: Request, caller: Caller) -> object:
    await request.state.local_models.scan()
    return await _listing(request.state)


async def _listing(state: State) -> dict[str, Any]:
    return {
        "installed": is_installed(state.config),
        "folder": str(state.local_models.folder.absolute()),
        "data": state.local_models.listing(),
        "download": state.downloads.as_json(),
    }


@describes(
    "Add a local model",
    "Downloads a GGUF file in the background, one at a time; `GET /admin/models` shows the progress. An interrupted "
    "download continues when it is added again. The file is listed when it is whole and checked.",
    answer=Answer("The download has begun.", _LOCAL_MODELS, 202),
    errors=[
        Refusal(
            "address_not_allowed",
            param="url",
            when="The address is not https, or not public. If only this machine can reach the service, http and "
            "private addresses are allowed.",
        ),
        Refusal("name_taken", param="name", when="A model has this name, and `replace` is false."),
        Refusal("already_active", "A model is being downloaded. Wait until it has ended.", when="Another one runs."),
    ],
)
async def add_local_model(request: Request, caller: Caller, body: NewModel) -> object:
    state = request.state
    if state.downloads.running:
        raise ApiError("already_active", "A model is being downloaded. Wait until it has ended.")
    local = state.config.local_posture
    order = partial(add.wanted, body.url, state.local_models.folder, body.name, body.sha256)
    try:
        wanted = order(replace=body.replace, any_address=local)
        if not (local or wanted.source.startswith("https://")):
            raise AddressNotAllowed
        await state.fetching.check_address(wanted.source, "")
    except add.NameTaken as refusal:
        raise ApiError("name_taken", str(refusal), param="name") from None
    except add.NotAdded as refusal:
        raise invalid_value(f"{refusal}.", "url" if body.name is None else "name") from None
    except AddressNotAllowed:
        message = "This address is not allowed. Use a public one with https."
        raise ApiError("address_not_allowed", message, param="url") from None
    if state.downloads.running:
        raise ApiError("already_active")
    state.downloads.start(wanted)
    await state.db.write(audit.add, state.clock(), caller.id, "model.add", None, {"file": wanted.path.name})
    return await _listing(state)


@describes(
    "Remove a local model",
    "Deletes the file, or stops its download. Answers in progress are completed first.",
    parameters=[path_id("name", "The name of the file without `.gguf`.", "Qwen3-0.6B-Q8_0")],
    answer=Answer("The file is deleted, or its download has stopped."),
    errors=[Refusal("not_found", "There is no such model.")],
)
async def remove_local_model(request: Request, caller: Caller, name: str) -> None:
    state = request.state
    path = await asyncio.to_thread(add.file_named, state.local_models.folder, name)
    if (running := state.downloads.running) and running.path.stem == name:
        await state.downloads.stop()
    elif path is None:
        raise ApiError("not_found", "There is no such model.")
    else:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        await state.local_models.scan()
    await state.db.write(audit.add, state.clock(), caller.id, "model.remove", None, {"file": f"{name}.gguf"})
