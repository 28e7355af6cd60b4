"""Paths of OpenAI's and Anthropic's API that do not exist here."""

import pytest

from app import ROUTES
from svc.server.absent import ABSENT, not_found
from tests.conftest import Service
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.late_imports import import_late

NAMED = {
    "/v1/embeddings": "no embeddings endpoint",
    "/v1/completions": "Use POST /v1/chat/completions.",
    "/v1/audio/translations": "no audio translations endpoint",
    "/v1/images/edits": "Use POST /v1/images/generations.",
    "/v1/images/variations": "Use POST /v1/images/generations.",
    "/v1/moderations": "no moderations endpoint",
    "/v1/files": "Use POST /artifacts",
    "/v1/files/file-1/content": "no files endpoint",
    "/v1/batches": "no batches endpoint",
    "/v1/fine_tuning/jobs": "no fine-tuning endpoint",
    "/v1/assistants": "no assistants endpoint",
    "/v1/threads/thread_1/runs/run_1/steps": "no threads endpoint",
    "/v1/vector_stores/vs_1": "no vector stores endpoint",
    "/v1/realtime/client_secrets": "no realtime endpoint",
    "/v1/chat/completions/chatcmpl-1": "not stored here",
    "/v1/responses/resp_1": "not stored here",
    "/v1/responses/resp_1/cancel": "not stored here",
    "/v1/responses/compact": "Ask the model for a summary.",
    "/v1/complete": "Use POST /v1/messages.",
    "/v1/messages/batches": "one by one to POST /v1/messages",
    "/v1/messages/batches/msgbatch_1": "no batches endpoint",
    "/chat/completions": "Add /v1 to the base URL",
    "/v1/v1/messages": "Remove /v1 from the base URL",
}


@each(("path", "text"), list(NAMED.items()))
async def test_missing_endpoint_is_named_with_what_replaces_it(service: Service, path: str, text: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await service.client.request(method, path)
        assert text in assert_error(answer, 404, "not_found")["message"]


@each("path", ["/v1/chat/completions/", "/v1/responses/", "/v1/nothing", "/v1", "/nothing/v1/embeddings", "/a//b"])
async def test_other_unknown_paths_are_not_named(service: Service, path: str) -> None:
    answer = await service.client.post(path)
    assert assert_error(answer, 404, "not_found")["message"].startswith("Nothing was found.")


def test_paths_that_exist_are_not_in_the_table() -> None:
    assert {f"/{path}" for path in ABSENT} & {path for _, path, _ in ROUTES} == set()


def test_a_path_of_any_length_is_looked_up_once() -> None:
    assert "Nothing was found" in str(not_found("/" + "a/" * 30_000))


async def test_openai_client_shows_the_sentence(service: Service) -> None:
    import_late("openai")
    import openai

    client = openai.AsyncOpenAI(
        api_key="x", base_url=f"{service.config.base_url}/v1", http_client=service.client, max_retries=0
    )
    with pytest.raises(openai.NotFoundError, match="This service has no embeddings endpoint"):
        await client.embeddings.create(model="m", input="text")
