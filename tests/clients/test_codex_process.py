"""Codex CLI against POST /v1/responses: it reads a file, runs a command, edits a file and ends."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.clients.conftest import CALL_MICROS, Lab, Services, in_soak
from tests.support.clients import environment, needed, npm_packages, run
from tests.support.model_media import PNG
from tests.support.people import another_person
from tests.support.waiting import logged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]

PATCH = "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello\n+goodbye\n*** End Patch\n"

NO_RETRIES = "request_max_retries = 0\nstream_max_retries = 0\n"


def call(name: str, **arguments: str) -> str:
    return f"tool {name} {json.dumps(arguments)}"


def script_for(*steps: str) -> str:
    return "\n---\n".join([*steps, "say All done."])


# Codex offers other tools with each family of models that it knows, and for the rest the first form.
FUNCTIONS = script_for(
    call("exec_command", cmd="cat hello.txt"),
    call("exec_command", cmd="echo ran > ran.txt"),
    call("exec_command", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF\n"),
    call("view_image", path="dot.png"),
)
IN_PARALLEL = script_for(
    "\n".join([call("exec_command", cmd="cat hello.txt"), call("exec_command", cmd="echo ran > ran.txt")]),
    call("exec_command", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF\n"),
)
CUSTOM_TOOL = script_for(
    call("exec_command", cmd="cat hello.txt"),
    call("exec_command", cmd="echo ran > ran.txt"),
    call("apply_patch", input=PATCH),
)
JAVASCRIPT = script_for(
    call("exec", input='text(JSON.stringify(await tools.exec_command({cmd: "cat hello.txt"})))'),
    call("exec", input='await tools.exec_command({cmd: "echo ran > ran.txt"})'),
    call("exec", input=f"await tools.apply_patch({json.dumps(PATCH)})"),
)


async def codex(
    lab: Lab,
    tmp_path: Path,
    model: str,
    prompt: str,
    *,
    status: int = 0,
    resume: bool = False,
    settings: str = NO_RETRIES,
) -> tuple[str, str]:
    """Run `codex exec` in a folder with hello.txt. Return its last message, and what it shows of the whole run."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir(parents=True, exist_ok=resume)
    (work / "hello.txt").write_text("hello\n")
    (work / "dot.png").write_bytes(PNG)
    env = environment(lab.server, lab.person, home, CODEX_HOME=str(home))
    (home / "config.toml").write_text(
        f'model = "{model}"\nmodel_provider = "svc"\n'
        f'[model_providers.svc]\nname = "svc"\nbase_url = "{lab.server.base_url}/v1"\nenv_key = "KEY"\nwire_api = '
        f'"responses"\n'
        f"{settings}"
    )
    program = needed(npm_packages) / ".bin" / "codex"
    arguments = ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
    arguments += ["resume", "--last", prompt] if resume else [prompt]
    message, shown = await asyncio.to_thread(run, [program, *arguments], env, work, status=status)
    return message.strip(), shown


@pytest.mark.parametrize(
    ("model", "script"),
    [
        ("lab/script+reasoning", FUNCTIONS),
        ("responses/script+reasoning", IN_PARALLEL),
        ("messages/script+reasoning", IN_PARALLEL),
        ("gpt-5.5", CUSTOM_TOOL),
        ("gpt-6.1-sol", JAVASCRIPT),
        ("builtin/script", FUNCTIONS),
    ],
)
async def test_codex_reads_files_runs_a_command_and_edits_a_file(
    lab: Lab, tmp_path: Path, model: str, script: str
) -> None:
    asked_before = len(lab.upstream.requests)
    message, shown = await codex(lab, tmp_path, model, script)
    assert message == "All done." and ("Let me think." in shown) == ("reasoning" in model)
    assert (tmp_path / "work" / "hello.txt").read_text() == "goodbye\n" and (tmp_path / "work" / "ran.txt").is_file()
    calls = lab.asked(asked_before, model)
    assert len(calls) == (0 if model == "builtin/script" else script.count("---") + 1)
    assert await lab.spent() == CALL_MICROS * len(calls)
    if calls:
        results = [message["content"] for message in calls[-1]["messages"] if message["role"] == "tool"]
        assert "hello" in str(results[0]) and len(results) == script.count("tool ")
        assert ("image_url" in json.dumps(calls[-1]["messages"])) == (script == FUNCTIONS)


async def test_codex_resumes_a_session_and_starts_a_sub_agent(lab: Lab, tmp_path: Path) -> None:
    assert (await codex(lab, tmp_path, "thinker", "say First."))[0] == "First."
    script = script_for(call("spawn_agent", message="say Sub done."))  # a tool of a namespace
    assert (await codex(lab, tmp_path, "thinker", script, resume=True))[0] == "All done."
    own = next(seen for seen in reversed(lab.upstream.requests) if "agent_id" in json.dumps(seen.body["messages"]))
    said = [message for message in own.body["messages"] if message["role"] == "assistant"]
    assert [message["content"] for message in said] == ["First.", None]
    assert {message["reasoning_content"] for message in said} == {"Let me think."}


@pytest.mark.parametrize("model", ["broken", *in_soak("responses/cut-after-5-chunks", "messages/cut-after-5-chunks")])
async def test_codex_ends_with_an_error_when_the_stream_breaks(lab: Lab, tmp_path: Path, model: str) -> None:
    message, shown = await codex(lab, tmp_path, model, "Hello", status=1)
    assert message == "" and "ERROR" in shown


async def test_codex_shows_the_empty_wallet_and_asks_once(services: Services, tmp_path: Path) -> None:
    poor = Lab(*services, await another_person(services[0]))
    message, shown = await codex(poor, tmp_path, "coder", "Hello", status=1, settings="")
    assert message == "" and "The wallet has $0.00" in shown
    async with poor.server.client(headers=poor.person.headers) as client:
        # A request takes one of 20 admissions.
        answer = await client.post("/v1/responses", json={"model": "builtin/echo", "input": "Hello"})
    assert answer.headers["x-ratelimit-remaining-requests"] == "18"


@pytest.mark.parametrize(
    "model", ["small", *in_soak("responses/script+context-50000", "messages/script+context-50000")]
)
async def test_codex_compacts_a_conversation_that_is_too_long(lab: Lab, tmp_path: Path, model: str) -> None:
    text = "It is a long text. " * 6_000
    assert (await codex(lab, tmp_path, model, f"{text}\nsay First."))[0] == "First."
    asked_before = len(lab.upstream.requests)
    _, shown = await codex(lab, tmp_path, model, f"{text}\nsay Second.", resume=True, status=1)
    assert "ran out of room" in shown and lab.refused_as_too_long(asked_before, model) == [True]
    assert (await codex(lab, tmp_path, model, "say Third.", resume=True))[0] == "Third."
    assert lab.refused_as_too_long(asked_before, model)[-2:] == [False, False]


async def test_codex_compacts_the_results_of_its_tools(lab: Lab, tmp_path: Path) -> None:
    texts = (f"yes 'It is a long text.' | head -c {38_000 + number}" for number in range(24))
    script = script_for(*(call("exec_command", cmd=text) for text in texts))
    asked_before = len(lab.upstream.requests)
    _, shown = await codex(lab, tmp_path, "small", script, status=1)
    assert "ran out of room" in shown and lab.refused_as_too_long(asked_before).count(True) == 1
    assert (await codex(lab, tmp_path, "small", "say Third.", resume=True))[0] == "Third."
    assert lab.refused_as_too_long(asked_before)[-2:] == [False, False]


async def test_codex_goes_on_after_an_image_that_the_model_cannot_read(lab: Lab, tmp_path: Path) -> None:
    script = script_for(call("view_image", path="dot.png"))
    assert (await codex(lab, tmp_path, "builtin/script", script))[0] == "All done."


async def test_codex_falls_back_from_a_web_socket_at_once(lab: Lab, tmp_path: Path) -> None:
    settings = "supports_websockets = true\n"
    assert (await codex(lab, tmp_path, "builtin/script", "say Hello.", settings=settings))[0] == "Hello."
    async with lab.server.client(headers=lab.person.headers) as client:
        account = (await client.get("/user/me")).json()["id"]
    lines = await logged(lab.server.log_lines, 2, account=account, route="/v1/responses")
    assert [(line["method"], line["status"]) for line in lines] == [("GET", 426), ("POST", 200)]
