"""The blocks of README.md: each is played by the slow test, and the requests of the curl lines are valid."""

import re

import orjson

from tests.clients.test_readme_process import BLOCKS, FILES
from tests.conftest import JSON, Service, bearer
from tests.support.pages import EXAMPLES

CURL = ("curl", "byok-curl", "agent-curl", "media-curl")


def curl_lines(mark: str) -> list[str]:
    text = EXAMPLES[mark].replace("\\\n", " ")
    return [line[line.index("curl ") :] for line in text.splitlines() if "curl -" in line]


async def test_curl_lines_of_the_readme_are_requests_that_the_service_answers(service: Service) -> None:
    tokens: dict[str, str] = {}
    answers = []
    for line in (line for mark in CURL for line in curl_lines(mark)):
        [path] = re.findall(r"\$BASE(/[^\s\"]+)", line)
        [token] = re.findall(r"Authorization: Bearer \$(\w+)", line) or [""]
        data = re.findall(r"-d '(\{.*\})'", line)
        headers = bearer(tokens[token]) if token else {}
        assert bool(data) == ("Content-Type: application/json" in line)
        if data:
            answer = await service.client.post(path, content=data[0], headers={**headers, **JSON})
        else:
            answer = await service.client.get(path, headers=headers)
        if path == "/auth/signup":
            tokens["SESSION"] = answer.json()["access_token"]
        if path == "/user/api-keys":
            tokens["KEY"] = answer.json()["key"]
        answers.append((path, answer.status_code))
        if path == "/v1/chat/completions":
            streams = orjson.loads(data[0]).get("stream", False)
            assert "84" in answer.text or (streams and answer.text.endswith("data: [DONE]\n\n"))
        if path == "/v1/agents/run":
            assert '"type":"final"' in answer.text.rpartition("data: ")[2]
        if path == "/v1/agents/runs?limit=1":
            assert [run["status"] for run in answer.json()["data"]] == ["final"]
    assert answers == [
        ("/auth/signup", 201),
        ("/user/api-keys", 201),
        ("/v1/models", 200),
        ("/v1/chat/completions", 200),
        ("/v1/chat/completions", 200),
        ("/user/providers", 201),
        ("/v1/agents/run", 200),
        ("/v1/agents/runs?limit=1", 200),
        ("/v1/images/generations", 402),  # the line before adds funds
        ("/v1/audio/generate", 402),
    ]


def test_each_block_of_the_readme_is_played() -> None:
    assert {kind for _, kind, _ in BLOCKS} <= {"sh", "python", "toml"}
    assert {name for name, kind, _ in BLOCKS if kind == "toml"} == set(FILES)
    assert BLOCKS[0][0] == "start" and {"curl", "tests"} < {name for name, _, _ in BLOCKS}
