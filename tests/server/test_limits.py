"""svc/server/limits.py: fixed windows."""

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.config import Config
from svc.errors import ApiError
from svc.server import limits as limits_module
from svc.server.limits import CHAT_PER_MINUTE, Limits, Window, network_of
from tests.support.cases import each


class Ticks:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def limits(ticks: Ticks) -> Limits:
    return Limits(Config(monotonic=ticks))


def admitted(limits: Limits, rule: str, address: str, attempts: int = 50) -> int:
    """How many of so many attempts are admitted."""
    return sum(is_admitted(lambda: limits.take(rule, network_of(address))) for _ in range(attempts))


def admitted_chats(limits: Limits, account: str, tier: str, attempts: int = 200) -> int:
    return sum(is_admitted(lambda: limits.chat.take(account, CHAT_PER_MINUTE[tier])) for _ in range(attempts))


def is_admitted(take: Callable[[], object]) -> bool:
    try:
        take()
    except ApiError as error:
        assert error.code == "rate_limit_exceeded"
        return False
    return True


@each(("tier", "limit"), [("free", 20), ("pro", 120)])
def test_chats_per_window_are_exact(limits: Limits, ticks: Ticks, tier: str, limit: int) -> None:
    for _ in range(3):
        assert admitted_chats(limits, "user_a", tier) == limit
        ticks.now += 60


@each(("rule", "limit", "seconds"), [("login", 5, 60), ("signup", 10, 3600), ("password_reset", 3, 3600)])
def test_requests_of_an_address_per_window_are_exact(
    limits: Limits, ticks: Ticks, rule: str, limit: int, seconds: int
) -> None:
    for _ in range(3):
        assert admitted(limits, rule, "192.0.2.1") == limit
        ticks.now += seconds - 0.001
        assert admitted(limits, rule, "192.0.2.1") == 0
        ticks.now += 0.001


def test_settings_replace_the_limits_of_an_address(ticks: Ticks) -> None:
    limits = Limits(Config(monotonic=ticks, logins_per_minute=40, signups_per_hour=1, resets_per_hour=7))
    assert [admitted(limits, rule, "192.0.2.1") for rule in ("login", "signup", "password_reset")] == [40, 1, 7]


def test_exactly_5_of_200_logins_from_many_threads(limits: Limits) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: is_admitted(lambda: limits.take("login", network_of("192.0.2.1"))), range(200))
        )
    assert sum(answers) == 5


def test_accounts_addresses_and_rules_do_not_share_a_window(limits: Limits) -> None:
    assert admitted_chats(limits, "user_a", "free") == admitted_chats(limits, "user_b", "free") == 20
    for address in ("192.0.2.1", "192.0.2.2"):
        assert [admitted(limits, rule, address) for rule in ("login", "signup", "password_reset")] == [5, 10, 3]


def test_a_window_begins_with_the_first_admission_and_refusals_do_not_prolong_it(limits: Limits, ticks: Ticks) -> None:
    ticks.now += 31.4
    for _ in range(60):
        admitted(limits, "login", "192.0.2.1", 10)
        ticks.now += 1
    assert admitted(limits, "login", "192.0.2.1") == 5


def test_admission_has_the_remaining_number(limits: Limits, ticks: Ticks) -> None:
    first = limits.chat.take("user_a", CHAT_PER_MINUTE["free"])
    ticks.now += 22.5
    second = limits.chat.take("user_a", CHAT_PER_MINUTE["free"])
    assert first == (20, 19, 59)
    assert second == (20, 18, 38)


@given(seconds=st.sampled_from([60, 3600]), later=st.integers(0, 9_999).map(lambda part: part / 10_000))
def test_retry_after_is_a_sufficient_integer_within_the_window(seconds: int, later: float) -> None:
    ticks = Ticks()
    window = Window(seconds, ticks)
    window.take(b"a", 1)
    ticks.now += later * seconds
    with pytest.raises(ApiError) as caught:
        window.take(b"a", 1)
    error = caught.value
    assert isinstance(error.retry_after_seconds, int) and 1 <= error.retry_after_seconds <= seconds - 1
    assert error.headers["retry-after"] == str(error.retry_after_seconds)
    assert error.body()["error"]["retry_after"] == error.retry_after_seconds
    assert error.status == 429
    if later * seconds >= 1:
        ticks.now += error.retry_after_seconds
        window.take(b"a", 1)


def test_upgrade_to_pro_lifts_the_limit_at_once(limits: Limits) -> None:
    assert admitted_chats(limits, "user_a", "free") == 20
    assert admitted_chats(limits, "user_a", "pro") == 100


def test_ipv6_counts_by_64(limits: Limits) -> None:
    for number in range(5):
        limits.take("login", network_of(f"2001:db8:1:2:{number:x}::{number:x}"))
    assert admitted(limits, "login", "2001:db8:1:2:ffff:ffff:ffff:ffff") == 0
    assert admitted(limits, "login", "2001:db8:1:3::1") == 5
    assert admitted(limits, "login", "fe80::1%eth0") == 5
    assert admitted(limits, "login", "fe80::2%eth1") == 0


def test_ipv4_counts_whole_also_when_mapped_into_ipv6(limits: Limits) -> None:
    assert admitted(limits, "login", "192.0.2.1", 3) == 3
    assert admitted(limits, "login", "::ffff:192.0.2.1") == 2
    assert admitted(limits, "login", "::ffff:192.0.2.2") == 5
    assert admitted(limits, "login", "192.0.2.3") == 5


@given(st.one_of(st.text(), st.ip_addresses().map(str)))
def test_an_address_of_any_form_is_counted(address: str) -> None:
    assert admitted(Limits(Config(monotonic=Ticks())), "login", address, 10) == 5


def test_unknown_addresses_share_one_window(limits: Limits) -> None:
    assert admitted(limits, "login", "testclient", 3) == 3
    assert admitted(limits, "login", "") == 2


def test_limits_ignore_the_wall_clock() -> None:
    imported = {
        alias.name
        for node in ast.walk(ast.parse(inspect.getsource(limits_module)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not {"time", "datetime"} & imported, "time comes from the monotonic clock that is handed in"


def test_ended_windows_are_dropped(ticks: Ticks) -> None:
    window = Window(60, ticks)
    for number in range(1000):
        window.take(str(number).encode(), 1)
        ticks.now += 0.1
    ticks.now += 59
    window.take(b"later", 1)
    assert len(window._callers) < 20


def test_caller_over_the_maximum_evicts_only_the_oldest(ticks: Ticks) -> None:
    window = Window(60, ticks)
    for caller in (b"a", b"b", b"c", *(b"%d" % number for number in range(30_000 - 3))):
        window.take(caller, 1)
    for caller in (b"a", b"b", b"c"):
        assert not is_admitted(lambda caller=caller: window.take(caller, 1))
    window.take(b"d", 1)
    assert is_admitted(lambda: window.take(b"a", 1))
    assert [is_admitted(lambda caller=caller: window.take(caller, 1)) for caller in (b"c", b"d", b"a")] == [False] * 3


@pytest.mark.slow
def test_many_addresses_cost_under_50_mb() -> None:
    program = """
        from pathlib import Path
        from svc.config import Config
        from svc.server.limits import Limits

        def resident_bytes():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        limits = Limits(Config(monotonic=lambda: 5.0))
        before = resident_bytes()
        for rule in ("login", "signup", "password_reset"):
            window = limits._by_rule[rule][1]
            for number in range(300_000 if rule == "signup" else 40_000):
                window.take(number.to_bytes(8, "big"), 3)
        limits.take("signup", b"2001:db8::1")
        print(resident_bytes() - before)
    """
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=True, text=True
    )
    assert int(answer.stdout) < 50_000_000
