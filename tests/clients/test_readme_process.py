"""The blocks of README.md work as they are printed, one after the other in one shell."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.clients import needed, npm_packages, run
from tests.support.pages import README
from tests.support.server import ROOT, free_port

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]
BLOCKS = re.findall(r"^<!-- ([\w-]+) -->\n```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
FILES = {"codex": "$HOME/.codex/config.toml", "catalog": "catalog.toml"}
STARTED = "until grep -qs '^listening on' server.txt; do kill -0 $SERVER; read -t 0.1 <> <(:) || :; done"


def step_of(name: str, kind: str, code: str) -> str:
    """Return what a person does with a block of the README."""
    quoted = f"<<'END-OF-{name}'\n{code}END-OF-{name}\n"
    if kind == "toml":
        return f'mkdir -p "$HOME/.codex"; cat >"{FILES[name]}" {quoted}'
    if kind == "python":
        return f".venv/bin/python - {quoted}"
    if name == "start":  # in this environment, and beside the shell
        return f"rm -f server.txt; {code.rpartition(' && ')[2].strip()} >server.txt & SERVER=$!\n{STARTED}\n"
    return code


def lines_of(name: str, output: str) -> str:
    return output.partition(f"--- {name}\n")[2].partition("\n--- ")[0]


async def test_all_blocks_of_the_readme_work_in_one_shell(tmp_path: Path) -> None:
    """The last block, which runs these tests, is left out. Afterwards the shell still runs commands and the server."""
    for name, target in ((".venv", Path(sys.prefix)), ("app.py", ROOT / "app.py")):
        (tmp_path / name).symlink_to(target)
    played = [(name, step_of(name, kind, code)) for name, kind, code in BLOCKS if name != "tests"]
    script = "".join(f"echo; echo --- {name}\n{step}" for name, step in played)
    script += f"\necho --- check\n.venv/bin/svc check\nkill $SERVER; wait $SERVER\n{step_of(*BLOCKS[0])}"
    port = free_port()
    env = {
        "PATH": f"{needed(npm_packages)}/.bin:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "SVC_PORT": str(port),
    }
    script = f"trap 'kill $SERVER; wait $SERVER' EXIT\n{script}".replace("127.0.0.1:8443", f"127.0.0.1:{port}")
    (tmp_path / "readme.sh").write_text(script)
    output, shown = await asyncio.to_thread(run, ["bash", "-euo", "pipefail", "readme.sh"], env, tmp_path)
    assert '"id":"builtin/assistant"' in lines_of("curl", output) and "84" in lines_of("curl", output)
    assert lines_of("openai", output).strip() == "Hello, stream"
    assert '"type":"final"' in lines_of("agent-curl", output)
    assert lines_of("coding-agents", output).count("84") == 2
    assert "model: builtin/assistant" in shown and "doesn't recognize" not in output + shown
    assert "own machine" in lines_of("transcription-curl", output)
    assert '"url":"https://' in lines_of("media-curl", output)
    assert (tmp_path / "hello.wav").read_bytes()[:4] == b"RIFF"
    assert (tmp_path / "data" / "service.db").is_file() and (tmp_path / "server.txt").read_text().count(
        "listening"
    ) == 1
