"""The memory that bodies may take: shares of an address and of an account, small ones always, all of it given back."""

import pytest

from svc.errors import ApiError
from svc.server.http.head import Context
from svc.server.limits import KIB, BodyBudget, network_of
from tests.support.cases import each


def context(address: str, account_id: str | None = None) -> Context:
    made = Context({})
    made.client_ip, made.account_id = address, account_id
    return made


def test_body_counts_as_it_grows_until_released() -> None:
    budget, one = BodyBudget(1000 * KIB, 1000 * KIB), context("192.0.2.1", "user_1")
    for size in (100 * KIB, 500 * KIB):
        budget.count(one, size)
    assert budget.taken_bytes == 500 * KIB and one.counted_body is not None
    budget.give_back(*one.counted_body)
    assert budget.taken_bytes == 0
    budget.count(context("192.0.2.1", "user_1"), 500 * KIB)  # the shares are given back, too


@each(
    ("first", "second"),
    [
        (context("192.0.2.1", "user_1"), context("192.0.2.1", "user_2")),
        (context("192.0.2.1", "user_1"), context("192.0.2.2", "user_1")),
        (context("2001:db8::1"), context("2001:db8::2")),
    ],
)
def test_an_address_and_an_account_have_a_share(first: Context, second: Context) -> None:
    budget = BodyBudget(1000 * KIB, 300 * KIB)
    budget.count(first, 200 * KIB)
    with pytest.raises(ApiError) as refused:
        budget.count(second, 101 * KIB)
    assert refused.value.code == "overloaded"
    budget.count(second, 100 * KIB)
    budget.count(context("198.51.100.1", "user_9"), 300 * KIB)


def test_addresses_are_counted_by_their_network() -> None:
    assert network_of("192.0.2.1") == network_of("::ffff:192.0.2.1") != network_of("192.0.2.2")
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff") != network_of("2001:db8:0:1::1")
    assert network_of("nonsense") == network_of("")
