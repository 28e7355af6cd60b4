"""Claude Code against POST /v1/messages: it reads a file, runs a command, edits a file and ends."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.clients.conftest import CALL_MICROS, Lab, Services, in_soak
from tests.support.clients import environment, needed, npm_packages, run
from tests.support.model_media import PNG
from tests.support.people import another_person

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def as_script(calls: list[tuple[str, dict[str, str]]]) -> str:
    """Return the script of a model that makes these calls, one after another."""
    return "\n---\n".join([*(f"tool {name} {json.dumps(arguments)}" for name, arguments in calls), "say All done."])


def work_in(folder: Path) -> list[tuple[str, dict[str, str]]]:
    file = str(folder / "hello.txt")
    return [
        ("Read", {"file_path": file}),
        ("Bash", {"command": "echo ran > ran.txt", "description": "Write a file"}),
        ("Edit", {"file_path": file, "old_string": "hello", "new_string": "goodbye"}),
    ]


async def claude(
    lab: Lab, tmp_path: Path, model: str, prompt: str, *options: str, status: int = 0, retries: int = 0
) -> str:
    """Run `claude -p` in the folder `work` with hello.txt and return its answer."""
    work = tmp_path / "work"
    work.mkdir(parents=True, exist_ok="--continue" in options)
    (work / "hello.txt").write_text("hello\n")
    (work / "dot.png").write_bytes(PNG)
    own = {"ANTHROPIC_BASE_URL": lab.server.base_url, "ANTHROPIC_AUTH_TOKEN": lab.person.key, "ANTHROPIC_MODEL": model}
    own["CLAUDE_CODE_MAX_RETRIES"] = str(retries)
    env = environment(lab.server, lab.person, tmp_path / "home", **own, **QUIET)
    program = needed(npm_packages) / ".bin" / "claude"
    arguments = ["-p", prompt, "--permission-mode", "acceptEdits", "--allowedTools", "Read,Bash,Edit", *options]
    answer, _ = await asyncio.to_thread(run, [program, *arguments], env, work, status=status)
    return answer.strip()


@pytest.mark.parametrize(
    "model",
    ["claude-opus-5", "claude-sonnet-4-5", "builtin/script", "responses/script+reasoning", "messages/script+reasoning"],
)
async def test_claude_code_reads_files_runs_a_command_and_edits_a_file(lab: Lab, tmp_path: Path, model: str) -> None:
    asked_before, work = len(lab.upstream.requests), tmp_path / "work"
    steps = work_in(work)
    if model == "claude-opus-5":
        steps += [("Read", {"file_path": str(work / "dot.png")}), ("ToolSearch", {"query": "select:WebFetch"})]
    script = as_script(steps)
    if "/script+" in model:  # two calls in one turn
        script = script.replace("\n---\n", "\n", 1)
    assert (await claude(lab, tmp_path, model, script)).endswith("All done.")
    assert (work / "hello.txt").read_text() == "goodbye\n" and (work / "ran.txt").is_file()
    calls = lab.asked(asked_before, model)
    assert len(calls) == (0 if model == "builtin/script" else script.count("---") + 1)
    assert await lab.spent() == CALL_MICROS * len(calls)
    if calls:
        results = [message["content"] for message in calls[-1]["messages"] if message["role"] == "tool"]
        assert "hello" in str(results[0]) and len(results) == len(steps)
    if model == "claude-opus-5":
        assert "image_url" in json.dumps(calls[-1]["messages"])
        assert "WebFetch" in {tool["function"]["name"] for tool in calls[-1]["tools"]}


async def test_claude_code_continues_a_session_and_starts_a_sub_agent(lab: Lab, tmp_path: Path) -> None:
    assert await claude(lab, tmp_path, "claude-sonnet-4-5", "say First.") == "First."
    script = as_script([("Agent", {"description": "Look", "prompt": "say Sub done.", "subagent_type": "Explore"})])
    asked_before = len(lab.upstream.requests)
    assert (await claude(lab, tmp_path, "claude-sonnet-4-5", script, "--continue")).endswith("All done.")
    asked = [seen.body["messages"] for seen in lab.upstream.requests[asked_before:]]
    of_agent = [messages for messages in asked if messages[-1]["content"].endswith("say Sub done.")]
    assert len(of_agent) == 1 and len(of_agent[0]) == 2
    assert all(messages[2]["content"] == "First." for messages in asked if messages not in of_agent)


@pytest.mark.parametrize("model", ["broken", *in_soak("responses/cut-after-5-chunks", "messages/cut-after-5-chunks")])
async def test_claude_code_retries_a_broken_stream_without_streaming(lab: Lab, tmp_path: Path, model: str) -> None:
    asked_before = len(lab.upstream.requests)
    assert (await claude(lab, tmp_path, model, "Hello")).endswith("Hello, world!")
    assert [bool(seen.body.get("stream")) for seen in lab.upstream.requests[asked_before:]] == [True, False]


async def test_claude_code_shows_the_empty_wallet(services: Services, tmp_path: Path) -> None:
    poor = Lab(*services, await another_person(services[0]))
    assert "wallet" in await claude(poor, tmp_path, "coder", "Hello", status=1)


@pytest.mark.parametrize(
    "model", ["small", *in_soak("responses/script+context-50000", "messages/script+context-50000")]
)
async def test_claude_code_compacts_a_conversation_that_is_too_long(lab: Lab, tmp_path: Path, model: str) -> None:
    text = "It is a long text. " * 5_000
    assert await claude(lab, tmp_path, model, f"{text}\nsay First.") == "First."
    asked_before = len(lab.upstream.requests)
    assert await claude(lab, tmp_path, model, f"{text}\nsay Second.", "--continue") == "Second."
    assert lab.refused_as_too_long(asked_before, model) == [True, False, False]


async def test_claude_code_compacts_the_results_of_its_tools(lab: Lab, tmp_path: Path) -> None:
    commands = [f"yes 'It is a long text.' | head -c {28_000 + number}" for number in range(8)]
    steps = [("Bash", {"command": command, "description": "Write a text"}) for command in commands]
    asked_before = len(lab.upstream.requests)
    assert await claude(lab, tmp_path, "small", as_script(steps)) == "All done."
    refused = lab.refused_as_too_long(asked_before)
    assert refused.count(True) == 1 and refused[-2:] == [False, False]


async def test_claude_code_lowers_an_output_limit_that_does_not_fit(lab: Lab, tmp_path: Path) -> None:
    asked_before = len(lab.upstream.requests)
    assert await claude(lab, tmp_path, "narrow", "say Hello.", retries=1) == "Hello."
    first, second = (seen.body["max_tokens"] for seen in lab.upstream.requests[asked_before:])
    assert second < first
