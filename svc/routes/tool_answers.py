"""The answers in which the service runs tools: of session chats, and of other formats with hosted web search."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from svc.agents import loop
from svc.agents.tool_answer import ToolAnswer, Ways
from svc.agents.tools.offered import Offered
from svc.agents.tools.registry import ToolContext
from svc.agents.tools.sources import INSTRUCTION, Sources, sources_of
from svc.agents.tools.web import hosted_search
from svc.content.artifacts import Home
from svc.content.memory import Exchange
from svc.errors import describe
from svc.inference.catalog import Model
from svc.inference.chat_call import CHAT, ChatCall
from svc.inference.claim import Claim
from svc.inference.context_fit import ContextFit
from svc.inference.formats.hosted_search import NAME, HostedSearch
from svc.inference.model_call import Payer
from svc.inference.sent_body import CallerFormat
from svc.json_text import AT_ONCE_BYTES
from svc.server.sse import Interrupt
from svc.server.web import Request, add_log_fields


def with_instruction(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages that say to the model what results are, and how to cite them."""
    first = messages[0] if messages and messages[0]["role"] == "system" else None
    if first is not None and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{INSTRUCTION}"}, *messages[1:]]
    return [{"role": "system", "content": INSTRUCTION}, *messages]


def body_of_rounds(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the request for a model that may call tools; it is always a stream."""
    sent = {name: value for name, value in body.items() if name not in ("stream_options", "n")}
    return {**sent, "messages": with_instruction(body["messages"]), "stream": True, **fields}


def offered_search(search: HostedSearch) -> Offered:
    """Return the hosted search of a request as its only tool."""
    return Offered({NAME: hosted_search(search)}, {})


class AnswerMaker:
    """Makes a ToolAnswer to `body`, and the calls of the model in it. `exchange` is that of a session chat."""

    def __init__(
        self,
        request: Request,
        payer: Payer,
        model: Model,
        tools: Offered,
        added: Collection[str],
        body: dict[str, Any],
        *,
        exchange: Exchange | None = None,
        format: CallerFormat = CHAT,
        fit: ContextFit | None = None,
    ) -> None:
        self._state = request.state
        self._request = request
        self._model, self._tools, self._exchange, self._added = model, tools, exchange, added
        self.body = body
        self._sources = sources_of(exchange.given if exchange else None)
        self._format, self._fit = format, fit
        self._ours_fields = () if exchange is None else ("tools",)  # a key's request has tools of its caller
        self.payer = replace(payer, claim=None)

    def call(self, body: dict[str, Any], heavy: bool) -> ChatCall:
        about: dict[str, Any] = {
            "added": self._added,
            "ours": self._ours_fields,
            "heavy": heavy,
            "format": self._format,
            "fit": self._fit,
        }
        return ChatCall(self._model, body, self._state.engines, self.payer, **about)

    def answer(self, first: ChatCall | None, claim: Claim | None, asked: dict[str, Any], **more: Any) -> ToolAnswer:
        """Return the answer; `asked` is the caller's body, and `first` the first call, if it is made."""
        state, exchange, body = self._state, self._exchange, self.body

        async def ask(messages: list[dict[str, Any]], with_tools: bool) -> ChatCall:
            # A tool that the caller demands is demanded once.
            left_out = ("tool_choice",) if with_tools else ("tools", "tool_choice", "parallel_tool_calls")
            sent = {name: value for name, value in body.items() if name not in left_out}
            sent["messages"] = [*messages]
            heavy = sum(len(str(message.get("content") or "")) for message in messages) > AT_ONCE_BYTES
            make = partial(self.call, sent, heavy)
            return await state.offload.run(self.payer.account_id, make) if heavy else make()

        allowed = exchange.always_allow if exchange else []
        asking = {name for name, tool in self._tools.tools.items() if tool.ask and name not in allowed}
        # In a session all tools are the service's, and the texts of its rounds are one text.
        ours = self._tools.tools.__contains__ if exchange is None else lambda name: True
        ways = Ways(ask, asking.__contains__, ours, apart=exchange is not None)
        versions = {name: tool.version for name, tool in self._tools.tools.items()}
        # With what the conversation has added.
        kept = {name: value for name, value in {**asked, **body}.items() if name not in ("messages", "stream", "tools")}
        inner_steps: loop.InnerSteps = asyncio.Queue()
        usage = exchange is None or bool((asked.get("stream_options") or {}).get("include_usage"))
        return ToolAnswer(
            self._model.id,
            int(state.clock()),
            first,
            [*body["messages"]],
            ways,
            self._context(more.pop("sources", self._sources), inner_steps),
            claim,
            bool(asked.get("stream")),
            usage,
            inner_steps=inner_steps,
            waiting_request=lambda: {
                "body": kept,
                "model": self._model.id,
                "tools": versions,
                "given": self._sources.given,
            },
            **more,
        )

    def _context(self, sources: Sources, inner_steps: loop.InnerSteps) -> ToolContext:
        state, payer = self._state, self.payer
        return ToolContext(
            tools=self._tools.tools,
            home=Home(payer.account_id, self._exchange.project_id if self._exchange else None, None),
            payer=payer,
            engines=state.engines,
            media=state.media,
            media_models=self._tools.media_models,
            places=state.tool_places,
            paid_calls=[],
            also=lambda tx: None,
            interrupt=Interrupt(),  # until the answer has its own
            on_fault=lambda fault: add_log_fields(self._request, level="error", error=describe(fault)),
            pools=state.process_pools,
            on_inner_step=inner_steps.put_nowait,
            sources=sources,
        )
