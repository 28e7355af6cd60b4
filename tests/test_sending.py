"""svc/sending.py: what was sent at once holds nobody up."""

import asyncio

from svc.sending import SENT


async def test_to_await_what_was_sent_at_once_gives_no_turn_to_others() -> None:
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "another")
    await SENT
    await SENT
    assert turns == []
