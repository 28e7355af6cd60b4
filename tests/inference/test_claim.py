"""svc/inference/claim.py: the memory that claims take, and who gives it back."""

import asyncio
import sqlite3

import pytest

from svc.content.idempotency import MOST_BYTES, place_of
from svc.errors import ApiError
from svc.inference import claim as claims_module
from svc.inference.claim import Claim, Claims, Stream
from tests.conftest import Service


def begun(claims: Claims, service: Service, account_id: str = "a", key: str = "k") -> Claim:
    return claims.begin(place_of(account_id, "/path", key), service.state["db"], service.config.clock)


async def followed(claim: Claim) -> bytes:
    return b"".join([part async for part in claim.follow(lambda: False)])


async def test_memory_of_an_answer_is_given_back_at_the_end_of_its_last_follower(service: Service) -> None:
    claims = Claims()
    claim = begun(claims, service)
    claim.stream = Stream({}, b"", lambda error, events: b"")
    with claim:
        following = asyncio.create_task(followed(claim))
        await asyncio.sleep(0)
        claim.add(b"Hello, ")
        await asyncio.sleep(0)
        claim.add(b"world")
        await claim.keep(200, dict, b"!")
        assert claims.taken_bytes == 12 and not following.done()  # the end is sent after the settlement
        claim.settled()
        assert await following == b"Hello, world!"
        assert claims.taken_bytes == 12 and not claims.running
        claim.fail(ApiError("internal_error"))
        assert claim.fault is None
    assert claims.taken_bytes == 0 and claims == Claims()


async def test_answer_stays_whole_when_a_follower_leaves_before_its_end(service: Service) -> None:
    claims = Claims()
    claim = begun(claims, service)
    claim.stream = Stream({}, b"", lambda error, events: b"")
    claim.add(b"Hello, ")
    with claim:
        assert await anext(claim.follow(lambda: False)) == b"Hello, "
    claim.add(b"world!")
    with claim:
        await claim.keep(200, dict)
        claim.settled()
        assert await followed(claim) == b"Hello, world!"
    assert claims == Claims()


async def test_those_that_follow_get_a_long_answer_in_short_pieces(service: Service) -> None:
    account_id = (await service.sign_up())["user"]["id"]
    claim = begun(Claims(), service, account_id)
    claim.body_arrived(bytes(32))
    await service.state["db"].write(claim.claim_in)
    claim.stream = Stream({}, b"", lambda error, events: b"")
    parts = [b"a" * 700_000, *[b"%d," % number for number in range(50_000)], b"b" * 100_000]
    for part in parts:
        claim.add(part)
    await claim.keep(200, dict, b"c" * 900_000)
    with claim:
        claim.settled()
        for pieces in (
            [piece async for piece in claim.follow(lambda: False)],
            [piece async for piece in claim.whole()],
        ):
            assert b"".join(pieces) == b"".join(parts) + b"c" * 900_000
            assert max(map(len, pieces)) <= 128 * 1024  # what one that does not read holds
        assert len([piece async for piece in claim.follow(lambda: False)]) < 100  # not each part alone


async def test_answer_beyond_its_share_of_memory_is_not_kept(service: Service) -> None:
    claims, part = Claims(), bytes(MOST_BYTES)
    for number in range(4):
        begun(claims, service, key=str(number)).add(part)
    one_more = begun(claims, service, key="more")
    one_more.add(b"x" * claims_module.SMALL_BYTES)
    assert not one_more.too_large  # a small answer always fits
    one_more.add(b"x")
    assert one_more.too_large
    other = begun(claims, service, account_id="b")
    other.add(part)
    assert not other.too_large and claims.taken_bytes == 5 * MOST_BYTES
    other.add(b"x")
    assert other.too_large and claims.taken_bytes == 4 * MOST_BYTES
    with pytest.raises(ApiError, match="too large"):
        await followed(other)
    for claim in [*claims.running.values()]:
        claim.fail(ApiError("internal_error"))
    assert claims == Claims()


async def test_failure_reaches_those_that_follow_after_what_was_sent(service: Service) -> None:
    claim = begun(Claims(), service)
    claim.stream = Stream({}, b"", lambda error, events: b"")
    claim.add(b"Hello")
    claim.fail(ApiError("shutting_down"))
    found = claim.follow(lambda: False)
    with claim, pytest.raises(ApiError, match="shutting down"):
        async for _ in found:
            pass


async def test_settlement_may_be_repeated_and_the_first_one_counts(service: Service) -> None:
    account_id, db = (await service.sign_up())["user"]["id"], service.state["db"]
    claim = begun(Claims(), service, account_id)
    claim.body_arrived(bytes(32))
    await db.write(claim.claim_in)
    claim.add(b"x" * 700_000)
    await claim.keep(200, dict)
    await db.write(claim.settle_in)
    claim.release()  # as after a commit that was reported as failed
    await db.write(claim.settle_in)

    def count(conn: sqlite3.Connection) -> tuple[int, ...]:
        query = "SELECT (SELECT size FROM idempotency_keys), (SELECT sum(length(content)) FROM idempotency_chunks)"
        return tuple(conn.execute(query).fetchone())

    assert await db.read(count) == (700_000, 700_000)
    assert claims_module.SHARE_BYTES < claims_module.BUDGET_BYTES
