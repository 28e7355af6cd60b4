"""A Messages stream over a real connection: a client that leaves pays as in chat, and a shutdown ends with one error
event.
"""

import asyncio

import pytest

from tests.inference.test_chat_call import ESTIMATED_INPUT, Lab, lab  # noqa: F401 - a fixture
from tests.routes.test_messages import MESSAGES, ask
from tests.support.messages import checked_stream


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnected_client_of_a_silent_model_pays_for_the_input(lab: Lab, stream: bool) -> None:  # noqa: F811 - a fixture
    body = ask("hi", "lab/silent", stream=stream)
    asking = asyncio.create_task(lab.client.post(MESSAGES, json=body, headers=lab.person.headers))
    await lab.asked()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await lab.spent() == ESTIMATED_INPUT
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)


async def test_disconnected_client_pays_for_the_output_so_far(lab: Lab) -> None:  # noqa: F811 - a fixture
    body = ask("hi", "lab/silent-after-3-chunks", stream=True)
    async with lab.client.stream("POST", MESSAGES, json=body, headers=lab.person.headers) as answer:
        async for line in answer.aiter_lines():
            if '", "' in line and "text_delta" in line:
                break
    assert await lab.spent() == ESTIMATED_INPUT + 2 * 2  # "Hello, "


async def test_shutdown_ends_a_stream_with_one_error_event(lab: Lab) -> None:  # noqa: F811 - a fixture
    body, received = ask("hi", "lab/silent-after-3-chunks", stream=True), b""
    async with lab.client.stream("POST", MESSAGES, json=body, headers=lab.person.headers) as answer:
        parts = answer.aiter_raw()
        while b'", "' not in received:
            received += await anext(parts)
        stopping = asyncio.create_task(lab.server.stop())
        received += b"".join([part async for part in parts])
    await stopping
    message, error = checked_stream(received)
    assert message["content"][0]["text"] == "Hello, " and error is not None and error["type"] == "overloaded_error"
