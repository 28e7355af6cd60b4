"""An account with rows in every table and a unique text in every column, and what of them is found in files."""

import contextlib
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from svc import audit
from svc.billing import wallet
from svc.content import conversations, history, word_blocks
from svc.schema import connect

ROUNDS = 12  # rows in each table: enough to split pages
_WINDOW = 24
Texts = dict[str, list[bytes]]  # by table and column, the first bytes of each value

# Columns without personal data, or in which the API cannot store any: the reason why they need no unique text.
NOT_PERSONAL = {
    "one of a few words": """accounts.tier accounts.generate_titles accounts.language accounts.group_name accounts.group_claimed accounts.allowance_month api_keys.month wallets.month ledger.month holds.month links.purpose runs.status runs.reason
        messages.role messages.status answers.finish_reason support_conversations.status support_messages.role ledger.kind
        checkouts.state usage_days.day usage_days.group_name oauth_flows.provider identities.issuer audit.action
        audit.actor sign_ins.way sign_ins.code artifacts.content_type api_keys.key_prefix providers.api
        imports.status imports.source import_entries.status imported_items.kind imported_items.source
        project_files.status project_files.error_code file_passages.mark share_pictures.content_type""",
    "the same for all: it does not say whose": "messages.model runs.model usage_days.model ledger.model accounts.default_model",
    "numbers": "fresh_words.place",
    "hashes of random secrets, which are not deleted with texts": "oauth_flows.browser_hash oauth_codes.browser_hash",
    "the books, which stay without a person": "ledger.reference checkouts.payment_intent",
    "the audit log, which stays without a person": "audit.details audit.subject",
}
_NOT_PERSONAL = set(" ".join(NOT_PERSONAL.values()).split())


def fill(path: Path, account_id: str) -> None:
    """Store rows of the account in every table, each with a unique text in every column that can hold one."""
    with contextlib.closing(connect(path)) as tx:
        tx.create_function("words", 1, words)
        tx.create_function("blob", 1, secrets.token_bytes)
        for number in range(ROUNDS):
            tx.execute("BEGIN IMMEDIATE")
            _fill_round(tx, account_id, f"{account_id[-12:]}_{number}")
            tx.execute("COMMIT")


def words(count: int) -> str:
    return " ".join("q" + secrets.token_hex(6) for _ in range(count))


def _fill_round(tx: sqlite3.Connection, account: str, n: str) -> None:
    values: dict[str, Any] = {"a": account, "n": n, "now": time.time()}
    now = values["now"]
    tx.execute(
        "UPDATE accounts SET name = words(5), instructions = words(9) WHERE id = ?",
        (account,),
    )
    audit.add(tx, now, audit.OPERATOR, "user.rename", account, {"name": words(4)})
    wallet.book(tx, account, 1_000, description=words(3), now_seconds=now)
    conversation = conversations.add_conversation(tx, account, now, title=words(6))
    for count in (8, 400):
        message = history.add_message(
            tx, account, conversation_id=conversation.id, role="user", content=words(count), now_seconds=now
        )
    values |= {"conversation": conversation.id, "message": message.id}
    for statement in _STATEMENTS.split(";"):
        tx.execute(statement, values)


_STATEMENTS = """
INSERT INTO links (token_hash, account_id, purpose, by_mail, expires_at, email, email_key) VALUES (blob(32), :a, 'change', 0, :now + 9000, words(2) || '@example.com', words(2));
INSERT INTO identities (id, account_id, issuer, subject, email, created_at) VALUES ('idn_' || :n, :a, 'https://issuer.example', words(2), words(2), :now);
INSERT INTO oauth_flows (state_hash, browser_hash, provider, account_id, expires_at) VALUES (blob(32), blob(32), 'issuer', :a, :now + 9000);
INSERT INTO oauth_codes (code_hash, browser_hash, account_id, expires_at) VALUES (blob(32), blob(32), :a, :now + 9000);
INSERT INTO sign_ins (id, at, account_id, way, code) VALUES ('sgn_' || :n, :now, :a, 'password', 'ok');
INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at) VALUES ('key_' || :n, :a, blob(32), 'svc-v1-abc', words(3), :now);
INSERT INTO projects (id, account_id, name, instructions, created_at, updated_at) VALUES ('proj_' || :n, :a, words(3), words(60), :now, :now);
INSERT INTO prompts (id, account_id, name, text, created_at, updated_at) VALUES ('prm_' || :n, :a, words(3), words(60), :now, :now);
INSERT INTO artifact_contents (account_id, id) VALUES (:a, 'content_' || :n);
INSERT INTO artifact_chunks VALUES (:a, 'content_' || :n, 0, blob(20000));
INSERT INTO artifacts (id, account_id, name, content_type, size, sha256, content_id, created_at, updated_at, prompt)
    VALUES ('art_' || :n, :a, words(3), 'a/b', 20000, blob(32), 'content_' || :n, :now, :now, words(90));
INSERT INTO file_texts (account_id, id) VALUES (:a, 'text_' || :n);
INSERT INTO file_passages (account_id, text_id, mark, from_line, to_line, text)
    VALUES (:a, 'text_' || :n, '+proj_1+', 1, 1, words(90));
INSERT INTO project_files (account_id, project_id, artifact_id, status, error_code, error_message, created_at)
    VALUES (:a, 'proj_' || :n, 'art_' || :n, 'failed', 'no_text', words(9), :now);
INSERT INTO projects (id, account_id, name, instructions, created_at, updated_at) VALUES ('read_' || :n, :a, words(3), words(60), :now, :now);
INSERT INTO project_files (account_id, project_id, artifact_id, status, text_id, created_at)
    VALUES (:a, 'read_' || :n, 'art_' || :n, 'ready', 'text_' || :n, :now);
INSERT INTO runs (id, account_id, goal, model, max_steps, created_at, status, output, finished_at, events)
    VALUES ('run_' || :n, :a, words(20), 'm', 6, :now, 'final', words(20), :now, words(200));
INSERT INTO runs (id, account_id, goal, model, max_steps, created_at, status, error, finished_at)
    VALUES ('err_' || :n, :a, words(20), 'm', 6, :now, 'error', words(20), :now);
INSERT INTO messages (id, account_id, conversation_id, role, content, created_at, status, error)
    VALUES ('fail_' || :n, :a, :conversation, 'assistant', words(9), :now, 'failed', words(9));
INSERT INTO shares (id, account_id, conversation_id, token_hash, title, messages, created_at)
    VALUES ('shr_' || :n, :a, :conversation, blob(32), words(5), '["' || words(90) || '"]', :now);
INSERT INTO share_pictures VALUES (:a, 'shr_' || :n, 'art_' || :n, 'content_' || :n, 'image/png', 20000);
INSERT INTO branches (account_id, conversation_id, branch, last, shown_to) VALUES (:a, :conversation, 0, 9e9, 9e9);
INSERT INTO answers (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms, finish_reason, reasoning, memory, sealed_call_id, sealed, steps, sources, waiting)
    VALUES (:message, :a, 1, 1, 0, 1, 'stop', words(150), '["' || words(9) || '"]', words(3), '["' || words(9) || '"]',
        '["' || words(9) || '"]', '["' || words(9) || '"]', '{"' || words(9) || '":1}');
UPDATE conversations SET always_allow = '["' || words(9) || '"]', summary = words(90), summary_up_to_id = :message WHERE account_id = :a;
INSERT INTO support_conversations (id, account_id, status, subject, created_at, updated_at, closed_at)
    VALUES ('sup_' || :n, :a, 'closed', words(3), :now, :now, :now);
INSERT INTO support_conversations (id, account_id, subject, created_at, updated_at)
    VALUES ('sup_' || :a, :a, words(3), :now, :now) ON CONFLICT DO NOTHING;
INSERT INTO support_messages (id, account_id, support_id, role, content, created_at)
    VALUES ('s_' || :n, :a, 'sup_' || :a, 'user', words(60), :now);
INSERT INTO providers (id, account_id, name, base_url, sealed_key, api_key_hint, models, created_at)
    VALUES ('prov_' || :n, :a, 'p' || lower(hex(blob(20))), 'http://' || words(1) || '.example/' || words(1), blob(60), words(2), '["' || words(9) || '"]', :now);
INSERT INTO tool_servers (id, account_id, name, url, sealed_key, api_key_hint, tools, accepted, ask, failed, detail, read_at, created_at)
    SELECT 'tsrv_' || :n, :a, 't' || lower(hex(blob(20))), 'http://' || words(1) || '.example/' || words(1), blob(60), words(2),
        '["' || words(9) || '"]', '{"' || words(3) || '":""}', '{"' || words(3) || '":true}', 0, words(5), :now, :now
    WHERE (SELECT count(*) FROM tool_servers WHERE account_id = :a) < 10;
INSERT INTO checkouts (id, account_id, amount_micros, session_id, created_at) VALUES ('chk_' || :n, :a, 5000000, 'cs_' || :n, :now);
INSERT INTO usage_days (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros)
    VALUES (:a, '2026-01-01', 'own/' || :n, '', 1, 1, 1, 0);
INSERT INTO idempotency_keys (id, account_id, place, body_sha256, claimed_at, status, headers, size)
    VALUES ('idem_' || :n, :a, blob(32), blob(32), :now, 200, '{"a":"' || words(3) || '"}', 9000);
INSERT INTO idempotency_chunks (account_id, key_id, number, content) VALUES (:a, 'idem_' || :n, 0, blob(9000));
INSERT INTO imports (id, account_id, status, reason, settings, created_at)
    VALUES ('imp_' || :n, :a, 'failed', words(9), '{"a":"' || words(9) || '"}', :now);
INSERT INTO import_entries (account_id, import_id, title, status, reason)
    VALUES (:a, 'imp_' || :n, words(5), 'failed', words(9));
INSERT INTO imported_items (account_id, import_id, kind, source, conversation_id, source_id, item_id)
    VALUES (:a, 'imp_' || :n, 'message', 'claude', :conversation, words(2), :message);
INSERT INTO reserved_room (account_id, id, bytes, artifacts) VALUES (:a, 'room_' || :n, 1, 0)
"""


def columns(conn: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield the table and name of each column with texts or bytes of accounts."""
    query = """
        SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
        WHERE t.type = 'table' AND t.schema = 'main' AND c.type IN ('TEXT', 'BLOB') AND (
            t.name IN ('accounts', 'audit', 'word_blocks')
            OR EXISTS (SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'account_id'))
    """
    for table, column in conn.execute(query).fetchall():
        if not (column == "id" or column.endswith("_id")) and f"{table}.{column}" not in _NOT_PERSONAL:
            yield table, column


def texts(conn: sqlite3.Connection, account_id: str) -> Texts:
    """Return the beginnings of all values of an account, by table and column."""
    owners = {
        "accounts": "id = ?",
        "audit": "subject = ?",
        "word_blocks": "run IN (SELECT id FROM word_runs WHERE account_id = ?)",
    }
    found: Texts = {}
    for table, column in columns(conn):
        query = f"SELECT CAST({column} AS BLOB) FROM {table} WHERE {owners.get(table, 'account_id = ?')}"
        values = [row[0] for row in conn.execute(query, (account_id,)) if row[0]]
        start = 40 if column in ("lines", "password_hash") else 0  # they begin alike, and few are as short
        found[f"{table}.{column}"] = [value[start : start + _WINDOW] for value in values if len(value) > start + 8]
    return found


def content_of(folder: Path) -> bytes:
    """Return all bytes of all files of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def found_in(content: bytes, sought: Texts) -> Texts:
    """Return those of the texts that a file's content has.

    Zeros are most of a database: longer runs of them than a text has are shortened first.
    """
    content = re.sub(rb"\0{%d,}" % (_WINDOW + 1), bytes(_WINDOW), content)
    found = {place: [text for text in those if text in content] for place, those in sought.items()}
    return {place: those for place, those in found.items() if those}


def indexed(conn: sqlite3.Connection) -> str:
    """Return all words of the index of words."""
    fresh = [row[0] for row in conn.execute("SELECT words FROM fresh_words")]
    blocks = [row[0] for row in conn.execute("SELECT lines FROM word_blocks")]
    return "".join([*fresh, *map(word_blocks.decompressed, blocks)])
