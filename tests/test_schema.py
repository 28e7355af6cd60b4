"""schema.sql: every rule that stands there, broken by raw SQL, fails; and a table is written by its owner alone."""

import ast
import contextlib
import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from svc import audit, quota
from svc.billing import payments, wallet
from svc.deletion import slices
from svc.routes.export import KINDS
from svc.schema import SCHEMA, connect
from tests.support import remains
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.trees import nodes_of

ROOT = Path(__file__).parent.parent
SAMPLE = """
INSERT INTO accounts (id, email, email_key, created_at)
    VALUES ('a', 'a@x', 'a@x', 1), ('b', 'b@x', 'b@x', 1), ('c', 'c@x', 'c@x', 1);
INSERT INTO links VALUES (zeroblob(32), 'a', 'reset', 1, 2, NULL, NULL),
    (CAST(printf('%032d', 1) AS BLOB), 'b', 'undo', 0, 2, 'b@y', 'b@y');
INSERT INTO api_keys VALUES ('k', 'a', zeroblob(32), 'svc-v1-aaa', 'laptop', 1, NULL, 0, NULL, NULL, 0),
    ('l', 'b', CAST(printf('%032d', 1) AS BLOB), 'svc-v1-bbb', 'laptop', 1, 2, 0, NULL, NULL, 0);
INSERT INTO projects VALUES ('p', 'a', 'plans', '', 6, 1, 1), ('q', 'b', 'plans', '', NULL, 1, 1);
INSERT INTO prompts VALUES ('pa', 'a', 'tone', 'Be kind.', 1, 1), ('pb', 'b', 'tone', 'Be kind.', 1, 1);
INSERT INTO shared_prompts VALUES ('', 'tone', 'Be kind.');
INSERT INTO artifact_contents VALUES ('a', 'cf', 0), ('b', 'cg', 0), ('b', 'ch', 0);
INSERT INTO artifacts VALUES ('f', 'a', 'p', 'r', 'notes.txt', 'text/plain', 1, zeroblob(32), 'cf', 1, 1, NULL),
    ('g', 'b', NULL, NULL, 'notes.txt', 'text/plain', 1, zeroblob(32), 'cg', 1, 1, 'a pine');
INSERT INTO file_texts VALUES ('a', 't1', 0), ('b', 't2', 0), ('b', 't3', 1);
INSERT INTO project_files VALUES (1, 'a', 'p', 'f', 'ready', NULL, NULL, 't1', 5, 1), (2, 'b', 'q', 'g', 'failed', 'no_text', 'no', NULL, 0, 1);
INSERT INTO file_passages VALUES (1, 'a', 't1', '+p+', 1, 1, 1, 'hello'), (2, 'b', 't2', '+q+', NULL, 1, 1, 'hi');
INSERT INTO artifact_chunks VALUES ('a', 'cf', 0, zeroblob(1)), ('b', 'cg', 0, zeroblob(1));
INSERT INTO idempotency_keys VALUES ('e', 'a', zeroblob(32), zeroblob(32), 1, 200, '{}', 1, NULL, NULL),
    ('h', 'b', CAST(printf('%032d', 1) AS BLOB), zeroblob(32), 1, 200, '{}', 1, NULL, NULL),
    ('j', 'b', zeroblob(32), zeroblob(32), 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO idempotency_chunks VALUES ('a', 'e', 0, zeroblob(1)), ('b', 'h', 0, zeroblob(1));
INSERT INTO runs (id, account_id, goal, model, max_steps, project_id, created_at)
VALUES ('r', 'a', 'g', 'm', 6, 'p', 1),
    ('s', 'b', 'g', 'm', 6, NULL, 1);
INSERT INTO runs (id, account_id, goal, model, max_steps, project_id, created_at, status, output, finished_at)
    VALUES ('t', 'a', 'g', 'm', 6, 'p', 1, 'final', '42', 2);
INSERT INTO identities VALUES ('n', 'a', 'https://issuer', '1', NULL, 1), ('o', 'b', 'https://issuer', '2', NULL, 1);
INSERT INTO oauth_flows VALUES (zeroblob(32), zeroblob(32), 'issuer', 'a', 2),
    (CAST(printf('%032d', 1) AS BLOB), zeroblob(32), 'issuer', 'b', 2);
INSERT INTO sign_ins VALUES (1, 'g1', 1, 'a', 'password', 'ok'), (2, 'g2', 1, 'b', 'google', 'access_denied');
INSERT INTO oauth_codes
VALUES (zeroblob(32), zeroblob(32), 'a', 2), (CAST(printf('%032d', 1) AS BLOB), zeroblob(32), 'b', 2);
INSERT INTO deleted_conversations VALUES (1, 'a', 'conv_gone', 0, 1, 1), (2, 'b', 'conv_gone', 1, 1, 1);
INSERT INTO conversations VALUES (1, 'y', 'a', 'p', 'hello', 0, 0, 0.5, 100, 1, 1, 0, '[]', 0, 'so far', 'm0'),
    (2, 'z', 'b', NULL, NULL, 0, 1, NULL, NULL, 1, 1, 0, '[]', 1, NULL, NULL);
INSERT INTO shares VALUES (1, 'sh', 'a', 'y', zeroblob(32), 'hello', '[]', 1, 2),
    (2, 'si', 'b', 'z', CAST(printf('%032d', 1) AS BLOB), NULL, '[]', 1, NULL);
INSERT INTO share_pictures VALUES ('a', 'sh', 'f', 'cf', 'image/png', 9), ('b', 'si', 'g', 'cg', 'image/gif', 8);
INSERT INTO messages VALUES (1, 'm1', 'a', 'y', NULL, 'user', 'hello', NULL, 1, 0, 'complete', NULL),
    (2, 'm2', 'b', NULL, 's', 'assistant', 'hi', 'm', 1, 0, 'complete', NULL),
    (3, 'm3', 'b', 'z', NULL, 'assistant', '', 'm', 1, 0, 'in_progress', NULL);
INSERT INTO branches VALUES ('a', 'y', 0, NULL, NULL, NULL, 1, 0), ('a', 'y', 1, 0, 'm3', 'm1', 3, 3),
    ('b', 'z', 0, NULL, NULL, NULL, 2, 2);
INSERT INTO fresh_words VALUES ('a', '0000000080', 1, char(10) || 'hello' || char(10)), ('b', '0000000100', 1, 'hi');
INSERT INTO word_runs VALUES (1, 'b', 2, NULL), (2, 'a', 1, 3), (3, 'a', 2, NULL);
INSERT INTO word_blocks VALUES (1, 'hi 0000000100', x'00'), (2, 'hello 0000000080', x'00');
INSERT INTO word_purges VALUES (1, 'a', 1, 0, NULL), (2, 'b', 1, 0, 1);
INSERT INTO unindexed VALUES (1, 4), (2, 4);
INSERT INTO forgotten VALUES ('m1', 'a', 1), ('m2', 'b', 1);
INSERT INTO reindexing VALUES ('messages', 3);
INSERT INTO answers VALUES ('m1', 'a', 1, 2, 3, 4, 'stop', NULL, '[]', 1, 2, 'call_1', '[{}]', NULL, NULL, NULL, 5, 'm0');
INSERT INTO support_conversations
VALUES ('u', 'a', 'active', 'help', 1, 1, NULL), ('x', 'b', 'active', NULL, 1, 1, NULL),
    ('w', 'b', 'closed', NULL, 1, 1, 2);
INSERT INTO support_messages VALUES (1, 's1', 'a', 'u', 'user', 'help', 1), (2, 's2', 'b', 'x', 'operator', 'yes?', 1);
INSERT INTO imports (id, account_id, source, created_at) VALUES ('ia', 'a', 'claude', 1), ('ib', 'b', NULL, 1);
INSERT INTO import_entries (number, account_id, import_id, title, status) VALUES (1, 'a', 'ia', 'hello', 'imported'), (2, 'b', 'ib', NULL, 'failed');
INSERT INTO imported_items VALUES (1, 'a', 'ia', 'conversation', 'claude', '', 'uuid', 'y'), (2, 'b', 'ib', 'message', 'svc', 'z', 'm', 'm3');
INSERT INTO providers VALUES ('v', 'a', 'lab', 'http://lab/v1', NULL, NULL, NULL, 1, 'chat'),
    ('w', 'b', 'lab', 'http://lab/v1', x'00', 'x', '[]', 1, 'messages');
INSERT INTO tool_servers VALUES ('ts', 'a', 'wiki', 'http://wiki/mcp', NULL, NULL, '[]', NULL, '{}', 1, 'no', 1, 1),
    ('tt', 'b', 'wiki', 'http://wiki/mcp', x'00', 'x', '[{}]', '{}', '{}', 0, NULL, 1, 1);
INSERT INTO operator_tool_servers VALUES ('wiki', '{}', '[]', NULL, 0, NULL, NULL);
INSERT INTO tool_months VALUES ('2026-09', 'calculate', 2, 1, 0);
INSERT INTO checkouts (id, account_id, amount_micros, session_id, created_at)
    VALUES ('c', 'a', 5000000, 'cs_1', 1), ('d', 'b', 5000000, NULL, 1);
INSERT INTO ledger (seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference, created_at)
    VALUES (1, 'led_1', 'a', 'credit', 5000000, 5000000, 'paid', 'c', 1);
INSERT INTO ledger (seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference, created_at)
    VALUES (2, 'led_2', 'a', 'debit', -1000000, 4000000, 'chat', 'h', 1);
INSERT INTO holds VALUES ('i', 'a', 100, 1, 'k', '2026-09');
INSERT INTO reserved_room VALUES ('a', 'room_1', 1000, 1), ('b', 'room_2', 1000, 0);
UPDATE checkouts SET state = 'paid', paid_at = 2 WHERE id = 'c';
INSERT INTO payment_events VALUES ('evt_1', 'paid', 'cs_1', 'c', 1, NULL, 2, 5000000, 'usd', 'pi_1');
INSERT INTO usage_days
VALUES ('a', '2026-10-02', 'm', '', '', 1, 2, 3, 4, 1), ('b', '2026-10-02', 'm', 'k', 'lab', 1, 2, 3, 4, 1);
INSERT INTO deleted_usage VALUES ('2026-10-02', 'm', '', 'user_1', 1, 2, 3, 4, 1);
INSERT INTO given_allowances VALUES ('2026-10', zeroblob(32), 1);
UPDATE accounts SET allowance_month = '2026-10', allowance_given_micros = 5 WHERE id = 'a';
INSERT INTO overruns VALUES ('2026-10-02', 'm', 1, 2);
INSERT INTO audit VALUES (1, 'aud_1', 1, 'operator', 'user.add', 'a', '{}', '{"email":"a@x"}');
"""
# The tables of money have their own raw SQL in tests/billing/test_wallet.py.
MONEY = {"wallets", "ledger", "holds", "checkouts", "payment_events"}

MANY_CONTENTS = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
INSERT INTO artifact_contents SELECT 'b', 'c' || n, 0 FROM numbers
"""
MANY_ARTIFACTS = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9998)
INSERT INTO artifacts SELECT 'x' || n, 'b', NULL, NULL, 'x', 'a/b', 0, zeroblob(32), 'c' || n, 1, 1, NULL FROM numbers
"""
ONE_MORE = "INSERT INTO artifacts VALUES ('{0}', 'b', NULL, NULL, 'x', 'a/b', 0, zeroblob(32), '{0}', 1, 1, NULL)"
ANOTHER_KEY = "INSERT INTO idempotency_keys (id, account_id, place, body_sha256, claimed_at) VALUES"
ARTIFACTS_BOUNDED = re.findall(r"CREATE TRIGGER artifacts_bounded\b.*?END;", SCHEMA.read_text(), re.DOTALL)

# (table, rule): statements that break it. A rule is the name of a CHECK or of a trigger, or the columns of a UNIQUE.
# Of several statements in one tuple the last is refused.
BROKEN: dict[tuple[str, str], list[str | tuple[str, ...]]] = {
    ("accounts", "email_length"): [
        "UPDATE accounts SET email = 'ab'",
        "UPDATE accounts SET email = printf('%255d', 1)",
    ],
    ("accounts", "email_until_deletion"): ["UPDATE accounts SET email = NULL", "UPDATE accounts SET email_key = NULL"],
    ("accounts", "nothing_personal_after"): [
        *(
            f"UPDATE accounts SET email = NULL, email_key = NULL, deleting_at = 1, {column} = 'abc'"
            for column in ("name", "password_hash", "default_model", "instructions")
        ),
        *(f"UPDATE accounts SET {column} = NULL, deleting_at = 1" for column in ("email", "email_key")),
    ],
    ("accounts", "name_length"): ["UPDATE accounts SET name = printf('%201d', 1)"],
    ("accounts", "tier_known"): [
        "UPDATE accounts SET tier = 'Pro' WHERE id = 'b'",
        "UPDATE accounts SET tier = '' WHERE id = 'b'",
    ],
    ("accounts", "default_model_length"): ["UPDATE accounts SET default_model = printf('%365d', 1)"],
    ("accounts", "account_instructions_length"): ["UPDATE accounts SET instructions = printf('%8001d', 1)"],
    ("accounts", "language_form"): ["UPDATE accounts SET language = 'deu'"],
    ("accounts", "generate_titles_known"): ["UPDATE accounts SET generate_titles = 'sometimes'"],
    ("accounts", "memory_enabled_bool"): ["UPDATE accounts SET memory_enabled = 2"],
    ("accounts", "admin_bool"): ["UPDATE accounts SET admin = 2"],
    ("accounts", "group_name_length"): [
        f"UPDATE accounts SET group_name = {text}" for text in ("''", "printf('%64d', 1)")
    ],
    ("accounts", "group_claimed_length"): [
        f"UPDATE accounts SET group_claimed = {text}" for text in ("''", "printf('%64d', 1)")
    ],
    ("accounts", "group_chosen_bool"): ["UPDATE accounts SET group_chosen = 2"],
    ("accounts", "allowance_month_form"): ["UPDATE accounts SET allowance_month = '2026-9' WHERE id = 'b'"],
    ("accounts", "allowance_given_range"): [
        f"UPDATE accounts SET allowance_given_micros = {micros} WHERE id = 'b'" for micros in (-1, 10**12 + 1)
    ],
    ("accounts", "accounts_get_an_allowance_once"): [
        f"UPDATE accounts SET {change} WHERE id = 'a'"
        for change in (
            "allowance_given_micros = 4",
            "allowance_month = '2026-09', allowance_given_micros = 9",
            "allowance_month = NULL",
        )
    ],
    ("accounts", "accounts_stay_pro"): ["UPDATE accounts SET tier = 'free' WHERE id = 'a'"],
    ("accounts", "id"): ["INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'x@x', 'x@x', 1)"],
    ("accounts", "email_key"): [
        "INSERT INTO accounts (id, email, email_key, created_at) VALUES ('x', 'A@x', 'a@x', 1)"
    ],
    ("links", "token_hash_sha256"): ["UPDATE links SET token_hash = zeroblob(31)"],
    ("links", "purpose_known"): ["UPDATE links SET purpose = 'session'"],
    ("links", "by_mail_bool"): ["UPDATE links SET by_mail = 2"],
    ("links", "link_email_length"): ["UPDATE links SET email = 'x' WHERE email IS NOT NULL"],
    ("links", "email_of_a_change"): [
        "UPDATE links SET email_key = NULL",
        "UPDATE links SET email = 'a@z', email_key = 'a@z' WHERE purpose = 'reset'",
    ],
    ("links", "token_hash"): ["INSERT INTO links VALUES (zeroblob(32), 'c', 'reset', 1, 2, NULL, NULL)"],
    ("links", "links_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20)
        INSERT INTO links SELECT CAST(printf('%032d', 100 + n) AS BLOB), 'a', 'reset', 1, 2, NULL, NULL FROM numbers
        """
    ],
    ("api_keys", "token_hash_sha256"): ["UPDATE api_keys SET token_hash = zeroblob(33) WHERE id = 'k'"],
    ("api_keys", "key_prefix_form"): [
        f"UPDATE api_keys SET key_prefix = '{text}'" for text in ("svc-v1-aaaa", "svc-v2-aaa", "svc-v1-aa", "")
    ],
    ("api_keys", "name_not_blank"): ["UPDATE api_keys SET name = ''", "UPDATE api_keys SET name = '   '"],
    ("deleted_conversations", "deleted_pinned_bool"): ["UPDATE deleted_conversations SET pinned = 2"],
    ("api_keys", "key_limit_range"): [f"UPDATE api_keys SET monthly_limit_micros = {n}" for n in (-1, 10**15 + 1)],
    ("api_keys", "key_month_not_negative"): ["UPDATE api_keys SET month_spent_micros = -1"],
    ("api_keys", "id"): ["UPDATE api_keys SET id = 'k'"],
    ("api_keys", "token_hash"): ["UPDATE api_keys SET token_hash = zeroblob(32)"],
    ("projects", "project_name_form"): [
        "UPDATE projects SET name = ' '",
        "UPDATE projects SET name = printf('%201d', 1)",
    ],
    ("projects", "instructions_length"): ["UPDATE projects SET instructions = printf('%100001d', 1)"],
    ("projects", "max_planner_steps_range"): [
        f"UPDATE projects SET max_planner_steps = {steps}" for steps in (0, 21, -1)
    ],
    ("projects", "id"): ["INSERT INTO projects VALUES ('p', 'b', 'x', '', 6, 1, 1)"],
    ("artifacts", "artifact_name_form"): [
        "UPDATE artifacts SET name = ' '",
        "UPDATE artifacts SET name = printf('%201d', 1)",
    ],
    ("artifacts", "content_type_form"): [
        *(
            f"UPDATE artifacts SET content_type = '{text}'"
            for text in ("text", "/plain", "text/", "text/ä", "text/x\r\ny")
        ),
        "UPDATE artifacts SET content_type = 'text/' || printf('%200d', 1)",
    ],
    ("artifacts", "artifact_size_range"): ["UPDATE artifacts SET size = -1", "UPDATE artifacts SET size = 33554433"],
    ("artifacts", "prompt_length"): ["UPDATE artifacts SET prompt = printf('%4001d', 1)"],
    ("artifacts", "artifact_sha256"): ["UPDATE artifacts SET sha256 = zeroblob(20)"],
    ("artifacts", "id"): [
        "INSERT INTO artifacts SELECT id, 'b', NULL, NULL, name, 'a/b', 1, sha256, 'ch', 1, 1, NULL FROM artifacts"
    ],
    ("artifacts", "account_id, content_id"): [
        "INSERT INTO artifacts SELECT 'x', 'b', NULL, NULL, name, 'a/b', 1, sha256, 'cg', 1, 1, '' FROM artifacts "
        "WHERE id = 'g'"
    ],
    # The 10,000th is taken; those before it come without the trigger, which counts at each row.
    ("artifacts", "artifacts_bounded"): [
        (
            MANY_CONTENTS,
            "DROP TRIGGER artifacts_bounded",
            MANY_ARTIFACTS,
            *ARTIFACTS_BOUNDED,
            ONE_MORE.format("c9999"),
            ONE_MORE.format("c10000"),
        )
    ],
    ("artifact_contents", "unused_bool"): ["UPDATE artifact_contents SET unused = 2"],
    ("artifact_contents", "account_id, id"): ["INSERT INTO artifact_contents VALUES ('a', 'cf', 0)"],
    ("projects", "projects_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
        INSERT INTO projects SELECT 'x' || n, 'b', 'x', '', NULL, 1, 1 FROM numbers
        """
    ],
    ("prompts", "prompt_name_form"): [
        "UPDATE prompts SET name = ' '",
        "UPDATE prompts SET name = printf('%101d', 1)",
    ],
    ("prompts", "prompt_text_form"): [
        "UPDATE prompts SET text = ' '",
        "UPDATE prompts SET text = printf('%8001d', 1)",
    ],
    ("prompts", "id"): ["INSERT INTO prompts VALUES ('pa', 'b', 'x', 'x', 1, 1)"],
    ("prompts", "account_id, name"): ["INSERT INTO prompts VALUES ('px', 'a', 'tone', 'x', 1, 1)"],
    ("prompts", "prompts_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500)
        INSERT INTO prompts SELECT 'x' || n, 'b', 'x' || n, 'x', 1, 1 FROM numbers
        """
    ],
    ("shared_prompts", "shared_group_length"): ["UPDATE shared_prompts SET group_name = printf('%064d', 1)"],
    ("shared_prompts", "shared_name_form"): [
        "UPDATE shared_prompts SET name = ' '",
        "UPDATE shared_prompts SET name = printf('%101d', 1)",
    ],
    ("shared_prompts", "shared_text_form"): [
        "UPDATE shared_prompts SET text = ' '",
        "UPDATE shared_prompts SET text = printf('%8001d', 1)",
    ],
    ("shared_prompts", "group_name, name"): ["INSERT INTO shared_prompts VALUES ('', 'tone', 'x')"],
    ("idempotency_keys", "account_id, id"): [f"{ANOTHER_KEY} ('e', 'a', NULL, zeroblob(32), 1)"],
    ("idempotency_keys", "account_id, place"): [f"{ANOTHER_KEY} ('x', 'a', zeroblob(32), zeroblob(32), 1)"],
    ("idempotency_keys", "place_sha256"): [f"UPDATE idempotency_keys SET place = zeroblob({n})" for n in (0, 31)],
    ("idempotency_keys", "body_sha256_length"): [
        "UPDATE idempotency_keys SET body_sha256 = zeroblob(31) WHERE id = 'j'"
    ],
    ("idempotency_keys", "kept_status_range"): [
        f"UPDATE idempotency_keys SET status = {status}, headers = '{{}}' WHERE id = 'j'" for status in (199, 500)
    ],
    ("idempotency_keys", "kept_headers_form"): [
        f"UPDATE idempotency_keys SET status = 200, headers = {text} WHERE id = 'j'"
        for text in ("'[]'", "'{' || printf('%10000d', 1) || '}'")
    ],
    ("idempotency_keys", "kept_size_range"): [
        f"UPDATE idempotency_keys SET status = 200, headers = '{{}}', size = {size} WHERE id = 'j'"
        for size in (-1, 8388609)
    ],
    ("idempotency_keys", "kept_whole"): [
        f"UPDATE idempotency_keys SET {columns} WHERE id = 'j'"
        for columns in (
            "status = 200",
            "headers = '{}'",
            "size = 1",
            "status = 200, headers = '{}', size = 1, run_id = 'r'",
        )
    ],
    ("idempotency_keys", "answers_are_kept_once"): [
        f"UPDATE idempotency_keys SET {column} = {column} WHERE id = 'e'"
        for column in ("body_sha256", "status", "headers", "size", "run_id")
    ],
    ("idempotency_chunks", "kept_chunk_number_range"): [
        f"UPDATE idempotency_chunks SET number = {number}" for number in (-1, 32)
    ],
    ("idempotency_chunks", "kept_chunk_length"): [
        f"UPDATE idempotency_chunks SET content = zeroblob({size})" for size in (0, 262145)
    ],
    ("idempotency_chunks", "account_id, key_id, number"): [
        "INSERT INTO idempotency_chunks VALUES ('a', 'e', 0, zeroblob(2))"
    ],
    ("artifact_chunks", "chunk_number_range"): [
        "UPDATE artifact_chunks SET number = -1",
        "UPDATE artifact_chunks SET number = 128",
    ],
    ("artifact_chunks", "chunk_length"): [
        f"UPDATE artifact_chunks SET content = zeroblob({size})" for size in (0, 262145)
    ],
    ("artifact_chunks", "account_id, content_id, number"): [
        "INSERT INTO artifact_chunks VALUES ('a', 'cf', 0, zeroblob(2))"
    ],
    ("runs", "status_known"): ["UPDATE runs SET status = 'done' WHERE id = 'r'"],
    ("runs", "goal_not_blank"): ["UPDATE runs SET goal = '  '"],
    ("runs", "max_steps_range"): ["UPDATE runs SET max_steps = 0", "UPDATE runs SET max_steps = 21"],
    ("runs", "steps_range"): ["UPDATE runs SET steps = 7", "UPDATE runs SET steps = -1"],
    ("runs", "output_of_final"): [
        "UPDATE runs SET output = 'x' WHERE id = 'r'",
        "UPDATE runs SET output = NULL WHERE id = 't'",
    ],
    ("runs", "error_of_error"): [
        "UPDATE runs SET error = 'x'",
        "UPDATE runs SET status = 'error', finished_at = 1 WHERE id = 'r'",
    ],
    ("runs", "reason_of_stopped"): [
        "UPDATE runs SET reason = 'x'",
        "UPDATE runs SET status = 'stopped', finished_at = 1 WHERE id = 'r'",
    ],
    ("runs", "cost_not_negative"): ["UPDATE runs SET cost_micros = -1"],
    ("runs", "finished_when_ended"): [
        "UPDATE runs SET finished_at = 1 WHERE id = 'r'",
        "UPDATE runs SET finished_at = NULL WHERE id = 't'",
    ],
    ("runs", "events_length"): ["UPDATE runs SET events = printf('%1000001d', 1)"],
    ("runs", "id"): ["UPDATE runs SET id = 'r'"],
    ("runs", "runs_end_once"): [
        "UPDATE runs SET status = 'running', output = NULL, finished_at = NULL WHERE id = 't'",
        "UPDATE runs SET status = 'final' WHERE id = 't'",
    ],
    ("file_texts", "account_id, id"): ["INSERT INTO file_texts VALUES ('a', 't1', 0)"],
    ("project_files", "account_id, project_id, artifact_id"): [
        "INSERT INTO project_files (account_id, project_id, artifact_id, created_at) VALUES ('a', 'p', 'f', 1)"
    ],
    ("project_files", "project_files_bounded"): [
        (
            """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)
            INSERT INTO artifact_contents SELECT 'a', 'c' || n, 0 FROM numbers""",
            """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)
            INSERT INTO artifacts
            SELECT 'x' || n, 'a', NULL, NULL, 'x', 'a/b', 0, zeroblob(32), 'c' || n, 1, 1, NULL FROM numbers""",
            """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 199)
            INSERT INTO project_files (account_id, project_id, artifact_id, created_at)
            SELECT 'a', 'p', 'x' || n, 1 FROM numbers""",
            "INSERT INTO project_files (account_id, project_id, artifact_id, created_at) VALUES ('a', 'p', 'x200', 1)",
        )
    ],
    ("file_texts", "text_unused_bool"): ["UPDATE file_texts SET unused = 2"],
    ("project_files", "file_status_known"): ["UPDATE project_files SET status = 'lost' WHERE number = 1"],
    ("project_files", "file_error_code_length"): [
        "UPDATE project_files SET error_code = printf('%65d', 1) WHERE number = 2"
    ],
    ("project_files", "file_error_length"): [
        "UPDATE project_files SET error_message = printf('%1001d', 1) WHERE number = 2"
    ],
    ("project_files", "text_bytes_range"): ["UPDATE project_files SET text_bytes = -1"],
    ("project_files", "text_of_ready"): ["UPDATE project_files SET text_id = NULL WHERE number = 1"],
    ("project_files", "error_of_failed"): ["UPDATE project_files SET error_code = NULL WHERE number = 2"],
    ("file_passages", "mark_form"): ["UPDATE file_passages SET mark = 'p'"],
    ("file_passages", "page_positive"): ["UPDATE file_passages SET page = 0"],
    ("file_passages", "from_line_positive"): ["UPDATE file_passages SET from_line = 0"],
    ("file_passages", "to_line_range"): ["UPDATE file_passages SET from_line = 2"],
    ("file_passages", "passage_length"): ["UPDATE file_passages SET text = printf('%4001d', 1)"],
    ("imports", "import_status_known"): ["UPDATE imports SET status = 'paused'"],
    ("imports", "import_source_known"): ["UPDATE imports SET source = 'mail'"],
    ("imports", "import_reason_length"): ["UPDATE imports SET status = 'failed', reason = printf('%1001d', 1)"],
    ("imports", "import_settings_form"): ["UPDATE imports SET settings = '[]'"],
    ("imports", "import_reason_of_failed"): ["UPDATE imports SET reason = 'x'"],
    ("imports", "id"): ["INSERT INTO imports (id, account_id, status, created_at) VALUES ('ia', 'b', 'done', 1)"],
    ("imports", "account_id WHERE status = 'reading'"): [
        "INSERT INTO imports (id, account_id, created_at) VALUES ('ic', 'a', 1)"
    ],
    ("import_entries", "entry_title_length"): ["UPDATE import_entries SET title = printf('%201d', 1)"],
    ("import_entries", "entry_status_known"): ["UPDATE import_entries SET status = 'done'"],
    ("import_entries", "entry_reason_length"): ["UPDATE import_entries SET reason = printf('%1001d', 1)"],
    ("import_entries", "import_entries_bounded"): [
        (
            "UPDATE imports SET imported = 99998 WHERE id = 'ia'",
            "INSERT INTO import_entries (account_id, import_id, status) VALUES ('a', 'ia', 'skipped')",
            "INSERT INTO import_entries (account_id, import_id, status) VALUES ('a', 'ia', 'failed')",
            "INSERT INTO import_entries (account_id, import_id, status) VALUES ('a', 'ia', 'failed')",
        )
    ],
    ("imported_items", "item_kind_known"): ["UPDATE imported_items SET kind = 'run'"],
    ("imported_items", "item_source_known"): ["UPDATE imported_items SET source = 'mail'"],
    ("imported_items", "source_id_length"): ["UPDATE imported_items SET source_id = printf('%201d', 1)"],
    ("imported_items", "account_id, source, conversation_id, kind, source_id"): [
        "INSERT INTO imported_items VALUES (3, 'a', 'ia', 'conversation', 'claude', '', 'uuid', 'other')"
    ],
    ("providers", "provider_name_slug"): [
        f"UPDATE providers SET name = '{text}'" for text in ("", "A", "a b", "ä", "a/b", "a" * 64)
    ],
    ("providers", "base_url_scheme"): [
        f"UPDATE providers SET base_url = '{text}'" for text in ("", "ftp://x", "http://", "x")
    ],
    ("providers", "hint_with_key"): [
        "UPDATE providers SET api_key_hint = 'x'",
        "UPDATE providers SET sealed_key = NULL",
    ],
    ("providers", "models_list"): ["UPDATE providers SET models = '{}'", "UPDATE providers SET models = ''"],
    ("shares", "share_token_sha256"): ["UPDATE shares SET token_hash = zeroblob(31) WHERE number = 1"],
    ("shares", "share_title_length"): ["UPDATE shares SET title = printf('%201s', 'x')"],
    ("shares", "share_length"): ["UPDATE shares SET messages = printf('%4000001s', 'x')"],
    ("shares", "id"): ["UPDATE shares SET id = 'sh'"],
    ("shares", "token_hash"): ["UPDATE shares SET token_hash = zeroblob(32)"],
    ("shares", "shares_bounded"): [
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO shares (id, account_id, conversation_id, token_hash, messages, created_at)
        SELECT 'x' || i, 'a', 'y', CAST(printf('%032d', i + 1) AS BLOB), '[]', 1 FROM n
        """
    ],
    ("share_pictures", "share_picture_type"): ["UPDATE share_pictures SET content_type = 'image/svg+xml'"],
    ("share_pictures", "share_picture_size"): ["UPDATE share_pictures SET size = -1"],
    ("share_pictures", "account_id, share_id, artifact_id"): [
        "INSERT INTO share_pictures VALUES ('a', 'sh', 'f', 'cf', 'image/png', 1)"
    ],
    ("tool_servers", "tool_server_name_slug"): [
        f"UPDATE tool_servers SET name = '{text}'" for text in ("", "A", "a b", "ä", "a/b", "a" * 64)
    ],
    ("tool_servers", "tool_server_url_scheme"): [
        f"UPDATE tool_servers SET url = '{text}'" for text in ("", "ftp://x", "http://", "x")
    ],
    ("tool_servers", "tool_server_hint_with_key"): [
        "UPDATE tool_servers SET api_key_hint = 'x'",
        "UPDATE tool_servers SET sealed_key = NULL",
    ],
    ("tool_servers", "tools_list"): [
        "UPDATE tool_servers SET tools = '{}'",
        "UPDATE tool_servers SET tools = printf('[%600000d]', 1)",
    ],
    ("tool_servers", "accepted_form"): ["UPDATE tool_servers SET accepted = '[]'"],
    ("tool_servers", "ask_form"): ["UPDATE tool_servers SET ask = '[]'"],
    ("tool_servers", "failed_bool"): ["UPDATE tool_servers SET failed = 2"],
    ("tool_servers", "detail_length"): ["UPDATE tool_servers SET detail = printf('%1001s', 'x')"],
    ("tool_servers", "id"): ["UPDATE tool_servers SET id = 'ts'"],
    ("tool_servers", "account_id, name"): [
        "INSERT INTO tool_servers VALUES ('tu', 'a', 'wiki', 'http://x', NULL, NULL, '[]', NULL, '{}', 1, NULL, 1, 1)"
    ],
    ("tool_servers", "tool_servers_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10)
        INSERT INTO tool_servers
        SELECT 'x' || n, 'b', 'x' || n, 'http://x', NULL, NULL, '[]', NULL, '{}', 1, NULL, 1, 1 FROM numbers
        """
    ],
    ("operator_tool_servers", "operator_server_name_slug"): [
        f"UPDATE operator_tool_servers SET name = '{text}'" for text in ("", "A", "a" * 64)
    ],
    ("operator_tool_servers", "settings_form"): ["UPDATE operator_tool_servers SET settings = '[]'"],
    ("operator_tool_servers", "operator_tools_list"): ["UPDATE operator_tool_servers SET tools = '{}'"],
    ("operator_tool_servers", "operator_accepted_form"): ["UPDATE operator_tool_servers SET accepted = '[]'"],
    ("operator_tool_servers", "operator_failed_bool"): ["UPDATE operator_tool_servers SET failed = 2"],
    ("operator_tool_servers", "operator_detail_length"): [
        "UPDATE operator_tool_servers SET detail = printf('%1001s', 'x')"
    ],
    ("operator_tool_servers", "name"): ["INSERT INTO operator_tool_servers (name, settings) VALUES ('wiki', '{}')"],
    ("tool_months", "tool_month_form"): ["UPDATE tool_months SET month = '2026-9'"],
    ("tool_months", "tool_name_length"): ["UPDATE tool_months SET tool = printf('%65s', 'x')"],
    ("tool_months", "tool_calls_positive"): ["UPDATE tool_months SET calls = 0, failures = 0"],
    ("tool_months", "tool_failures_range"): [
        "UPDATE tool_months SET failures = 3",
        "UPDATE tool_months SET failures = -1",
    ],
    ("tool_months", "tool_cost_not_negative"): ["UPDATE tool_months SET cost_micros = -1"],
    ("tool_months", "month, tool"): ["INSERT INTO tool_months VALUES ('2026-09', 'calculate', 1, 0, 0)"],
    ("providers", "provider_api_known"): ["UPDATE providers SET api = 'completions'", "UPDATE providers SET api = ''"],
    ("providers", "id"): ["UPDATE providers SET id = 'v'"],
    ("providers", "account_id, name"): [
        "INSERT INTO providers VALUES ('x', 'a', 'lab', 'http://x', NULL, NULL, NULL, 1, 'chat')"
    ],
    ("providers", "providers_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100)
        INSERT INTO providers SELECT 'x' || n, 'b', 'x' || n, 'http://x', NULL, NULL, NULL, 1, 'chat' FROM numbers
        """
    ],
    ("identities", "subject_length"): [
        "UPDATE identities SET subject = ''",
        "UPDATE identities SET subject = printf('%256d', 1)",
    ],
    ("identities", "id"): ["UPDATE identities SET id = 'n'"],
    ("identities", "issuer, subject"): ["INSERT INTO identities VALUES ('x', 'c', 'https://issuer', '1', NULL, 1)"],
    ("oauth_flows", "state_hash_sha256"): ["UPDATE oauth_flows SET state_hash = zeroblob(31)"],
    ("oauth_flows", "browser_hash_sha256"): ["UPDATE oauth_flows SET browser_hash = zeroblob(31)"],
    ("oauth_flows", "state_hash"): ["UPDATE oauth_flows SET state_hash = zeroblob(32)"],
    ("oauth_codes", "code_hash_sha256"): ["UPDATE oauth_codes SET code_hash = zeroblob(31)"],
    ("oauth_codes", "browser_hash_sha256"): ["UPDATE oauth_codes SET browser_hash = zeroblob(31)"],
    ("oauth_codes", "code_hash"): ["UPDATE oauth_codes SET code_hash = zeroblob(32)"],
    ("conversations", "title_form"): [
        "UPDATE conversations SET title = ' '",
        "UPDATE conversations SET title = printf('%201d', 1)",
    ],
    ("conversations", "pinned_bool"): ["UPDATE conversations SET pinned = 2"],
    ("conversations", "archived_bool"): ["UPDATE conversations SET archived = 2"],
    ("conversations", "temperature_range"): [
        f"UPDATE conversations SET temperature = {value}" for value in (-0.1, 2.1)
    ],
    ("conversations", "max_output_tokens_range"): [
        f"UPDATE conversations SET max_output_tokens = {value}" for value in (0, 2147483648)
    ],
    ("conversations", "id"): [
        "INSERT INTO conversations VALUES (9, 'y', 'b', NULL, NULL, 0, 0, NULL, NULL, 1, 1, 0, '[]', 0, NULL, NULL)"
    ],
    ("conversations", "one_answer_at_a_time"): [
        "INSERT INTO messages SELECT 9, 'm9', account_id, conversation_id, run_id, role, '', model, 1, 0, status, NULL"
        " FROM messages WHERE id = 'm3'"
    ],
    ("messages", "message_status_known"): ["UPDATE messages SET status = 'done' WHERE id = 'm3'"],
    ("messages", "status_of_answer"): [
        "UPDATE messages SET role = 'user' WHERE id = 'm3'",
        "INSERT INTO messages SELECT 9, 'm9', account_id, NULL, 's', role, '', model, 1, 0, status, NULL FROM messages"
        " WHERE id = 'm3'",
    ],
    ("messages", "error_of_failed"): [
        "UPDATE messages SET error = '{}'",
        "UPDATE messages SET status = 'failed' WHERE id = 'm3'",
        "UPDATE messages SET status = 'failed', error = printf('%10001d', 1) WHERE id = 'm3'",
    ],
    ("messages", "answers_end_once"): ["UPDATE messages SET status = 'complete' WHERE id = 'm1'"],
    ("messages", "one_source"): [
        "UPDATE messages SET run_id = 'r' WHERE id = 'm1'",
        "UPDATE messages SET run_id = NULL WHERE id = 'm2'",
    ],
    ("messages", "role_known"): ["UPDATE messages SET role = 'tool'", "UPDATE messages SET role = ''"],
    ("messages", "content_length"): ["UPDATE messages SET content = printf('%1000001d', 1)"],
    ("fresh_words", "account_id, place"): ["INSERT INTO fresh_words VALUES ('a', '0000000080', 1, 'x')"],
    ("fresh_words", "fresh_lines_positive"): ["UPDATE fresh_words SET lines = 0"],
    ("word_blocks", "run, first"): ["INSERT INTO word_blocks VALUES (2, 'hello 0000000080', x'01')"],
    ("word_runs", "run_level_positive"): ["UPDATE word_runs SET level = 0"],
    ("word_runs", "into_later_run"): ["UPDATE word_runs SET into_run = id"],
    ("word_purges", "deleted_bytes_not_negative"): ["UPDATE word_purges SET deleted_bytes = -1"],
    ("word_purges", "account_id WHERE last_run IS NULL"): ["INSERT INTO word_purges VALUES (3, 'a', 1, 0, NULL)"],
    ("conversations", "title_version_range"): ["UPDATE conversations SET title_version = 128"],
    ("forgotten", "message_id"): ["INSERT INTO forgotten VALUES ('m1', 'a', 1)"],
    ("reindexing", "reindexing_known"): ["UPDATE reindexing SET texts = 'names'"],
    ("reindexing", "below_not_negative"): ["UPDATE reindexing SET below = -1"],
    ("reindexing", "texts"): ["INSERT INTO reindexing VALUES ('messages', 1)"],
    ("unindexed", "next_chunk_range"): [
        "UPDATE unindexed SET next_chunk = 128",
        "UPDATE unindexed SET next_chunk = -1",
    ],
    ("stored", "stored_not_negative"): ["UPDATE stored SET bytes = -1"],
    ("stored", "account_id"): ["INSERT INTO stored VALUES ('a', 0)"],
    ("installation", "one_installation"): ["UPDATE installation SET one = 2"],
    ("installation", "installation_id_form"): [
        f"UPDATE installation SET id = '{text}'" for text in ("0a1b2c3", "0a1b2c3d4", "0A1B2C3D", "")
    ],
    ("installation", "key_check_length"): ["UPDATE installation SET key_check = zeroblob(31)"],
    ("installation", "identity_key_length"): ["UPDATE installation SET identity_key = zeroblob(31)"],
    ("storage_limit", "one_limit"): ["UPDATE storage_limit SET one = 2"],
    ("storage_limit", "limit_not_negative"): ["UPDATE storage_limit SET bytes = -1"],
    ("reserved_room", "reserved_bytes_not_negative"): ["UPDATE reserved_room SET bytes = -1"],
    ("reserved_room", "reserved_artifacts_not_negative"): ["UPDATE reserved_room SET artifacts = -1"],
    ("reserved_room", "account_id, id"): ["INSERT INTO reserved_room VALUES ('a', 'room_1', 1, 0)"],
    ("answers", "message_id"): ["INSERT INTO answers SELECT * FROM answers"],
    ("answers", "answer_input_tokens_count"): ["UPDATE answers SET input_tokens = -1"],
    ("answers", "answer_cached_within_input"): [
        f"UPDATE answers SET cached_input_tokens = {count}" for count in ("-1", "input_tokens + 1")
    ],
    ("answers", "answer_saved_amount"): ["UPDATE answers SET saved_micros = -1"],
    ("answers", "answer_output_tokens_count"): ["UPDATE answers SET output_tokens = -1"],
    ("answers", "answer_cost_amount"): ["UPDATE answers SET cost_micros = -1"],
    ("answers", "answer_duration"): ["UPDATE answers SET duration_ms = -1"],
    ("answers", "answer_context_tokens_count"): ["UPDATE answers SET context_tokens = -1"],
    ("answers", "reasoning_length"): ["UPDATE answers SET reasoning = printf('%200001d', 1)"],
    ("answers", "memory_form"): ["UPDATE answers SET memory = '{}'"],
    ("answers", "answer_steps_form"): ["UPDATE answers SET steps = '{}'"],
    ("answers", "answer_sources_form"): ["UPDATE answers SET sources = '{}'"],
    ("answers", "answer_waiting_form"): ["UPDATE answers SET waiting = '[]'"],
    ("conversations", "summary_form"): [
        "UPDATE conversations SET summary = ' ' WHERE id = 'y'",
        "UPDATE conversations SET summary = printf('%20001d', 1) WHERE id = 'y'",
    ],
    ("conversations", "summary_has_end"): [
        "UPDATE conversations SET summary = NULL WHERE id = 'y'",
        "UPDATE conversations SET summary_up_to_id = 'm1' WHERE id = 'z'",
    ],
    ("conversations", "always_allow_form"): [
        "UPDATE conversations SET always_allow = '{}'",
        "UPDATE conversations SET always_allow = printf('[%10000d]', 1)",
    ],
    ("answers", "answer_sealed_form"): [
        "UPDATE answers SET sealed = '{}'",
        "UPDATE answers SET sealed = printf('[%1000000d]', 1)",
        "UPDATE answers SET sealed_call_id = NULL",
    ],
    ("messages", "message_branch_range"): [f"UPDATE messages SET branch = {number}" for number in (-1, 1001)],
    ("branches", "branch_range"): [
        "UPDATE branches SET branch = -1",
        "UPDATE branches SET branch = 1001 WHERE branch = 1",
    ],
    ("branches", "parent_before"): ["UPDATE branches SET parent = 1 WHERE branch = 1"],
    ("branches", "version_of_another"): ["UPDATE branches SET replaces_id = first_id WHERE branch = 1"],
    ("branches", "last_not_negative"): ["UPDATE branches SET last = -1"],
    ("branches", "shown_to_not_negative"): ["UPDATE branches SET shown_to = -1"],
    ("branches", "branch_of_versions"): [
        *(f"UPDATE branches SET {column} = NULL WHERE branch = 1" for column in ("parent", "first_id", "replaces_id")),
        "UPDATE branches SET first_id = 'm1' WHERE branch = 0",
    ],
    ("branches", "account_id, conversation_id, branch"): [
        "INSERT INTO branches VALUES ('a', 'y', 0, NULL, NULL, NULL, 1, 0)",
    ],
    ("messages", "id"): ["UPDATE messages SET id = 'm1'"],
    ("support_conversations", "support_status_known"): [
        "UPDATE support_conversations SET status = 'open' WHERE id = 'u'"
    ],
    ("support_conversations", "subject_form"): [
        "UPDATE support_conversations SET subject = ' '",
        "UPDATE support_conversations SET subject = printf('%201d', 1)",
    ],
    ("support_conversations", "closed_at_when_closed"): [
        "UPDATE support_conversations SET closed_at = 1 WHERE id = 'u'",
        "UPDATE support_conversations SET status = 'closed' WHERE id = 'u'",
    ],
    ("support_conversations", "id"): [
        "INSERT INTO support_conversations VALUES ('u', 'c', 'active', NULL, 1, 1, NULL)"
    ],
    ("support_conversations", "account_id WHERE status = 'active'"): [
        "INSERT INTO support_conversations VALUES ('v', 'a', 'active', NULL, 1, 1, NULL)"
    ],
    ("support_conversations", "support_closes_once"): [
        "UPDATE support_conversations SET status = 'active', closed_at = NULL WHERE id = 'w'",
        "UPDATE support_conversations SET status = 'closed' WHERE id = 'w'",
    ],
    ("support_messages", "support_role_known"): ["UPDATE support_messages SET role = 'system'"],
    ("support_messages", "support_content_form"): [
        "UPDATE support_messages SET content = '  '",
        "UPDATE support_messages SET content = printf('%10001d', 1)",
    ],
    ("support_messages", "id"): ["UPDATE support_messages SET id = 's1'"],
    ("support_messages", "support_messages_bounded"): [
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)
        INSERT INTO support_messages SELECT 100 + n, 'x' || n, 'a', 'u', 'user', 'x', 1 FROM numbers
        """
    ],
    ("support_messages", "support_ends"): ["INSERT INTO support_messages VALUES (9, 's9', 'b', 'w', 'user', 'x', 1)"],
    ("sign_ins", "id"): ["UPDATE sign_ins SET id = 'same'"],
    ("sign_ins", "way_length"): ["UPDATE sign_ins SET way = ''", "UPDATE sign_ins SET way = printf('%64d', 1)"],
    ("sign_ins", "sign_in_code_form"): [
        f"UPDATE sign_ins SET code = {code}" for code in ("''", "'Ok'", "printf('a%101d', 1)")
    ],
    ("usage_days", "day_form"): [
        f"UPDATE usage_days SET day = '{text}'" for text in ("2026-10-2", "2026/10/02", "", "today")
    ],
    ("usage_days", "requests_positive"): ["UPDATE usage_days SET requests = 0"],
    ("usage_days", "input_tokens_not_negative"): ["UPDATE usage_days SET input_tokens = -1"],
    ("usage_days", "used_cached_within_input"): [
        f"UPDATE usage_days SET cached_input_tokens = {count}" for count in ("-1", "input_tokens + 1")
    ],
    ("usage_days", "output_tokens_not_negative"): ["UPDATE usage_days SET output_tokens = -1"],
    ("usage_days", "cost_not_negative"): ["UPDATE usage_days SET cost_micros = -1"],
    **{
        ("audit", rule): [
            f"INSERT INTO audit (id, at, actor, action, subject, details, person) VALUES ('x', 1, {values})"
        ]
        for rule, values in {
            "actor_length": "'', 'user.add', NULL, '{}', NULL",
            "action_form": "'a', 'User', NULL, '{}', NULL",
            "subject_length": "'a', 'user.add', printf('%201d', 1), '{}', NULL",
            "details_form": "'a', 'user.add', NULL, '', NULL",
            "person_form": "'a', 'user.add', 'a', '{}', 'Ada'",
        }.items()
    },
    ("audit", "audit_continues"): [
        *(
            f"INSERT OR REPLACE INTO audit VALUES ({row}, 2, 'b', 'user.add', NULL, '{{}}', NULL)"
            for row in ("1, 'aud_2'", "2, 'aud_1'")
        ),
        "REPLACE INTO audit SELECT * FROM audit",
        "INSERT INTO audit VALUES (1, 'aud_1', 1, 'b', 'x', NULL, '{}', NULL) ON CONFLICT DO UPDATE SET actor = 'b'",
        "INSERT INTO audit VALUES (2, 'aud_2', 2, 'b', 'user.add', 'nobody', '{}', '{}')",
    ],
    ("audit", "audit_stays"): [
        *(f"UPDATE audit SET {column} = 2" for column in ("id", "at", "actor", "details", "person", "seq")),
        "UPDATE OR REPLACE audit SET action = 'x'",
        "UPDATE audit SET person = NULL",
    ],
    ("audit", "audit_keeps_all"): ["DELETE FROM audit", "DELETE FROM audit WHERE seq = 1"],
    ("audit", "id"): [
        ("DROP TRIGGER audit_continues", "INSERT INTO audit VALUES (2, 'aud_1', 2, 'b', 'user.add', NULL, '{}', NULL)")
    ],
    ("overruns", "overrun_day_form"): ["UPDATE overruns SET day = 'today'", "UPDATE overruns SET day = '2026-10-2'"],
    ("overruns", "overrun_calls_positive"): ["UPDATE overruns SET calls = 0"],
    ("overruns", "overrun_micros_positive"): ["UPDATE overruns SET micros = 0"],
    ("overruns", "day, model"): ["INSERT INTO overruns VALUES ('2026-10-02', 'm', 1, 1)"],
    ("usage_days", "group_name_length"): ["UPDATE usage_days SET group_name = printf('%64d', 1)"],
    ("usage_days", "day, account_id, model, key_id, group_name"): [
        "INSERT INTO usage_days VALUES ('a', '2026-10-02', 'm', '', '', 1, 1, 1, 1, 1)"
    ],
    ("deleted_usage", "deleted_day_form"): ["UPDATE deleted_usage SET day = 'today'"],
    ("deleted_usage", "deleted_group_length"): ["UPDATE deleted_usage SET group_name = printf('%64d', 1)"],
    ("deleted_usage", "deleted_requests_positive"): ["UPDATE deleted_usage SET requests = 0"],
    ("deleted_usage", "deleted_input_not_negative"): ["UPDATE deleted_usage SET input_tokens = -1"],
    ("deleted_usage", "deleted_cached_within_input"): [
        f"UPDATE deleted_usage SET cached_input_tokens = {count}" for count in ("-1", "input_tokens + 1")
    ],
    ("deleted_usage", "deleted_output_not_negative"): ["UPDATE deleted_usage SET output_tokens = -1"],
    ("deleted_usage", "deleted_cost_positive"): ["UPDATE deleted_usage SET cost_micros = 0"],
    ("deleted_usage", "deleted_id_length"): ["UPDATE deleted_usage SET deleted_id = printf('%101d', 1)"],
    ("given_allowances", "given_month_form"): ["UPDATE given_allowances SET month = '2026-1'"],
    ("given_allowances", "identity_hash_sha256"): ["UPDATE given_allowances SET identity_hash = zeroblob(31)"],
    ("given_allowances", "given_micros_range"): [
        f"UPDATE given_allowances SET given_micros = {micros}" for micros in (0, 10**12 + 1)
    ],
    ("given_allowances", "identity_hash, month"): ["INSERT INTO given_allowances VALUES ('2026-10', zeroblob(32), 2)"],
    ("deleted_usage", "day, model, group_name, deleted_id"): [
        "INSERT INTO deleted_usage VALUES ('2026-10-02', 'm', '', 'user_1', 1, 1, 1, 1, 1)"
    ],
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("schema") / "a.db"
    prepare(path, SCHEMA.read_text(), ())
    conn = connect(path)
    conn.executescript(SAMPLE)
    yield conn
    conn.close()


@pytest.fixture
def conn(sample: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Two accounts, `a` and `b`, with something in every table; whatever a test does is undone."""
    sample.execute("BEGIN")
    yield sample
    sample.execute("ROLLBACK")


def tables(conn: sqlite3.Connection) -> list[str]:
    listed = conn.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite_%'"
    )
    return [row["name"] for row in listed]


def sql_of(conn: sqlite3.Connection, name: str) -> str:
    sql: str = conn.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()["sql"]
    return sql


def uniques(conn: sqlite3.Connection, table: str) -> list[list[str]]:
    """The columns of each UNIQUE and primary key, without those that another one implies."""
    indexes = conn.execute("SELECT name FROM pragma_index_list(?) WHERE [unique] AND NOT partial", (table,)).fetchall()
    found = [
        [row["name"] for row in conn.execute("SELECT name FROM pragma_index_info(?)", (index["name"],))]
        for index in indexes
    ]
    return [columns for columns in found if not any(set(other) < set(columns) for other in found)]


def rules(conn: sqlite3.Connection, table: str) -> dict[str, list[str]]:
    """Each rule of the table, and the messages that breaking it may give."""
    found = {
        name: [f"CHECK constraint failed: {name}"]
        for name in re.findall(r"CONSTRAINT (\w+)\s+CHECK", sql_of(conn, table))
    }
    for columns in uniques(conn, table):
        message = "UNIQUE constraint failed: " + ", ".join(f"{table}.{column}" for column in columns)
        found[", ".join(columns)] = [message]
    for index in conn.execute("SELECT name FROM pragma_index_list(?) WHERE [unique] AND partial", (table,)):
        column, condition = re.findall(r"\((\w+)\) WHERE (.*)", sql_of(conn, index["name"]))[0]
        found[f"{column} WHERE {condition}"] = [f"UNIQUE constraint failed: {table}.{column}"]
    for trigger in conn.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?", (table,)
    ):
        if messages := re.findall(r"RAISE\(ABORT, '([^']*)'\)", trigger["sql"]):
            found[trigger["name"]] = messages
    return found


def test_raw_sql_cannot_break_a_rule(conn: sqlite3.Connection) -> None:
    known = {table: rules(conn, table) for table, _ in BROKEN}
    for (table, rule), cases in BROKEN.items():
        assert rule in known[table], f"the table {table} has no rule with the name {rule}"
        for case in cases:
            *first, last = (case,) if isinstance(case, str) else case
            conn.execute("SAVEPOINT broken")
            for statement in first:
                conn.execute(statement)
            with pytest.raises(sqlite3.IntegrityError) as caught:
                conn.execute(last)
                pytest.fail(f"no rule of {table} refuses {last}")
            assert str(caught.value) in known[table][rule], last
            conn.execute("ROLLBACK TO broken")


def test_each_rule_is_tested_above(conn: sqlite3.Connection) -> None:
    known = {(table, rule) for table in tables(conn) if table not in MONEY for rule in rules(conn, table)}
    assert known - set(BROKEN) == set(), "add statements that break these rules to BROKEN"
    assert set(BROKEN) - known == set(), "the schema lacks these rules"


def test_check_names_are_unique_in_their_table(conn: sqlite3.Connection) -> None:
    for table in tables(conn):
        sql = re.sub(r"--.*", "", sql_of(conn, table))
        names = re.findall(r"CONSTRAINT (\w+)\s+CHECK", sql)
        assert len(names) == len(re.findall(r"\bCHECK\b", sql)), table
        assert len(names) == len(set(names)), table


# Texts that only the service or the operator's systems write.
UNCHECKED = """
    identities.issuer, identities.email, oauth_flows.provider, messages.model, runs.model, answers.finish_reason,
    fresh_words.place, fresh_words.words, word_blocks.first, word_blocks.lines, ledger.description, ledger.reference,
    ledger.model, usage_days.model, deleted_usage.model, overruns.model, wallets.month, api_keys.month,
    checkouts.payment_intent, payment_events.type, payment_events.currency,
    payment_events.payment_intent
"""


def checks(sql: str) -> str:
    """The conditions of the CHECKs, in parentheses."""
    opened = [match.end() - 1 for match in re.finditer(r"\bCHECK \(", sql)]
    depths = [list(accumulate((char == "(") - (char == ")") for char in sql[start:])) for start in opened]
    return " ".join(sql[start : start + depth.index(0)] for start, depth in zip(opened, depths, strict=True))


def test_every_text_has_a_check(conn: sqlite3.Connection) -> None:
    found = set()
    for table in tables(conn):
        conditions = checks(re.sub(r"--.*", "", sql_of(conn, table)))
        for column in conn.execute("SELECT name FROM pragma_table_info(?) WHERE type IN ('TEXT', 'BLOB')", (table,)):
            name = column["name"]
            if not re.fullmatch(r"(?:\w+_)?id", name) and not re.search(rf"\b{name}\b", conditions):
                found.add(f"{table}.{name}")
    assert found ^ set(re.findall(r"[\w.]+", UNCHECKED)) == set(), "give these columns a named CHECK of their length"


def test_every_table_is_strict(conn: sqlite3.Connection) -> None:
    query = "SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"
    assert [name for (name,) in conn.execute(query)] == [], "write STRICT after the columns of these tables"


def test_a_primary_key_is_never_null(conn: sqlite3.Connection) -> None:
    for table in tables(conn):
        for column in conn.execute("SELECT name, type FROM pragma_table_info(?) WHERE pk", (table,)).fetchall():
            with pytest.raises(sqlite3.IntegrityError):
                conn.execute(f"UPDATE {table} SET {column['name']} = NULL")


def modules_with(words: str) -> Iterator[Path]:
    """Yield our modules whose text matches the pattern. To parse all of them takes a second."""
    return (path for path in (ROOT / "svc").rglob("*.py") if re.search(words, path.read_text()))


def test_amounts_and_times_of_the_schema_are_those_of_the_code() -> None:
    schema = SCHEMA.read_text()
    found = {
        "the amount of a checkout": re.findall(
            r"amount_micros BETWEEN (\d+) AND (\d+) AND amount_micros % (\d+)", schema
        ),
        "the credit that makes an account pro": re.findall(r"NEW.amount_micros >= (\d+)", schema),
        "how long an unpaid checkout stays": re.findall(r"max\(created_at\) FROM checkouts\) - (\d+)", schema),
        "the most artifacts": re.findall(r"FROM artifacts WHERE account_id = NEW.account_id\) >= (\d+)", schema),
        "the bytes of a row": sorted(set(re.findall(r"bytes = bytes [+-] (\d+)", schema))),
    }
    assert found == {
        "the amount of a checkout": [
            (str(payments.LEAST_MICROS), str(payments.MOST_MICROS), str(payments.MICROS_PER_CENT))
        ],
        "the credit that makes an account pro": [str(wallet.PRO_MICROS)],
        "how long an unpaid checkout stays": [str(payments.UNPAID_SECONDS)],
        "the most artifacts": [str(quota.MOST_ARTIFACTS)],
        "the bytes of a row": [str(quota.ROW_BYTES)],
    }


def test_translated_rules_are_in_the_schema() -> None:
    for path in modules_with("refusals"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("refusals"):
                missing = {word.arg for word in node.keywords if word.arg and word.arg not in SCHEMA.read_text()}
                assert missing == set(), f"{path.relative_to(ROOT)}:{node.lineno}: schema.sql has no such rule"


def test_references_to_missing_rows_are_refused(conn: sqlite3.Connection) -> None:
    for table in tables(conn):
        for key in conn.execute("SELECT DISTINCT [from] FROM pragma_foreign_key_list(?)", (table,)).fetchall():
            with pytest.raises(sqlite3.IntegrityError):
                conn.execute(f"UPDATE {table} SET {key['from']} = 'nobody' WHERE {key['from']} IS NOT NULL")


@each("table", ["artifacts", "conversations", "runs"])
def test_rows_cannot_be_in_a_project_of_another_account(conn: sqlite3.Connection, table: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        conn.execute(f"UPDATE {table} SET project_id = 'q' WHERE account_id = 'a'")


def test_deleting_a_project_keeps_its_content(conn: sqlite3.Connection) -> None:
    conn.execute("DELETE FROM projects WHERE id = 'p'")
    for table, ids in (("artifacts", {"f"}), ("runs", {"r", "t"}), ("conversations", {"y"})):
        rows = conn.execute(f"SELECT id, project_id FROM {table} WHERE account_id = 'a'").fetchall()
        assert {row["id"] for row in rows} == ids
        assert {row["project_id"] for row in rows} == {None}


def test_every_account_has_a_wallet(conn: sqlite3.Connection) -> None:
    owners = conn.execute("SELECT account_id FROM wallets WHERE account_id <> 'a' AND balance_micros = 0").fetchall()
    assert {row["account_id"] for row in owners} == {"b", "c"}


def test_deleting_an_account_deletes_all_its_rows_only(conn: sqlite3.Connection) -> None:
    owned = [table for table in tables(conn) if "account_id" in columns(conn, table)]
    assert len(owned) > 10
    empty = [table for table in owned if not rows_of(conn, table, "account_id = 'a'")]
    assert empty == [], "add rows of the accounts a and b to SAMPLE"
    others = {table: rows_of(conn, table, "account_id = 'b'") for table in owned}
    counts = {table: len(rows_of(conn, table, "true")) for table in ("ledger", "checkouts", "payment_events")}
    conn.execute("DELETE FROM word_blocks WHERE run = 2")
    for table in ("holds", "messages", "conversations", "word_runs"):  # these are taken out first, see schema.sql
        conn.execute(f"DELETE FROM {table} WHERE account_id = 'a'")
    try:
        conn.execute("DELETE FROM accounts WHERE id = 'a'")
    except sqlite3.IntegrityError:
        pytest.fail("add ON DELETE CASCADE to the reference of a table to accounts")
    assert not any(rows_of(conn, table, "account_id = 'a'") for table in owned)
    assert {table: rows_of(conn, table, "account_id = 'b'") for table in owned} == others
    assert {table: len(rows_of(conn, table, "true")) for table in counts} == counts, "the money stays"


# An account has few rows of these, among them runs that have not ended. They go in one transaction with its own row.
FEW = {"deleted_conversations", "providers", "reserved_room", "runs", "stored", "tool_servers", "word_purges"}


def test_rows_of_a_deleted_account_go_in_slices(conn: sqlite3.Connection) -> None:
    slices.begin_deletion(conn, "a", 1.0, audit.OPERATOR)
    while any(delete_some(conn, "a") for delete_some in slices.SLICES):
        pass
    owned = [table for table in tables(conn) if "account_id" in columns(conn, table)]
    left = {table for table in owned if rows_of(conn, table, "account_id = 'a'")}
    assert left == FEW, "add the table to SLICES of svc/deletion/slices.py"


def test_deleting_an_account_scans_no_table(conn: sqlite3.Connection) -> None:
    for table in tables(conn):
        keys = conn.execute(
            "SELECT [from] FROM pragma_foreign_key_list(?) WHERE [table] = 'accounts'", (table,)
        ).fetchall()
        for key in keys:
            (plan,) = conn.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {key['from']} = 'a'").fetchall()
            assert plan["detail"].startswith("SEARCH"), f"give {table} an index that begins with {key['from']}"


def columns(conn: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def rows_of(conn: sqlite3.Connection, table: str, where: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in conn.execute(f"SELECT * FROM {table} WHERE {where}")]


def test_key_columns_of_tables_without_rowid_come_first(conn: sqlite3.Connection) -> None:
    """Otherwise integrity_check of SQLite 3.40 finds NULL in their other columns, and `svc check` fails."""
    for table in tables(conn):
        keys = [row["pk"] for row in conn.execute("SELECT pk FROM pragma_table_info(?)", (table,))]
        without_rowid = conn.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (table,)).fetchone()["wr"]
        assert not without_rowid or all(keys[: max(keys)]), table


# --- what an account exports and stores


# Tables with an account's rows that are not exported, and why.
NOT_EXPORTED = {
    "links": "one-time secrets",
    "deleted_conversations": "places in a list",
    "oauth_flows": "sign-ins under way",
    "oauth_codes": "sign-ins under way",
    "artifact_contents": "the artifacts' files",
    "artifact_chunks": "the artifacts' files",
    "file_texts": "made from the artifacts' files",
    "file_passages": "made from the artifacts' files",
    "idempotency_keys": "answers for repeated requests, for a day",
    "idempotency_chunks": "answers for repeated requests, for a day",
    "imported_items": "ids in the exports of other applications",
    "wallets": "the sum of the ledger",
    "holds": "requests under way",
    "reserved_room": "requests under way",
    "stored": "the sums of what the other tables hold",
    "fresh_words": "the words of the messages",
    "word_runs": "the words of the messages",
    "word_purges": "the words of the messages",
}


def test_every_owned_table_is_exported_or_excluded(conn: sqlite3.Connection) -> None:
    owned = {table for table in tables(conn) if "account_id" in columns(conn, table)}
    exported = {"artifacts", *(table for table, _, _ in KINDS.values())}
    assert not exported & set(NOT_EXPORTED)
    known = exported | set(NOT_EXPORTED)
    assert owned ^ known == set(), "add these to KINDS of svc/routes/export.py, or name the reason in NOT_EXPORTED"


COUNTED = {
    "api_keys": "name",
    "projects": "name || instructions",
    "prompts": "name || text",
    "artifacts": "name || ifnull(prompt, '')",
    "runs": "goal || ifnull(output, '') || ifnull(error, '') || ifnull(events, '')",
    "conversations": "ifnull(title, '') || ifnull(summary, '')",
    "messages": "content",
    "answers": "ifnull(reasoning, '') || memory || ifnull(sealed, '') || ifnull(steps, '') || ifnull(sources, '') || ifnull(waiting, '')",
    "support_conversations": "ifnull(subject, '')",
    "support_messages": "content",
    "idempotency_keys": "ifnull(headers, '')",
    "providers": "name || base_url || ifnull(models, '')",
    "project_files": "''",
    "shares": "ifnull(title, '') || messages",
    "share_pictures": "''",
    "imports": "ifnull(reason, '') || ifnull(settings, '')",
    "import_entries": "ifnull(title, '') || ifnull(reason, '')",
    "tool_servers": "name || url || tools || ifnull(accepted, '') || ask || ifnull(detail, '')",
}


def counted(conn: sqlite3.Connection, account_id: str) -> int:
    """Return the bytes that the account stores, summed again."""
    sums = [
        f"SELECT sum(256 + length(CAST({text} AS BLOB))) FROM {table} WHERE account_id = ?1"
        for table, text in COUNTED.items()
    ]
    sums.append("SELECT length(CAST(instructions AS BLOB)) FROM accounts WHERE id = ?1")
    sums.append("SELECT sum(text_bytes) FROM project_files WHERE account_id = ?1")
    sums += [
        f"SELECT sum(size) FROM {table} WHERE account_id = ?1"
        for table in ("artifacts", "idempotency_keys", "share_pictures")
    ]
    return sum(conn.execute(query, (account_id,)).fetchone()[0] or 0 for query in sums)


def test_stored_bytes_are_exact_after_any_write(conn: sqlite3.Connection) -> None:
    for change in (
        "SELECT 1",
        "UPDATE accounts SET instructions = 'gr\u00fcndlich' WHERE id = 'a'",
        "INSERT INTO accounts (id, email, email_key, instructions, created_at) VALUES ('d', 'd@x', 'd@x', 'x', 1)",
        "UPDATE messages SET content = 'gr\u00f6\u00dfer \U0001f642' WHERE id = 'm1'",
        "UPDATE conversations SET title = NULL WHERE id = 'y'",
        "UPDATE conversations SET summary = 'gr\u00f6\u00dfer' WHERE id = 'y'",
        "UPDATE conversations SET summary = NULL, summary_up_to_id = NULL WHERE id = 'y'",
        "UPDATE project_files SET text_bytes = 70 WHERE number = 1",
        "UPDATE shares SET title = 'gr\u00fcn', messages = '[\"\u00fc\"]' WHERE id = 'sh'",
        "UPDATE share_pictures SET size = 77 WHERE share_id = 'sh'",
        "DELETE FROM shares WHERE id = 'sh'",
        "UPDATE artifacts SET size = 1000, prompt = 'gr\u00fcn' WHERE id = 'f'",
        "UPDATE runs SET status = 'error', error = '{}', finished_at = 2 WHERE id = 'r'",
        "UPDATE runs SET events = '{}' WHERE id = 't'",
        "UPDATE idempotency_keys SET status = 200, headers = '{\"\u00fc\":1}', size = 9 WHERE id = 'j'",
        "UPDATE projects SET instructions = printf('%5000s', 'x') WHERE id = 'p'",
        "UPDATE prompts SET text = 'gr\u00fcndlich' WHERE id = 'pa'",
        "DELETE FROM prompts WHERE id = 'pa'",
        "UPDATE providers SET models = '[\"a\"]' WHERE id = 'v'",
        "UPDATE tool_servers SET tools = '[\"\u00fc\"]', accepted = '{}', ask = '{\"a\":true}', detail = 'x' WHERE id = 'ts'",
        "UPDATE answers SET reasoning = printf('%5000s', '\u00f6'), memory = '[{}]' WHERE message_id = 'm1'",
        "UPDATE answers SET reasoning = NULL WHERE message_id = 'm1'",
        "UPDATE answers SET sealed = printf('[%5000d]', 1) WHERE message_id = 'm1'",
        "UPDATE answers SET sealed = NULL WHERE message_id = 'm1'",
        *[
            f"UPDATE answers SET {name} = '{text}' WHERE message_id = 'm1'"
            for name, text in (("steps", "[{}]"), ("sources", "[1, 2]"), ("waiting", "{}"))
        ],
        "UPDATE support_conversations SET subject = 'h\u00f6her' WHERE id = 'u'",
        "UPDATE support_conversations SET subject = NULL WHERE id = 'u'",
        "UPDATE support_messages SET content = 'gr\u00fc\u00dfe' WHERE id = 's1'",
        "UPDATE imports SET status = 'failed', reason = 'gr\u00f6\u00dfer', settings = '{}' WHERE id = 'ia'",
        "UPDATE import_entries SET title = NULL, reason = 'h\u00f6her' WHERE number = 1",
        "DELETE FROM import_entries WHERE number = 1",
        "DELETE FROM imports WHERE id = 'ia'",
        "DELETE FROM support_conversations WHERE id = 'u'",
        "DELETE FROM artifacts WHERE id = 'f'",
        "DELETE FROM idempotency_keys WHERE id = 'e'",
        "DELETE FROM runs WHERE id = 't'",
        "DELETE FROM api_keys WHERE id = 'k'",
        "DELETE FROM projects WHERE id = 'p'",
        "DELETE FROM messages WHERE id = 'm1'",
    ):
        conn.execute(change)
        for (account_id,) in conn.execute("SELECT id FROM accounts").fetchall():
            row = conn.execute("SELECT bytes FROM stored WHERE account_id = ?", (account_id,)).fetchone()
            assert row["bytes"] == counted(conn, account_id), change


# Texts of an account that no trigger counts, by the reason.
UNCOUNTED = {
    "the one row of an account": """accounts.email accounts.email_key accounts.name accounts.password_hash accounts.tier
        accounts.generate_titles accounts.language
        accounts.default_model accounts.group_name accounts.group_claimed accounts.allowance_month wallets.month""",
    "few or expiring rows": """links.token_hash links.purpose links.email links.email_key identities.issuer identities.subject
        identities.email sign_ins.way sign_ins.code oauth_flows.state_hash oauth_flows.browser_hash oauth_flows.provider oauth_codes.code_hash
        oauth_codes.browser_hash""",
    "short, within the 256 bytes of their row": """api_keys.token_hash api_keys.key_prefix api_keys.month artifacts.content_type
        artifacts.sha256 idempotency_keys.place idempotency_keys.body_sha256
        runs.status runs.model runs.reason messages.role messages.model messages.status answers.finish_reason
        support_conversations.status support_messages.role providers.sealed_key providers.api_key_hint providers.api
        imports.status imports.source import_entries.status tool_servers.sealed_key tool_servers.api_key_hint
        shares.token_hash share_pictures.content_type""",
    "within the 256 bytes of its message, conversation, artifact or project": "imported_items.kind imported_items.source",
    "at most 64 names of tools": "conversations.always_allow",
    "counted as the size of the artifact": "artifact_chunks.content",
    "counted as the text of the file": "file_passages.mark file_passages.text",
    "at most 200 files of a project": "project_files.status project_files.error_code project_files.error_message",
    "counted as the size of the answer": "idempotency_chunks.content",
    "made from counted texts": "fresh_words.place fresh_words.words",
    "the operator's books": """ledger.kind ledger.description ledger.reference ledger.model ledger.month holds.month usage_days.day usage_days.model
        usage_days.group_name checkouts.state checkouts.payment_intent""",
}


def test_every_text_of_an_account_is_sought_after_its_deletion(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    prepare(path, SCHEMA.read_text(), ())
    with contextlib.closing(connect(path)) as conn:
        conn.executescript("""
            INSERT INTO accounts (id, email, email_key, password_hash, created_at)
            VALUES ('user_a', 'a@example.com', 'a@example.com', printf('%99d', 1), 1)
        """)
        remains.fill(path, "user_a")
        empty = [place for place, found in remains.texts(conn, "user_a").items() if not found]
    assert empty == [], "fill these columns in tests/support/remains.py, or name the reason in NOT_PERSONAL"


def test_every_text_of_an_account_is_counted_or_excluded(conn: sqlite3.Connection) -> None:
    found = set()
    for table in (table for table in tables(conn) if table == "accounts" or "account_id" in columns(conn, table)):
        query = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND sql LIKE '%UPDATE stored%'"
        triggers = [row["sql"] for row in conn.execute(query, (table,))]
        for column in conn.execute("SELECT name FROM pragma_table_info(?) WHERE type IN ('TEXT', 'BLOB')", (table,)):
            name = column["name"]
            counting = [sql for sql in triggers if re.search(rf"(?:NEW|OLD)\.{name}\b", sql)]
            if re.fullmatch(r"(?:\w+_)?id", name):
                continue
            if not counting:
                found.add(f"{table}.{name}")
                continue
            assert counting == triggers, f"{table}.{name} is counted by some triggers only"
            changes = [sql.partition(" ON ")[0] for sql in triggers if " UPDATE OF " in sql]
            complete = table == "accounts" or (changes and len(triggers) > 2)
            assert complete, f"count {table}.{name} in triggers of INSERT, UPDATE OF and DELETE"
            assert all(re.search(rf"\b{name}\b", columns) for columns in changes), f"{table}.{name} is not counted anew"
    missing = found ^ set(" ".join(UNCOUNTED.values()).split())
    assert missing == set(), "count these texts in triggers of `stored`, or name the reason in UNCOUNTED"


# --- owners


@cache
def owners() -> dict[str, str]:
    """Each table and the file that the comment above it names; what stands without a blank line between belongs
    together.
    """
    found = {}
    for block in SCHEMA.read_text().split("\n\n"):
        if owner := re.search(r"^-- owner: (\S+)$", block, re.MULTILINE):
            found.update(dict.fromkeys(re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", block, re.MULTILINE), owner[1]))
    return found


def test_each_table_has_an_owner_module() -> None:
    made = set(re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", SCHEMA.read_text(), re.MULTILINE))
    assert made - set(owners()) == set(), "write `-- owner: <module>` above these tables of schema.sql"
    for owner in owners().values():
        assert (ROOT / owner).is_file(), owner


WRITES = re.compile(
    r"\b(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)(?:\s+(\w+)|\s*$)"
)


def is_table(called: ast.expr) -> bool:
    """Whether this is `Table` or `Table[…]`."""
    name = called.value if isinstance(called, ast.Subscript) else called
    return isinstance(name, ast.Name) and name.id == "Table"


def written_tables(path: Path) -> list[tuple[int, str | None]]:
    """The line and the table of each statement that writes and of each `Table`, None where the name is put together.

    A `Table` of a view or of a query only reads.
    """
    nodes, tables = nodes_of(path), owners()
    declared = [
        (node.lineno, ast.literal_eval(node.args[0]))
        for node in nodes
        if isinstance(node, ast.Call) and is_table(node.func)
        if ast.literal_eval(node.args[0]) in tables
    ]
    return declared + [
        (node.lineno, match[1])
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in WRITES.finditer(node.value)
        if match[1] != "SET"  # of ON CONFLICT … DO UPDATE SET
    ]


def test_tables_are_written_only_by_their_owner() -> None:
    owner_of, written = owners(), set()
    for path in modules_with("INSERT|REPLACE|UPDATE|DELETE|Table"):
        name = str(path.relative_to(ROOT))
        for line, table in written_tables(path):
            written.add(table)
            if table is None:
                assert name in (*owner_of.values(), "svc/tables.py"), (
                    f"line {line} of {name} writes a table that cannot be seen"
                )
            else:
                assert owner_of.get(table) == name, f"line {line} of {name} writes {table}, which is another module's"
    assert len(owner_of.keys() & written) > len(owner_of) / 2, "else nothing above could fail"


# --- rows of an account


# Where all accounts are meant: commands, the start, background work, the processor's events, and what finds the
# account.
ACROSS_ACCOUNTS = """
    svc/agents/run_records.py:end_interrupted_runs svc/auth/identities.py:account_of svc/auth/links.py:find_link
    svc/auth/sign_ins.py:add svc/auth/sign_ins.py:delete svc/auth/sign_ins.py:delete_old svc/auth/tokens.py:holder_of svc/billing/reconciliation.py:book_refund
    svc/billing/reconciliation.py:module
    svc/billing/payments.py:_checkout svc/billing/payments.py:_pay svc/billing/payments.py:add_checkout
    svc/billing/payments.py:receive svc/billing/report.py:module svc/billing/spending.py:module svc/billing/wallet.py:sums
    svc/content/artifact_contents.py:module
    svc/billing/invariants.py:module
    svc/billing/wallet.py:held_in_all svc/billing/wallet.py:ledger_of_request svc/billing/wallet.py:release_all
    svc/commands/check.py:_check svc/commands/check.py:sizes svc/content/fulltext.py:_index_chunks
    svc/content/fulltext.py:index_answers_later svc/content/fulltext.py:_message_again
    svc/content/fulltext.py:_title_again
    svc/content/history.py:end_interrupted_answers
    svc/content/project_files.py:module
    svc/content/idempotency.py:module svc/content/imports.py:end_interrupted svc/content/imports.py:module
    svc/content/shares.py:module svc/content/shares.py:by_token
    svc/content/support.py:_account_of svc/inference/tool_servers/records.py:due svc/quota.py:release_all
    svc/agents/run_records.py:module svc/content/artifacts.py:module svc/content/conversations.py:module
    svc/auth/links.py:delete_outstanding svc/auth/oauth_flows.py:delete_all
"""


def statements(path: Path) -> Iterator[tuple[str, str]]:
    """Each SQL statement of a module that reads, changes or deletes rows, with the name of its function."""
    nodes = nodes_of(path)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {id(node): function.name for function in functions for node in ast.walk(function)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        text = ast.unparse(node) if isinstance(node, ast.JoinedStr) else getattr(node, "value", None)
        if id(node) not in parts and isinstance(text, str) and re.search(r"\b(SELECT|UPDATE|DELETE)\b", text):
            yield names.get(id(node), "module"), text


def test_statements_on_owned_rows_name_the_account(conn: sqlite3.Connection) -> None:
    owned = [table for table in tables(conn) if "account_id" in columns(conn, table)]
    named = re.compile(rf"\b(?:FROM|JOIN|UPDATE)\s+(?:{'|'.join(owned)})\b")
    found = set()
    for path in modules_with("SELECT|UPDATE|DELETE"):
        for function, statement in statements(path):
            where = statement.partition("WHERE")[2]
            if named.search(statement) and "account_id" not in where and not re.search(r"IN \(\{", where):
                found.add(f"{path.relative_to(ROOT)}:{function}")
    known = set(ACROSS_ACCOUNTS.split())
    assert found - known == set(), "add account_id to the WHERE of these, or name them in ACROSS_ACCOUNTS"
    assert known - found == set(), "these are not needed in ACROSS_ACCOUNTS"
