"""Saved prompts: the caller's own, and those that administrators share with a group or with everyone."""

from functools import partial

from svc.content import prompts
from svc.errors import invalid_value
from svc.routes.schemas.common import COUNT, NO_ROOM, TIMES, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal, paged
from svc.server.limits import MIB
from svc.server.web import Request, read_page
from svc.shapes import json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Prompts")
_PROMPT = json_object("Prompt", id=id_of("prm"), name="Translate", text="Translate into {{language}}:", **TIMES)
_SHARED = json_object(
    "SharedPrompt",
    group=nullable(string).about("The group that has it. Null: everyone.", None),
    name="Tone",
    text="Be kind.",
)
_SHARED_LIST = Answer(
    "The prompts in one page.", json_object("SharedPromptList", object=one_of("list"), data=list_of(_SHARED))
)
_IMPORTED = json_object(
    "ImportedPrompts",
    imported=COUNT.about("How many are stored."),
    skipped=list_of(string).about("The names that the account, or the file before them, has. These are not stored."),
)
_NAME_TAKEN = Refusal("name_taken", "There is a prompt with this name. Choose another one.", "name")
_FULL = Refusal("quota_exceeded", f"There are {prompts.MOST} prompts, the maximum. Delete some first.")


@describes(
    "Create a prompt",
    "A repeated request is 409 `name_taken`, so that nothing is stored twice.",
    answer=Answer("The prompt.", _PROMPT, 201),
    errors=[_NAME_TAKEN, _FULL],
)
async def create_prompt(request: Request, caller: Caller, body: prompts.NewPrompt) -> object:
    return await request.state.db.write(prompts.add_prompt, caller.id, body, request.state.clock())


@describes("List the prompts", answer=paged("A page of prompts.", "PromptList", _PROMPT))
async def list_prompts(request: Request, caller: Caller) -> object:
    return await read_page(request, prompts.TABLE.page, caller.id)


@describes("Show a prompt", answer=Answer("The prompt.", _PROMPT))
async def get_prompt(request: Request, caller: Caller, prompt_id: str) -> object:
    return await request.state.db.read(prompts.TABLE.by_id, caller.id, prompt_id)


@describes("Change a prompt", answer=Answer("The changed prompt.", _PROMPT), errors=[_NAME_TAKEN, NO_ROOM])
async def update_prompt(request: Request, caller: Caller, prompt_id: str, body: prompts.PromptChanges) -> object:
    return await request.state.db.write(prompts.change_prompt, caller.id, prompt_id, body, request.state.clock())


@describes("Delete a prompt", answer=Answer("The prompt is deleted."))
async def delete_prompt(request: Request, caller: Caller, prompt_id: str) -> None:
    await request.state.db.write(prompts.TABLE.delete, caller.id, prompt_id)


@describes(
    "Import prompts",
    "All or none are stored. Prompts whose name exists stay as they are, so that a repeated request changes nothing. "
    "Lists of prompts have other fields too, which are ignored.",
    answer=Answer("What was stored.", _IMPORTED),
    errors=[_FULL],
)
async def import_prompts(request: Request, caller: Caller, body: prompts.PromptImport) -> object:
    return await request.state.db.write(prompts.import_prompts, caller.id, body.prompts, request.state.clock())


@describes(
    "List the prompts that are shared with the account",
    "Those of its group and those for everyone.",
    answer=_SHARED_LIST,
)
async def list_shared_prompts(request: Request, caller: Caller) -> object:
    group = caller.group.name if caller.group else ""
    return {"object": "list", "data": await request.state.db.read(prompts.shared, group)}


describes = partial(Operation, "Administration")


@describes("List the prompts of all groups", "Also of groups that the catalog no longer has.", answer=_SHARED_LIST)
async def list_all_shared_prompts(request: Request, caller: Caller) -> object:
    return {"object": "list", "data": await request.state.db.read(prompts.shared, None)}


@describes(
    "Replace the prompts of a group or for everyone",
    "Only administrators change shared prompts. An empty list deletes them.",
    answer=Answer("The prompts of all groups.", _SHARED_LIST.shape),
    errors=[Refusal("invalid_value", "There is no group 'x' in the catalog.", "group"), _NAME_TAKEN],
    most_bytes=4 * MIB,
)
async def share_prompts(request: Request, caller: Caller, body: prompts.SharedPrompts) -> object:
    state = request.state
    groups = state.models.catalog.groups
    if body.prompts and body.group not in (None, *(groups.by_name if groups else ())):
        raise invalid_value(f"There is no group {body.group!r} in the catalog.", "group")
    await state.db.write(prompts.share, caller.id, body, state.clock())
    return await list_all_shared_prompts(request, caller)
