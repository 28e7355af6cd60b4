"""One GGUF file as a model, through HTTP: its states, the turns of its calls, crashes, and what they cost."""

import asyncio
import dataclasses
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc import cli
from svc.billing import wallet
from svc.config import Config
from svc.inference.local import model as local_model
from svc.server.sse import EventStream
from tests.billing.test_wallet import findings
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.fake_llama import COMMAND, gguf
from tests.support.loop_clock import advance_loop
from tests.support.waiting import run_ready, until

PRICED = """
[[local.models]]
file = "priced.gguf"
input_micros_per_million_tokens = 1000000
output_micros_per_million_tokens = 2000000
"""


@pytest.fixture
def folder(config: Config) -> Path:
    folder = config.data_dir.parent / "models"
    folder.mkdir()
    return folder


@pytest.fixture
async def lab(config: Config, clocks: Clocks, folder: Path) -> AsyncIterator[Service]:
    catalog = f"[local]\nfolder = '{folder}'\n{PRICED}"
    async with serving(dataclasses.replace(config, local_helper=COMMAND), clocks, catalog) as service:
        yield service


async def key_of(lab: Service) -> dict[str, str]:
    return bearer((await lab.make_key(await lab.bearer()))["key"])


async def put(lab: Service, folder: Path, name: str, text: str = "") -> None:
    (folder / f"{name}.gguf").write_bytes(gguf(text))
    await lab.state["local_models"].scan()


async def state_of(lab: Service, key: dict[str, str], name: str) -> str:
    answer = await lab.client.get(f"/v1/models/local/{name}", headers=key)
    return str(answer.json()["state"])


def model_of(lab: Service, name: str) -> local_model.LocalModel:
    found = lab.state["local_models"]._models[f"{name}.gguf"]
    assert isinstance(found, local_model.LocalModel)
    return found


async def chat(lab: Service, key: dict[str, str], text: str, name: str = "one", **more: Any) -> httpx.Response:
    body = {"model": f"local/{name}", "messages": [{"role": "user", "content": text}], **more}
    return await lab.client.post("/v1/chat/completions", json=body, headers=key)


def said(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"]).strip()


async def test_first_question_loads_the_model_and_the_state_shows_it(lab: Service, folder: Path) -> None:
    key, go = await key_of(lab), folder / "go"
    await put(lab, folder, "one", f"wait {go}")
    assert await state_of(lab, key, "one") == "unloaded"
    asking = asyncio.create_task(chat(lab, key, "hello you"))
    await until(lambda: model_of(lab, "one").state == "loading")
    assert await state_of(lab, key, "one") == "loading"
    go.touch()
    assert said(await asking) == "hello you"
    assert await state_of(lab, key, "one") == "ready"
    streamed = await chat(lab, key, "hello you", stream=True)
    assert streamed.status_code == 200 and streamed.text.endswith("data: [DONE]\n\n")


async def test_a_stream_pings_while_the_model_loads(
    lab: Service, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EventStream.__init__.__kwdefaults__, "ping_seconds", 0.01)
    key, go = await key_of(lab), folder / "go"
    await put(lab, folder, "one", f"wait {go}")
    asking = asyncio.create_task(chat(lab, key, "hello you", stream=True))
    await until(lambda: lab.state["drain"].open)
    asyncio.get_running_loop().call_later(0.1, go.touch)
    answer = await asking
    assert answer.text.startswith(": ping\n\n") and answer.text.endswith("data: [DONE]\n\n")


async def test_at_most_parallel_calls_are_given_to_the_helper(lab: Service, folder: Path) -> None:
    await put(lab, folder, "one")
    keys, go = [await key_of(lab) for _ in range(3)], folder / "go"
    texts = [f"touch {folder}/begun{number} wait {go} most" for number in range(6)]
    asking = [asyncio.create_task(chat(lab, keys[number % 3], text)) for number, text in enumerate(texts)]
    await until(lambda: model_of(lab, "one").calls == 6)
    await until(lambda: len(list(folder.glob("begun*"))) == 2)
    go.touch()
    assert {said(answer) for answer in await asyncio.gather(*asking)} == {"most=2"}
    assert model_of(lab, "one").calls == 0


async def test_four_streams_at_once_are_whole_and_those_that_wait_have_a_ping_every_15_seconds(
    lab: Service, folder: Path
) -> None:
    await put(lab, folder, "one")
    keys, go = [await key_of(lab) for _ in range(2)], folder / "go"
    said(await chat(lab, keys[0], "hello"))
    texts = [f"touch {folder}/begun{number} hello wait {go} you most" for number in range(4)]
    asking = [asyncio.create_task(chat(lab, keys[number % 2], text, stream=True)) for number, text in enumerate(texts)]
    await until(lambda: model_of(lab, "one").calls == 4 and len(list(folder.glob("begun*"))) == 2)
    await until(lambda: len(lab.state["drain"].open) == 4)
    waiting = [number for number in range(4) if not (folder / f"begun{number}").exists()]
    for seconds in (14.0, 2.0, 15.0):
        advance_loop(seconds)
        await run_ready()
    go.touch()
    answers = [answer.text for answer in await asyncio.gather(*asking)]
    assert all(text.endswith("data: [DONE]\n\n") and "most=2" in text for text in answers)
    assert [answers[number].split("data:")[0] for number in waiting] == [": ping\n\n" * 2] * 2


async def test_parallel_of_the_catalog_is_how_many_streams_are_answered_at_once(
    config: Config, clocks: Clocks, folder: Path
) -> None:
    catalog = f"[local]\nfolder = '{folder}'\nparallel = 4"
    async with serving(dataclasses.replace(config, local_helper=COMMAND), clocks, catalog) as service:
        await put(service, folder, "one")
        key, go = await key_of(service), folder / "go"
        texts = [f"touch {folder}/begun{number} wait {go} most" for number in range(4)]
        asking = [asyncio.create_task(chat(service, key, text, stream=True)) for text in texts]
        await until(lambda: len(list(folder.glob("begun*"))) == 4)
        go.touch()
        assert all("most=4" in answer.text for answer in await asyncio.gather(*asking))


async def test_helper_gets_the_settings_and_their_defaults(config: Config, clocks: Clocks, folder: Path) -> None:
    asked = "order context_length order parallel order threads order gpu_layers"
    defaults = f"8192 2 {max((os.cpu_count() or 1) - 1, 1)} None"
    own = "context_length = 64\nparallel = 3\nthreads = 5\ngpu_layers = 7"
    for name, lines, expected in (("a", "", defaults), ("b", own, "64 3 5 7")):
        (config.data_dir.parent / name).mkdir()
        data = dataclasses.replace(config, local_helper=COMMAND, data_dir=config.data_dir.parent / name / "data")
        async with serving(data, clocks, f"[local]\nfolder = '{folder}'\n{lines}") as service:
            await put(service, folder, "one")
            assert said(await chat(service, await key_of(service), asked)) == expected


async def test_failed_model_is_named_by_status_and_doctor(
    lab: Service, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(lab.config.data_dir))
    await put(lab, folder, "one", "refuse tensor missing")
    await chat(lab, await key_of(lab), "hello")
    assert await asyncio.to_thread(cli.main, ["status"]) == 0
    shown = [line[24:] for line in capsys.readouterr().out.splitlines() if line.startswith("local model")]
    assert shown[:2] == ["local/one: failed", "the helper process ended with status 1"] and "tensor missing" in shown
    await asyncio.to_thread(cli.main, ["doctor"])
    (found,) = [line for line in capsys.readouterr().out.splitlines() if "model local/one" in line]
    assert "tensor missing" in found


async def test_accounts_alternate(lab: Service, folder: Path) -> None:
    await put(lab, folder, "one")
    busy, other, order = await key_of(lab), await key_of(lab), list[str]()

    async def ask(name: str, key: dict[str, str], text: str) -> None:
        said(await chat(lab, key, text))
        order.append(name)

    gates = [folder / f"gate{number}" for number in range(2)]
    tasks = [asyncio.create_task(ask("busy", busy, f"wait {gate}")) for gate in gates]
    await until(lambda: model_of(lab, "one").calls == 2)
    tasks += [asyncio.create_task(ask("busy", busy, "x")) for _ in range(4)]
    await until(lambda: model_of(lab, "one").calls == 6)
    tasks.append(asyncio.create_task(ask("other", other, "x")))
    await until(lambda: model_of(lab, "one").calls == 7)
    gates[0].touch()
    await until(lambda: len(order) >= 2)
    assert order[:2] == ["busy", "other"]
    gates[1].touch()
    await asyncio.gather(*tasks)


async def refused_after(seconds: float, lab: Service, key: dict[str, str], calls: int) -> httpx.Response:
    """Ask, and return the refusal that comes when the call has waited for so long, as the last of `calls`."""
    asking = asyncio.create_task(chat(lab, key, "hello"))
    await until(lambda: model_of(lab, "one").calls == calls)
    await run_ready()
    advance_loop(seconds - 1)
    await run_ready()
    assert not asking.done()
    advance_loop(1)
    return await asking


async def test_a_call_that_waits_too_long_for_its_turn_is_refused(lab: Service, folder: Path) -> None:
    await put(lab, folder, "one")
    key, go = await key_of(lab), folder / "go"
    assert said(await chat(lab, key, "hello")) == "hello"
    asking = [asyncio.create_task(chat(lab, key, f"wait {go}")) for _ in range(2)]
    await until(lambda: model_of(lab, "one").calls == 2)
    refused = await refused_after(120, lab, key, calls=3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert refused.headers["retry-after"]
    go.touch()
    await asyncio.gather(*asking)
    assert said(await chat(lab, key, "again")) == "again"


async def test_a_cancelled_call_gives_its_turn_to_the_next(lab: Service, folder: Path) -> None:
    await put(lab, folder, "one")
    key, go = await key_of(lab), folder / "go"
    asking = [asyncio.create_task(chat(lab, key, f"wait {go}")) for _ in range(4)]
    await until(lambda: model_of(lab, "one").calls == 4)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert said(await chat(lab, key, "next")) == "next"
    await until(lambda: model_of(lab, "one").calls == 0)


async def test_loading_for_too_long_is_refused_and_goes_on(lab: Service, folder: Path) -> None:
    key, go = await key_of(lab), folder / "go"
    await put(lab, folder, "one", f"wait {go}")
    refused = await refused_after(120, lab, key, calls=1)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    go.touch()
    await until(lambda: model_of(lab, "one").state == "ready")
    assert said(await chat(lab, key, "hello")) == "hello"


async def test_a_file_that_cannot_be_loaded_is_failed_until_it_changes(lab: Service, folder: Path) -> None:
    key = await key_of(lab)
    await put(lab, folder, "one", "refuse tensor missing")
    refused = await chat(lab, key, "hello")
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert await state_of(lab, key, "one") == "failed"
    assert "status 1" in str(model_of(lab, "one").error) and "tensor missing" in str(model_of(lab, "one").error)
    await put(lab, folder, "one")
    assert said(await chat(lab, key, "hello")) == "hello"


async def test_three_crashes_in_a_minute_make_the_model_failed(lab: Service, folder: Path, clocks: Clocks) -> None:
    key = await key_of(lab)
    await put(lab, folder, "one", "crash assertion 17 failed")
    assert (await chat(lab, key, "hello")).status_code == 502
    assert await state_of(lab, key, "one") == "failed"
    assert "signal 11" in str(model_of(lab, "one").error) and "assertion 17" in str(model_of(lab, "one").error)
    (folder / "one.gguf").write_bytes(gguf())  # not seen yet: only the time ends the failure
    clocks.advance(599)
    model_of(lab, "one").check()
    assert model_of(lab, "one").state == "failed"
    clocks.advance(1)
    model_of(lab, "one").check()
    assert await state_of(lab, key, "one") == "unloaded"


async def test_reload_ends_a_failure(lab: Service, folder: Path) -> None:
    key = await key_of(lab)
    await put(lab, folder, "one", "refuse it")
    await chat(lab, key, "hello")
    assert await state_of(lab, key, "one") == "failed"
    await lab.state["reload"]()
    assert await state_of(lab, key, "one") == "unloaded"


async def test_crashes_further_apart_restart_the_helper(lab: Service, folder: Path, clocks: Clocks) -> None:
    await put(lab, folder, "one")
    key = await key_of(lab)
    for _ in range(4):
        assert said(await chat(lab, key, "hello")) == "hello"
        pid = model_of(lab, "one").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda before=pid: model_of(lab, "one").pid not in (None, before))
        clocks.advance(31)
    assert said(await chat(lab, key, "hello")) == "hello"


async def test_helper_that_dies_in_mid_answer_is_charged_for_what_was_produced(
    lab: Service, folder: Path, clocks: Clocks
) -> None:
    await put(lab, folder, "priced")
    session = await lab.bearer()
    key = bearer((await lab.make_key(session))["key"])
    me = (await lab.client.get("/user/me", headers=session)).json()["id"]
    await lab.state["db"].write(wallet.book, me, 1_000_000, description="a test", now_seconds=clocks.now)
    before = await _balance(lab, session)
    cut = await chat(lab, key, "some words and die", "priced", stream=True)
    assert cut.status_code == 200 and '"some' in cut.text and '"code":"upstream_error"' in cut.text
    after = await _balance(lab, session)
    assert 0 < before - after < 100
    clocks.advance(61)
    assert said(await chat(lab, key, "whole answer", "priced")) == "whole answer"
    assert after - await _balance(lab, session) == 3 * 1 + 2 * 2
    assert await lab.state["db"].read(findings) == []


async def _balance(lab: Service, session: dict[str, str]) -> int:
    return int((await lab.client.get("/billing/account", headers=session)).json()["wallet_balance_micros"])


async def test_idle_model_is_unloaded_and_its_process_ends(lab: Service, folder: Path, clocks: Clocks) -> None:
    await put(lab, folder, "one")
    key = await key_of(lab)
    assert said(await chat(lab, key, "hello")) == "hello"
    pid = model_of(lab, "one").pid
    clocks.advance(599)
    model_of(lab, "one").check()
    assert await state_of(lab, key, "one") == "ready"
    clocks.advance(1)
    model_of(lab, "one").check()
    assert await state_of(lab, key, "one") == "unloaded"
    await until(lambda: not Path(f"/proc/{pid}").exists())
    assert said(await chat(lab, key, "hello")) == "hello", "the next question loads it again"


async def test_removed_file_answers_to_the_end(lab: Service, folder: Path) -> None:
    await put(lab, folder, "one")
    key, go = await key_of(lab), folder / "go"
    asking = asyncio.create_task(chat(lab, key, f"wait {go} end"))
    await until(lambda: model_of(lab, "one").state == "ready")
    old = model_of(lab, "one")
    (folder / "one.gguf").unlink()
    await lab.state["local_models"].scan()
    assert (await chat(lab, key, "hello")).status_code == 404
    go.touch()
    assert said(await asking) == "end"
    await until(lambda: not old.is_running)
