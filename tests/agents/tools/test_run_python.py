"""run_python in a run: the other tools as functions, with their prices, steps and limits."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import AgentTool, ToolContext
from svc.billing import wallet
from svc.builtin import sandbox
from svc.builtin.processes import ProcessPool
from svc.config import Config
from svc.shapes import text
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.escapes import QUICK
from tests.support.money import assert_exact, watch
from tests.support.search_engine import FOUND, SearchEngine
from tests.support.toolboxes import failure
from tests.support.voice import until_children
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sandbox.binary() is None, reason="needs the extra python")

PRICE = 1_000


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("tavily") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with serving(config, clocks, engine.catalog(PRICE)) as service:
        watch(service.config.data_dir / "service.db")
        yield service


@pytest.fixture
async def person(service: Service) -> dict[str, str]:
    """Headers of an account that can pay for 25 searches."""
    session = await service.sign_up()
    await service.state["db"].write(wallet.book, session["user"]["id"], 25 * PRICE, description="", now_seconds=1.0)
    return bearer(session["access_token"])


async def run(service: Service, headers: dict[str, str], code: str) -> list[dict[str, Any]]:
    goal = f"tool run_python {orjson.dumps({'code': code}).decode()}\n---\nsay done"
    body = {"goal": goal, "model": "builtin/script"}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert_exact(service.config.data_dir / "service.db")
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1]]


async def test_twenty_calls_cost_one_step_and_show_below_it(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    code = "found = [search_web(f'q{n}') for n in range(20)]\nprint(len(found))\nfound[7][0]['title']"
    events = await run(service, person, code)
    last = events[-1]
    assert (last["type"], last["steps"], last["cost_micros"]) == ("final", 2, 20 * PRICE)
    assert [asked.query for asked in engine.requests] == [f"q{n}" for n in range(20)]
    outer = next(event for event in events if event["type"] == "tool_call")
    inner = [event for event in events if event.get("within") == outer["id"]]
    assert [event["type"] for event in inner] == ["tool_call", "tool_result"] * 20
    assert [event["arguments"] for event in inner[::2]] == [{"query": f"q{n}"} for n in range(20)]
    assert len({event["id"] for event in inner}) == 20 and all(event["ok"] for event in inner[1::2])
    assert inner[1]["result"][0]["url"] == FOUND[0][1]
    result = next(event for event in events if event["type"] == "tool_result" and event["id"] == outer["id"])
    assert (result["ok"], result["result"]) == (True, {"output": "20\n", "value": FOUND[0][0]})
    record = (await service.client.get(f"/v1/agents/runs/{last['run_id']}", headers=person)).json()
    kept = [event for event in record["events"] if event.get("within") == outer["id"]]
    assert len(kept) == 40 and record["cost_micros"] == 20 * PRICE
    assert record["events"] == [event for event in events if event["type"] != "delta"]


async def test_inner_call_that_the_wallet_cannot_pay_ends_the_run(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    code = "try:\n    for n in range(60): search_web('q')\nexcept Exception:\n    print('caught')"
    last = (await run(service, person, code))[-1]
    assert (last["type"], last["error"]["code"], last["cost_micros"]) == ("error", "insufficient_funds", 25 * PRICE)
    assert len(engine.requests) == 25
    await until_children(0)


async def test_failure_of_a_tool_is_an_exception_and_costs_nothing(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    engine.status = 429
    code = "try:\n    search_web('q')\nexcept RuntimeError as error:\n    print(error)\nsearch_web(nothing=1)"
    events = await run(service, person, code)
    (result,) = [event for event in events if event["type"] == "tool_result" and "within" not in event]
    assert not result["ok"] and result["result"].startswith("The quota of the search engine is used up")
    assert result["result"].splitlines()[-1].startswith("RuntimeError: search_web has no argument 'nothing'")
    assert events[-1]["type"] == "final" and events[-1]["cost_micros"] == 0


async def test_files_of_the_account_are_read_by_a_function(service: Service, person: dict[str, str]) -> None:
    body = {"name": "data.csv", "content": "a,b\n1,2\n3,4\n" * 5_000}
    made = (await service.client.post("/artifacts", json=body, headers=person)).json()
    code = f"rows = read_artifact('{made['id']}').splitlines()\nprint(list_artifacts()[0]['name'])\nlen(rows)"
    events = await run(service, person, code)
    (result,) = [event for event in events if event["type"] == "tool_result" and "within" not in event]
    assert result["result"] == {"output": "data.csv\n", "value": 15_000}, "the function returns more than 32 KiB"
    inner = next(event for event in events if event["type"] == "tool_result" and event.get("name") == "read_artifact")
    assert len(inner["result"]) <= 4_096


async def test_stopped_run_ends_the_code_and_its_inner_call(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    engine.play = silent
    running = asyncio.create_task(run(service, person, "search_web('q')"))
    await until(lambda: engine.requests)
    (open_run,) = (await service.client.get("/v1/agents/runs", headers=person)).json()["data"]
    await service.client.post(f"/v1/agents/runs/{open_run['id']}/stop", headers=person)
    last = (await running)[-1]
    assert (last["type"], last["cost_micros"]) == ("stopped", 0)
    await until_children(0)


# --- without HTTP: tools that no caller has yet


async def test_tool_that_needs_an_approval_is_not_called_and_dashes_become_underscores(box: ToolContext) -> None:
    called = []

    async def send(context: ToolContext, body: str) -> str:
        called.append(body)
        return body.upper()

    asks = AgentTool("lab__send-mail", "Sends.", {"body": text(100)}, send, ask=True)
    free = AgentTool("lab__find-it", "Finds.", {"body": text(100)}, send)
    box = replace(box, tools={"run_python": TOOLS["run_python"], asks.name: asks, free.name: free})
    found = await box.call("run_python", {"code": "lab__find_it('x')"})
    assert found == {"output": "", "value": "X"} and called == ["x"]
    told = await failure(box, "run_python", {"code": "print('a')\nlab__send_mail('x')"})
    assert told == "a\nRuntimeError: lab__send_mail needs an approval. Call it as a tool, not in Python."
    assert "NameError" in await failure(box, "run_python", {"code": "run_python('1')"}) and called == ["x"]


async def test_tool_of_a_server_gets_its_arguments_as_json(box: ToolContext) -> None:
    async def echo(context: ToolContext, written: str) -> str:
        return written

    bare = AgentTool("lab__a-b", "Echoes.", {}, echo, schema={"type": "object"})
    named = AgentTool("lab__a_b", "Echoes.", {}, echo, schema={"type": "object", "properties": {"n": {}, "m": {}}})
    for tools, code, value in (
        ((bare,), "lab__a_b(x=[1])", '{"x":[1]}'),
        ((named, bare), "lab__a_b(1, 2)", '{"n":1,"m":2}'),
    ):
        offered = {"run_python": TOOLS["run_python"], **{tool.name: tool for tool in tools}}
        assert (await replace(box, tools=offered).call("run_python", {"code": code}))["value"] == value
    told = await failure(replace(box, tools=offered | {bare.name: bare}), "run_python", {"code": "lab__a_b(1, 2, 3)"})
    assert told == "TypeError: lab__a_b() takes 2 arguments (n, m)"


async def test_code_may_call_tools_a_hundred_times(box: ToolContext) -> None:
    code = "n = 0\nwhile True:\n    calculate('1 + 1')\n    n += 1\n    print(n)"
    told = await failure(box, "run_python", {"code": code})
    assert told.splitlines()[-2:] == ["100", "RuntimeError: The code may call tools 100 times."]


async def test_inner_calls_need_no_place(box: ToolContext) -> None:
    """Four calls have all places of the account. Each makes calls itself."""
    calls = (box.call("run_python", {"code": "[calculate(f'{n} * 2') for n in range(5)]"}) for _ in range(5))
    assert [found["value"] for found in await asyncio.gather(*calls)] == [["0", "2", "4", "6", "8"]] * 5


async def test_killed_process_is_a_failure(box: ToolContext) -> None:
    box = replace(box, pools={"python": ProcessPool("svc.builtin.documents")})  # a module that answers nothing
    assert "stopped at a limit" in await failure(box, "run_python", {"code": "1"})


@each("code", QUICK[::18])
async def test_code_does_not_leave_the_sandbox(box: ToolContext, faults: list[BaseException], code: str) -> None:
    """A part of the programs; test_run_python_process.py plays all of them."""
    try:
        await box.call("run_python", {"code": code.replace("FILE", "/etc/passwd")})
    except Exception as error:
        assert type(error).__name__ == "ToolFailure" and "root:" not in str(error)
    assert faults == []
