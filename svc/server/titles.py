"""Titles of new conversations, made by the model of the first answer after its stream has ended."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from svc.content import conversations
from svc.content.memory import Exchange
from svc.errors import ApiError, describe
from svc.inference.answer import said
from svc.inference.catalog import Model
from svc.inference.chat_call import ChatCall
from svc.inference.model_call import Payer
from svc.server.http.head import Context
from svc.server.sse import Interrupt
from svc.server.state import State

OUTPUT_TOKENS = 24
_READ_CHARACTERS = 2_000  # of the question, and of the answer
_ASKED = (
    "Write a title for this conversation: at most six words, in the language of the question. "
    "Return only the title.\n\nQuestion: {question}\n\nAnswer: {answer}"
)
_QUOTES = "\"'`*#“”„\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}«»「」『』 "


def title_maker(state: State, payer: Payer, model: Model, exchange: Exchange) -> Callable[[str], None] | None:
    """Return a function of the answer's text that begins to make the title, or None if there is none to make.

    The built-in models make none: they are no language models.
    """
    wanted = exchange.makes_title == "always" or (exchange.makes_title == "free" and not model.paid)
    if not wanted or model.provider is None or not exchange.question.strip():
        return None

    def begin(answer: str) -> None:
        if answer.strip():
            task = asyncio.create_task(_make(state, replace(payer, claim=None), model, exchange, answer))
            state.title_tasks.add(task)
            task.add_done_callback(state.title_tasks.discard)

    return begin


async def _make(state: State, payer: Payer, model: Model, exchange: Exchange, answer: str) -> None:
    question = exchange.question
    asked = _ASKED.format(question=question[:_READ_CHARACTERS], answer=answer[:_READ_CHARACTERS])
    body: dict[str, Any] = {"messages": [{"role": "user", "content": asked}], "max_tokens": OUTPUT_TOKENS}
    call = ChatCall(model, body, state.engines, payer, added=("max_tokens",))
    fault = None
    try:
        with Interrupt().over(Context({}, account_id=payer.account_id), state.drain, 0):
            async with call:
                await call.complete()
            if title := made_title(said.text(call.message)):
                where, before = (exchange.account_id, exchange.conversation_id), conversations.title_of(question)
                await state.db.write(conversations.replace_title, *where, before, title)
    except ApiError as error:  # the first words stay
        fault = error.code
    except asyncio.CancelledError:
        fault = "interrupted"
    except Exception as error:
        fault = describe(error)
    with contextlib.suppress(ValueError):  # a closed log
        state.log("title", request_id=call.request_id, account=payer.account_id, error=fault, **call.log_fields)


def made_title(text: str) -> str | None:
    """Return the first line of what the model wrote, without quotes and marks around it, or None if it is blank."""
    lines = (line.strip().strip(_QUOTES) for line in text.strip().splitlines())
    return conversations.title_of(next(filter(None, lines), "").removesuffix("."))
