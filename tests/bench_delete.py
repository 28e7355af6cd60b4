"""Whether others write while a large account is deleted: `python -m tests.bench_delete [--rows 2000000]
[--files 4] [--by-command]`.

Fill a database with rows of one account, and delete the account through the API while another account writes in a loop.
Print how long both took, and the wall clock and CPU of the writer's transactions. On a shared machine only the CPU
figure is reliable. Each write of over 50 ms is printed with the transactions that it waited for.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import argon2
import httpx

from svc.auth import accounts
from svc.billing import wallet
from svc.content import conversations, history
from svc.schema import connect, newest_schema
from tests.support.databases import prepare
from tests.support.server import ROOT, RunningServer, running_server_sync

MOST_MS = 50.0
PASSWORD = "correct horse battery"
GOING, STAYING = "going@example.com", "staying@example.com"
_PAUSE_SECONDS = 0.01
_MIB = 1024 * 1024
_NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)"
# Each table with its share of the rows; `messages`, whose words are in the index, and artifacts come apart.
_TABLES = (
    (
        0.25,
        """
        INSERT INTO ledger
            (id, account_id, kind, amount_micros, balance_after_micros, description, reference, model, request_id,
                created_at)
        SELECT 'led_bench' || n, :account_id, 'debit', -1, :micros - n, 'a call', 'hold_bench' || n, 'm', 'req_' || n, 1
        FROM numbers
        """,
    ),
    (
        0.1,
        """
        INSERT INTO usage_days (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros)
        SELECT :account_id, '2026-01-01', 'model' || n, '', 1, 1, 1, 1 FROM numbers
        """,
    ),
    (
        0.1,
        """
        INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at)
        SELECT 'key_bench' || n, :account_id, CAST(printf('%032d', n) AS BLOB), 'svc-v1-aaa', 'a key of mine', 1
        FROM numbers
        """,
    ),
    (
        0.1,
        """
        INSERT INTO runs (id, account_id, status, goal, model, max_steps, output, created_at, finished_at)
        SELECT 'run_bench' || n, :account_id, 'final', 'a goal that was reached', 'm', 6, '42', 1, 2 FROM numbers
        """,
    ),
    (
        0.15,
        """
        INSERT INTO answers (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms, reasoning,
            memory)
        SELECT id, :account_id, 1, 1, 1, 1, 'because', '[]' FROM messages LIMIT :rows
        """,
    ),
)
_TEXTS_SHARE = 0.15  # of messages, and as many of conversations
_PROJECTS = _ARTIFACTS = 1_000
# The server itself; each transaction of its writer, and what runs between them, is noted: when it began and ended, its
# CPU, how long its commit took, and whose functions it ran. They are written to the file TRANSACTIONS_FILE at the end.
_COMMAND = (
    "-c",
    """
import json, os, sys, time
import app
from svc import checkpoint, db

noted = []

def timed(name, run):
    def runs(*arguments):
        began, cpu = time.monotonic(), time.thread_time()
        try:
            return run(*arguments)
        finally:
            noted.append((began, time.monotonic(), time.thread_time() - cpu, 0.0, name))
    return runs

def transaction(self, conn, queue, finish):
    commit, names, committed = [0.0], [], self._committed
    def note(count, seconds):
        commit[0] = seconds
        committed(count, seconds)
    def finished(jobs, outcomes):
        names.extend(getattr(job.fn, "__name__", "partial") for job in jobs[:len(outcomes)])
        finish(jobs, outcomes)
    began, cpu = time.monotonic(), time.thread_time()
    self._committed = note
    more = run_transaction(self, conn, queue, finished)
    self._committed = committed
    noted.append((began, time.monotonic(), time.thread_time() - cpu, commit[0], " ".join(names) or "index_some"))
    return more

run_transaction, db._Transactions.run = db._Transactions.run, transaction
checkpoint.Checkpointer._truncate = timed("truncate", checkpoint.Checkpointer._truncate)
checkpoint.checkpoint = timed("checkpoint", checkpoint.checkpoint)
status = app.main()
with open(os.environ["TRANSACTIONS_FILE"], "w") as file:
    json.dump(noted, file)
sys.exit(status)
""",
)


def fill(path: Path, rows: int, big_artifacts: int = 4) -> None:
    """Make the database at `path` with two accounts. The account to delete has about so many rows."""
    prepare(path, *newest_schema())
    rnd = random.Random(0)
    with closing(connect(path)) as tx:
        tx.execute("PRAGMA synchronous = OFF")
        tx.execute("PRAGMA cache_size = -600000")  # KiB: what does not fit is written twice
        tx.execute("BEGIN IMMEDIATE")
        hashed = argon2.PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1).hash(PASSWORD)
        account_id = accounts.add_account(tx, GOING, None, hashed, time.time()).id
        accounts.add_account(tx, STAYING, None, hashed, time.time())
        wallet.book(tx, account_id, rows + 1, description="", now_seconds=1.0)
        _add_files(tx, account_id, big_artifacts)
        words = ["".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=rnd.randrange(3, 11))) for _ in range(50_000)]
        for _ in range(int(rows * _TEXTS_SHARE)):
            _add_texts(tx, account_id, " ".join(words[int(rnd.paretovariate(0.5)) % len(words)] for _ in range(30)))
        for share, statement in _TABLES:
            tx.execute(_NUMBERS + statement, {"rows": int(rows * share), "account_id": account_id, "micros": rows + 1})
        tx.execute("COMMIT")
    os.sync()  # or the first commits of what is measured would wait for all of this


def _add_texts(tx: Connection, account_id: str, text: str) -> None:
    conversation = conversations.add_conversation(tx, account_id, 1.0, title=text[:40].strip())
    history.add_message(tx, account_id, role="user", content=text, now_seconds=1.0, conversation_id=conversation.id)


def _add_files(tx: Connection, account_id: str, big: int) -> None:
    project = (
        "INSERT INTO projects (id, account_id, name, instructions, created_at, updated_at) VALUES (?, ?, 'p', '', 1, 1)"
    )
    tx.executemany(project, ((f"proj_bench{number}", account_id) for number in range(_PROJECTS)))
    for number in range(_ARTIFACTS):
        size = 30 * _MIB if number < big else 20_000
        content_id = f"content_bench{number}"
        tx.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (account_id, content_id))
        tx.executemany(
            "INSERT INTO artifact_chunks (account_id, content_id, number, content) VALUES (?, ?, ?, ?)",
            (
                (account_id, content_id, chunk, bytes(min(262_144, size - chunk * 262_144)))
                for chunk in range(-(-size // 262_144))
            ),
        )
        tx.execute(
            """
            INSERT INTO artifacts (id, account_id, name, content_type, size, sha256, content_id, created_at, updated_at)
            VALUES (?, ?, 'a file', 'a/b', ?, zeroblob(32), ?, 1, 1)
            """,
            (f"art_bench{number}", account_id, size, content_id),
        )


@dataclass(frozen=True)
class Transaction:
    """One transaction of the writer, or one checkpoint: times of the machine's clock in seconds."""

    began: float
    ended: float
    cpu_seconds: float
    commit_seconds: float
    name: str

    def __str__(self) -> str:
        wall, cpu, commit = (
            seconds * 1000 for seconds in (self.ended - self.began, self.cpu_seconds, self.commit_seconds)
        )
        return f"{self.name[:60]}: {wall:.0f} ms, of CPU {cpu:.1f}, commit {commit:.1f}"


def delete(server: RunningServer, *, by_command: bool) -> tuple[float, float, list[tuple[float, float]]]:
    """Delete the account, as its owner or `by_command`. Return when that began and ended, and the same for each write
    of the other account."""
    with _signed_in(server, GOING) as going, _signed_in(server, STAYING) as staying:
        ends: list[float] = []

        def leave() -> None:
            if by_command:
                env = {**os.environ, "PYTHONPATH": str(ROOT), "SVC_DATA_DIR": str(server.data_dir)}
                subprocess.run([sys.executable, "-m", "svc", "user", "delete", GOING], cwd=ROOT, env=env, check=True)
            else:
                assert going.request("DELETE", "/user/me", json={"password": PASSWORD}).status_code == 204
            ends.append(time.monotonic())

        leaving = threading.Thread(target=leave)
        staying.patch("/user/me", json={"name": "first"})
        began, writes = time.monotonic(), []
        leaving.start()
        while leaving.is_alive():
            write_began = time.monotonic()
            assert staying.patch("/user/me", json={"name": f"at {write_began}"}).status_code == 200
            writes.append((write_began, time.monotonic()))
            time.sleep(_PAUSE_SECONDS)
    return began, ends[0], writes


def _signed_in(server: RunningServer, email: str) -> httpx.Client:
    options: dict[str, Any] = {"verify": server.tls or False, "trust_env": False, "timeout": 3_600}
    session = httpx.post(f"{server.base_url}/auth/login", json={"email": email, "password": PASSWORD}, **options).json()
    headers = {"authorization": f"Bearer {session['access_token']}"}
    return httpx.Client(base_url=server.base_url, headers=headers, **options)


def rows_of(path: Path) -> int:
    """Return how many rows of the database belong to an account."""
    with closing(connect(path, query_only=True)) as conn:
        tables = [row[0] for row in conn.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%account_id TEXT%'")]
        return sum(conn.execute(f"SELECT count(account_id) FROM {table}").fetchone()[0] for table in tables)


def report(
    began: float, ended: float, writes: list[tuple[float, float]], transactions: list[Transaction]
) -> Iterator[str]:
    """The lines that tell what was found."""
    waits = sorted((end - begin) * 1000 for begin, end in writes)
    slow = [write for write in writes if (write[1] - write[0]) * 1000 > MOST_MS]
    yield f"deleted in {ended - began:.1f} s; another's {len(waits)} writes: {_spread(waits)}; {len(slow)} over {MOST_MS:.0f} ms"
    by_name: dict[str, list[Transaction]] = defaultdict(list)
    for transaction in transactions:
        by_name[transaction.name if len(transaction.name.split()) == 1 else "several"].append(transaction)
    for name, those in sorted(by_name.items()):
        cpu = _spread(sorted(one.cpu_seconds * 1000 for one in those))
        wall = _spread(sorted((one.ended - one.began) * 1000 for one in those))
        commit_ms = max(one.commit_seconds for one in those) * 1000
        yield f"  {name}: {len(those)}, CPU {cpu}; wall {wall}; commit up to {commit_ms:.1f} ms"
    for begin, end in slow:
        yield f"  a write of {(end - begin) * 1000:.0f} ms, {begin - began:.1f} s after the beginning, beside"
        for one in transactions:
            if one.began < end and one.ended > begin:
                yield f"    at {(one.began - begin) * 1000:+.0f} ms {one}"


def _spread(sorted_ms: list[float]) -> str:
    if len(sorted_ms) < 2:
        return ", ".join(f"{ms:.1f} ms" for ms in sorted_ms)
    p99 = statistics.quantiles(sorted_ms, n=100, method="inclusive")[98]
    return f"p50 {statistics.median(sorted_ms):.1f}, p99 {p99:.1f}, longest {sorted_ms[-1]:.1f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="about how many the account has")
    parser.add_argument("--files", type=int, default=4, help="of 32 MiB each, besides small ones")
    parser.add_argument("--folder", type=Path, help="where the database lies: a disk, or memory such as /dev/shm")
    parser.add_argument(
        "--by-command", action="store_true", help="by `svc user delete` beside the server, not through the API"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-delete-", dir=arguments.folder) as made:
        folder, data = Path(made), Path(made) / "data"
        data.mkdir(mode=0o700)
        fill(data / "service.db", arguments.rows, arguments.files)
        print(f"{rows_of(data / 'service.db')} rows, {(data / 'service.db').stat().st_size / _MIB:.0f} MiB", flush=True)
        file = folder / "transactions"
        env = {"TRANSACTIONS_FILE": str(file), "PYTHONPATH": str(ROOT)}
        with running_server_sync(folder, env, _COMMAND) as server:
            found = delete(server, by_command=arguments.by_command)
        transactions = [Transaction(*one) for one in json.loads(file.read_text())]
        print(*report(*found, [one for one in transactions if one.began >= found[0]]), sep="\n")
    return 1 if any((end - begin) * 1000 > MOST_MS for begin, end in found[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
