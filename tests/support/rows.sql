-- Rows in every table that matters, which tests/test_migrations.py takes through a migration.
INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'ada@example.com', 'ada@example.com', 1),
    ('b', 'bob@example.com', 'bob@example.com', 1);
INSERT INTO links (token_hash, account_id, purpose, by_mail, expires_at) VALUES (zeroblob(32), 'a', 'reset', 1, 9e9);
INSERT INTO identities (id, account_id, issuer, subject, email, created_at) VALUES ('idn_1', 'a', 'https://issuer.example', '248289761001', 'ada@example.com', 1);
INSERT INTO sign_ins (id, at, account_id, way, code) VALUES ('sgn_1', 1, 'a', 'password', 'ok'), ('sgn_2', 1, NULL, 'google', 'access_denied');
INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at, last_used_at, spent_micros) VALUES ('key_1', 'a', zeroblob(32), 'svc-v1-aaa', 'laptop', 1, NULL, 0),
    ('key_2', 'a', CAST(printf('%032d', 1) AS BLOB), 'svc-v1-bbb', 'desk', 1, NULL, 0);
INSERT INTO checkouts (id, account_id, amount_micros, session_id, created_at) VALUES ('chk_1', 'a', 10000000, 'cs_1', 1),
    ('chk_2', 'a', 5000000, 'cs_2', 1);
INSERT INTO support_conversations (id, account_id, subject, created_at, updated_at) VALUES ('sup_1', 'a', NULL, 1, 1);
INSERT INTO support_messages (number, id, account_id, support_id, role, content, created_at) VALUES (1, 'msg_1', 'a', 'sup_1', 'user', 'größer', 1);
INSERT INTO providers (id, account_id, name, base_url, sealed_key, api_key_hint, models, created_at) VALUES ('prov_1', 'a', 'lab', 'https://lab.example/v1', x'0102', 'x', '["m"]', 1);
INSERT INTO ledger (seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference, model, input_tokens, output_tokens, key_id, created_at, month) VALUES
    (1, 'led_1', 'a', 'credit', 10000000, 10000000, 'Added funds', 'chk_1', NULL, NULL, NULL, NULL, 1790000000, NULL),
    (2, 'led_3', 'a', 'debit', -700, 9999300, '', 'hold_3', 'paid/m', 1, 2, 'key_1', 1790000000, '2026-09'),
    (3, 'led_4', 'a', 'debit', -11, 9999289, '', 'hold_4', 'paid/m', 1, 2, 'key_1', 1790000000, '2026-09'),
    (4, 'led_5', 'a', 'debit', -5, 9999284, '', 'hold_5', 'paid/m', 1, 2, 'key_2', 1790000000, '2026-09'),
    (5, 'led_6', 'a', 'debit', -3, 9999281, '', 'hold_6', 'paid/m', 1, 2, NULL, 1790000000, '2026-09'),
    (6, 'led_7', 'a', 'debit', -2, 9999279, '', 'hold_7', 'paid/n', 1, 2, 'key_gone', 1790000000, '2026-09');
UPDATE checkouts SET state = 'paid', paid_at = 2 WHERE id = 'chk_1';
INSERT INTO payment_events (id, type, session_id, checkout_id, credited, reason, received_at, amount_micros, currency, payment_intent) VALUES ('evt_1', 'checkout.session.completed', 'cs_1', 'chk_1', 1, NULL, 2, 5000000, 'usd', 'pi_1'),
    ('evt_2', 'checkout.session.expired', 'cs_2', 'chk_2', 0, 'no payment', 2, 5000000, 'usd', NULL);
INSERT INTO holds VALUES ('hold_open', 'a', 100, 1790000000, 'key_1', '2026-09');
INSERT INTO usage_days (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros) VALUES ('a', '2026-09-21', 'paid/m', 'key_1', 2, 2, 4, 711), ('a', '2026-09-21', 'paid/m', 'key_2', 1, 1, 2, 5),
    ('a', '2026-09-21', 'paid/m', '', 1, 1, 2, 3), ('a', '2026-09-21', 'paid/n', 'key_gone', 1, 1, 2, 2),
    ('a', '2026-09-21', 'free/m', '', 2, 2, 4, 0), ('b', '2026-09-21', 'free/m', '', 1, 1, 2, 0);
INSERT INTO projects (id, account_id, name, instructions, max_planner_steps, created_at, updated_at) VALUES ('proj_1', 'a', 'plans', 'Be brief.', 6, 1, 1);
INSERT INTO artifact_contents VALUES ('a', 'content_1', 0);
INSERT INTO artifacts (id, account_id, project_id, run_id, name, content_type, size, sha256, content_id, created_at, updated_at) VALUES ('art_1', 'a', 'proj_1', 'run_1', 'notes.txt', 'text/plain', 6, zeroblob(32), 'content_1', 1, 1);
INSERT INTO artifact_chunks VALUES ('a', 'content_1', 0, x'68656c'), ('a', 'content_1', 1, x'6c6f21');
INSERT INTO runs (id, account_id, goal, model, max_steps, project_id, created_at, status, output, finished_at) VALUES
    ('run_1', 'a', 'write', 'm', 6, 'proj_1', 1, 'final', 'done', 2);
INSERT INTO conversations (number, id, account_id, project_id, title, title_version, pinned, temperature, max_output_tokens, created_at, updated_at) VALUES
    (1, 'conv_1', 'a', 'proj_1', 'Thunderstorms', 0, 0, 0.5, 100, 1, 1);
INSERT INTO messages (number, id, account_id, conversation_id, run_id, role, content, model, created_at) VALUES (1, 'msg_2', 'a', 'conv_1', NULL, 'user', 'lightning and thunder', NULL, 1),
    (2, 'msg_3', 'a', 'conv_1', NULL, 'assistant', 'rain', 'm', 1), (3, 'msg_4', 'a', NULL, 'run_1', 'user', 'write', NULL, 1);
