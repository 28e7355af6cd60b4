"""The tools of an agent's run on a separate database, for a new account."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import ToolContext, ToolFailure
from svc.auth import accounts
from svc.billing.tool_usage import ToolCounter
from svc.builtin.processes import ProcessPool
from svc.content.artifacts import Home
from svc.db import Database
from svc.fair_queue import OwnPlaces
from svc.inference.model_call import Payer
from svc.outbound.client import Outbound
from svc.server.sse import Interrupt

NOW = 1_790_000_000.0


async def box_of(db: Database, guarded: Outbound, faults: list[BaseException], email: str) -> ToolContext:
    account = await db.write(accounts.add_account, email, None, None, NOW)
    return ToolContext(
        tools=TOOLS,
        home=Home(account.id, None, "run_1"),
        payer=Payer(account.id, "request", None, None),
        engines=SimpleNamespace(  # type: ignore[arg-type]
            db=db, guarded=guarded, clock=lambda: NOW, usage=SimpleNamespace(tools=ToolCounter(db))
        ),
        media=None,  # type: ignore[arg-type] - no tool here draws or speaks
        media_models={},
        places=OwnPlaces(most=32, most_of_one=4),
        paid_calls=[],
        also=lambda tx: None,
        interrupt=Interrupt(),
        on_fault=faults.append,
        pools={"python": ProcessPool("svc.builtin.sandbox"), "pages": ProcessPool("svc.builtin.page")},
        on_inner_step=lambda step: None,
    )


async def failure(box: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolFailure) as raised:
        await box.call(name, arguments)
    orjson.dumps(str(raised.value))
    return str(raised.value)
