"""Tests wait for a condition, and sleep for a fixed time only for a reason."""

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.trees import tree_of

ROOT = Path(__file__).parent.parent
# So long only what never answers sleeps. A test that passes does not wait for it.
_ENDLESS_SECONDS = 10

# Fixed sleeps by their reason: the file and the function, as often as it sleeps.
SLOW = "it plays a slow client, model server, thread or disk"
NOTHING = "what must not happen gets the time to happen"
UNSEEN = "what another process or the kernel has read or buffered cannot be seen from the test"
REAL_TIME = "it tests a real clock"
FIXED = {
    SLOW: """
        agents/test_endings.py _read
        agents/test_run_process.py test_sigterm_ends_100_streams_with_their_final_event answer_later
        attacks/auth.py delete_guesses
        attacks/auth.py reset_guesses
        attacks/content.py common_words
        attacks/content.py look_alike_words
        attacks/media.py serve
        attacks/media.py silent_painters
        billing/test_money_process.py test_sigterm_settles_every_open_answer_once
        inference/test_byok_addresses.py answered_beside_silent_names
        inference/test_upstream.py test_cancelling_the_reader_ends_the_request_at_once
        outbound/test_client.py play play
        outbound/test_connection.py byte_by_byte
        outbound/test_connection.py interim
        outbound/test_connection.py play
        outbound/test_connection.py test_slow_head_times_out
        server/test_offload.py slow
        server/test_protocol_floods.py slow_reader
        server/test_signals_process.py test_second_sigint_stops_at_once
        support/outgoing.py play
        support/test_watchdog.py handle
        test_db.py note
        test_db.py slow
        test_db.py test_reads_of_one_account_do_not_delay_other_accounts
        test_db.py test_transaction_ends_after_20_ms_of_work
        test_retry.py test_cancellations_do_not_end_the_write_and_one_is_raised_after_it
        test_retry.py write
        web/test_answers.py send_later
    """,
    NOTHING: """
        builtin/test_processes.py test_two_processes_run_and_others_wait
        server/test_signals_process.py test_closed_terminal_does_not_stop_the_server
        test_db.py test_a_server_waits_for_a_command_and_then_writes
    """,
    UNSEEN: """
        agents/test_endings_process.py test_random_runs_leave_nothing_behind
        auth/test_mail.py test_known_and_unknown_emails_get_the_same_answer_in_the_same_time
        auth/test_openid.py test_new_key_is_fetched_at_once
        inference/test_media_process.py test_disconnected_reader_of_long_audio_frees_memory_and_file
        outbound/test_client.py test_cancelled_read_closes_the_connection_of_a_kept_reply
        outbound/test_client.py test_cancelled_task_closes_its_connection_in_every_phase
        outbound/test_client.py test_connection_closed_while_idle_is_not_used
        server/test_protocol_floods.py send_all
        support/outgoing.py __aexit__
        test_heavy_reads.py test_other_accounts_do_not_wait_for_heavy_reads
    """,
    REAL_TIME: """
        builtin/test_script.py test_wait_sleeps_and_closing_the_generator_ends_it_at_once
        outbound/test_connection.py test_slow_reader_causes_no_timeout
        test_budget.py test_limit_counts_cpu_time_without_waiting
        test_simulated_day_process.py test_service_works_for_a_simulated_day
    """,
}


def fixed_sleeps(path: Path) -> Iterator[str]:
    """Yield the function of each sleep for a fixed time. A `while` loop that sleeps waits for its condition: pytest's
    own timeout ends it.
    """
    if re.search(r"sleep\([\s(]*[\d.]", path.read_text()):  # to parse all tests takes seconds
        yield from _fixed_in(tree_of(path), "", polls=False)


def _fixed_in(node: ast.AST, function: str, *, polls: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _fixed_in(child, child.name, polls=False)
            continue
        if isinstance(child, ast.Call) and not polls and _is_fixed(child):
            yield function
        loops = isinstance(child, ast.For | ast.AsyncFor)
        yield from _fixed_in(child, function, polls=isinstance(child, ast.While) or (polls and not loops))


def _is_fixed(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", None))  # of a method or of a function
    if name != "sleep" or not call.args:
        return False
    seconds = call.args[0]
    return isinstance(seconds, ast.Constant) and 0 < seconds.value < _ENDLESS_SECONDS


def test_fixed_sleeps_are_found() -> None:
    text = """
        async def waits():
            await asyncio.sleep(0.1)
            for _ in range(3):
                sleep(1)
            while not done():
                time.sleep(0.1)
                for one in many:
                    time.sleep(0.1)

                async def inner():
                    await asyncio.sleep(2)
            await asyncio.sleep(0)
            await asyncio.sleep(60)
            await asyncio.sleep(seconds)
    """
    assert list(_fixed_in(ast.parse(textwrap.dedent(text)), "", polls=False)) == ["waits"] * 3 + ["inner"]


def test_each_fixed_sleep_has_a_reason() -> None:
    """Use tests/support/waiting.py, or the clock of the configuration. Remove entries; add one only for its reason."""
    rows = [line.split() for reason in FIXED.values() for line in reason.splitlines() if line.strip()]
    allowed = Counter((file, function) for file, *functions in rows for function in functions)
    tests = ROOT / "tests"
    found = Counter(
        (path.relative_to(tests).as_posix(), function)
        for path in tests.rglob("*.py")
        for function in fixed_sleeps(path)
    )
    assert found - allowed == Counter(), "fixed sleeps without a reason"
    assert allowed - found == Counter(), "entries without a sleep"
