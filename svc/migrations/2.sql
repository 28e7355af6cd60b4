-- From version 1 to 2.

-- The list of conversations begins with the last used.
CREATE INDEX conversations_by_use ON conversations (account_id, updated_at, number);

-- What an answer took is told beneath it.
CREATE TABLE answers (
    message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL,
    input_tokens INTEGER NOT NULL CONSTRAINT answer_input_tokens_count CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT answer_output_tokens_count CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT answer_cost_amount CHECK (cost_micros >= 0),
    duration_ms INTEGER NOT NULL CONSTRAINT answer_duration CHECK (duration_ms >= 0),
    finish_reason TEXT, -- NULL when it was cut off
    reasoning TEXT CONSTRAINT reasoning_length CHECK (length(reasoning) <= 200000),
    memory TEXT NOT NULL CONSTRAINT memory_form CHECK (memory LIKE '[%]')
) STRICT;

CREATE INDEX answers_by_account ON answers (account_id, message_id);

-- Several one-time links of an account are good at a time, and some prove an address.
CREATE TABLE links (
    token_hash BLOB PRIMARY KEY CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL CONSTRAINT purpose_known CHECK (purpose IN ('reset', 'verify')),
    by_mail INTEGER NOT NULL CONSTRAINT by_mail_bool CHECK (by_mail IN (0, 1)),
    expires_at REAL NOT NULL
) STRICT;

INSERT INTO links SELECT token_hash, account_id, 'reset', by_mail, expires_at FROM password_resets;
DROP TABLE password_resets;
CREATE INDEX links_by_account ON links (account_id, expires_at);

CREATE TRIGGER links_bounded BEFORE INSERT ON links
WHEN (SELECT count(*) FROM links WHERE account_id = NEW.account_id) >= 20
BEGIN
    SELECT RAISE(ABORT, 'links_count');
END;

-- What each key has spent, from now on by a trigger, up to now by the ledger.
ALTER TABLE api_keys ADD COLUMN spent_micros INTEGER NOT NULL DEFAULT 0;
UPDATE api_keys SET spent_micros = spent.micros
FROM (SELECT account_id, key_id, -sum(amount_micros) AS micros FROM ledger WHERE key_id IS NOT NULL GROUP BY 1, 2) AS spent
WHERE spent.account_id = api_keys.account_id AND spent.key_id = api_keys.id;

CREATE TRIGGER ledger_counts_for_its_key AFTER INSERT ON ledger WHEN NEW.key_id IS NOT NULL
BEGIN
    UPDATE api_keys SET spent_micros = spent_micros - NEW.amount_micros WHERE account_id = NEW.account_id AND id = NEW.key_id;
END;

-- Usage by key: the ledger knows it of what was paid, the rest stands without one.
ALTER TABLE usage_days RENAME TO usage_days_1;
CREATE TABLE usage_days (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL CONSTRAINT day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'),
    model TEXT NOT NULL,
    key_id TEXT NOT NULL,
    requests INTEGER NOT NULL CONSTRAINT requests_positive CHECK (requests > 0),
    input_tokens INTEGER NOT NULL CONSTRAINT input_tokens_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT output_tokens_not_negative CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT cost_not_negative CHECK (cost_micros >= 0),
    PRIMARY KEY (account_id, day, model, key_id)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_days
SELECT account_id, strftime('%Y-%m-%d', created_at, 'unixepoch') AS day, model, key_id,
    count(*), sum(ifnull(input_tokens, 0)), sum(ifnull(output_tokens, 0)), -sum(amount_micros)
FROM ledger
WHERE account_id IS NOT NULL AND key_id IS NOT NULL AND model IS NOT NULL
    AND (account_id, strftime('%Y-%m-%d', created_at, 'unixepoch'), model) IN (SELECT account_id, day, model FROM usage_days_1)
GROUP BY account_id, day, model, key_id;
INSERT INTO usage_days
SELECT account_id, day, model, '', requests - ifnull(known_requests, 0), max(input_tokens - ifnull(known_input, 0), 0),
    max(output_tokens - ifnull(known_output, 0), 0), max(cost_micros - ifnull(known_cost, 0), 0)
FROM usage_days_1 LEFT JOIN (
    SELECT account_id, day, model, sum(requests) AS known_requests, sum(input_tokens) AS known_input,
        sum(output_tokens) AS known_output, sum(cost_micros) AS known_cost
    FROM usage_days GROUP BY 1, 2, 3
) USING (account_id, day, model)
WHERE requests > ifnull(known_requests, 0);
DROP TABLE usage_days_1;

-- Refunds and disputes find their checkout; the abandoned ones go.
ALTER TABLE checkouts ADD COLUMN payment_intent TEXT;
CREATE INDEX checkouts_by_payment ON checkouts (payment_intent) WHERE payment_intent IS NOT NULL;
CREATE INDEX checkouts_by_time ON checkouts (created_at);
CREATE INDEX checkouts_abandoned ON checkouts (created_at) WHERE state <> 'paid';
DROP TRIGGER checkouts_stay;
DROP TRIGGER checkouts_keep_their_terms;
DROP TRIGGER payment_events_are_kept_once;
DROP TRIGGER payment_events_stay;
DROP TRIGGER payment_events_keep_all;
DROP INDEX payment_events_credit_once;
ALTER TABLE payment_events RENAME TO payment_events_1;
CREATE TABLE payment_events (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    session_id TEXT,
    checkout_id TEXT REFERENCES checkouts (id) ON DELETE CASCADE,
    credited INTEGER NOT NULL CONSTRAINT credited_bool CHECK (credited IN (0, 1)),
    reason TEXT CONSTRAINT reason_unless_credited CHECK ((reason IS NULL) = credited),
    received_at REAL NOT NULL,
    returned_micros INTEGER
) STRICT;
INSERT INTO payment_events SELECT *, NULL FROM payment_events_1;
DROP TABLE payment_events_1;
CREATE INDEX payment_events_by_checkout ON payment_events (checkout_id);
CREATE UNIQUE INDEX payment_events_credit_once ON payment_events (checkout_id) WHERE credited;

CREATE TRIGGER checkouts_keep_their_terms BEFORE UPDATE ON checkouts
WHEN (NEW.id, NEW.amount_micros, NEW.created_at) IS NOT (OLD.id, OLD.amount_micros, OLD.created_at)
    OR (NEW.account_id IS NOT OLD.account_id
        AND (NEW.account_id IS NOT NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND email <> 'deleted')))
    OR (NEW.session_id IS NOT OLD.session_id AND OLD.session_id IS NOT NULL)
    OR (NEW.payment_intent IS NOT OLD.payment_intent AND OLD.payment_intent IS NOT NULL)
    OR (OLD.state = 'paid' AND (NEW.state, NEW.paid_at) IS NOT (OLD.state, OLD.paid_at))
    OR (NEW.state = 'paid' AND OLD.state <> 'paid' AND NOT EXISTS (
        SELECT 1 FROM ledger
        WHERE reference = NEW.id AND account_id = NEW.account_id AND amount_micros = NEW.amount_micros))
BEGIN
    SELECT RAISE(ABORT, 'a checkout keeps its terms, and is paid when the ledger says so');
END;

CREATE TRIGGER checkouts_stay BEFORE DELETE ON checkouts
WHEN OLD.state = 'paid'
    OR OLD.created_at > (SELECT max(created_at) FROM checkouts) - 2592000
    OR EXISTS (SELECT 1 FROM payment_events WHERE checkout_id = OLD.id AND type <> 'checkout.session.expired')
BEGIN
    SELECT RAISE(ABORT, 'a checkout stays');
END;

CREATE TRIGGER payment_events_are_kept_once BEFORE INSERT ON payment_events
WHEN EXISTS (SELECT 1 FROM payment_events WHERE id = NEW.id)
    OR (NEW.credited AND NOT EXISTS (SELECT 1 FROM checkouts WHERE id = NEW.checkout_id AND state = 'paid'))
BEGIN
    SELECT RAISE(ABORT, 'an event is kept once, and credits what is paid');
END;

CREATE TRIGGER payment_events_stay BEFORE UPDATE ON payment_events
BEGIN
    SELECT RAISE(ABORT, 'an event of the processor stays');
END;

CREATE TRIGGER payment_events_keep_all BEFORE DELETE ON payment_events
WHEN OLD.checkout_id IS NULL OR EXISTS (SELECT 1 FROM checkouts WHERE id = OLD.checkout_id)
BEGIN
    SELECT RAISE(ABORT, 'an event of the processor stays');
END;

-- Words are indexed by pieces of a text, with a vocabulary: all messages wait for it.
DROP TABLE messages_text;
CREATE VIRTUAL TABLE messages_text USING fts5 (words, content = '', detail = none, tokenize = 'ascii');
-- FTS5 merges 64 pages for each level at once, within somebody's write: small ones, so that nobody waits for that.
INSERT INTO conversations_text (conversations_text, rank) VALUES ('pgsz', 500);
INSERT INTO messages_text (messages_text, rank) VALUES ('pgsz', 500);
CREATE TABLE vocabulary (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    word TEXT NOT NULL,
    backwards TEXT NOT NULL,
    PRIMARY KEY (account_id, word)
) STRICT, WITHOUT ROWID;
CREATE INDEX vocabulary_backwards ON vocabulary (account_id, backwards);
CREATE TABLE unindexed (
    number INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
    next_piece INTEGER NOT NULL CONSTRAINT next_piece_range CHECK (next_piece BETWEEN 0 AND 127)
) STRICT;
CREATE INDEX unindexed_by_piece ON unindexed (next_piece, number);
INSERT INTO unindexed (number, next_piece) SELECT number, 0 FROM messages;

-- Lists are in the order in which their rows were added, whatever the clock said.
DROP INDEX runs_by_account;
CREATE INDEX runs_by_account ON runs (account_id);

-- What is filed under a project is found without looking through all of an account's.
CREATE INDEX runs_by_project ON runs (account_id, project_id) WHERE project_id IS NOT NULL;

-- A content is there before it is an artifact's. Its pieces stay where they are: of what they refer to the name changes alone.
DROP TRIGGER artifacts_bounded;
DROP TRIGGER artifacts_bounded_when_replaced;
DROP TRIGGER projects_leave_their_artifacts;
ALTER TABLE artifact_pieces RENAME COLUMN artifact_id TO content_id;
ALTER TABLE artifacts RENAME TO artifact_contents;
CREATE TABLE artifacts (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    project_id TEXT,
    run_id TEXT,
    name TEXT NOT NULL CONSTRAINT artifact_name_form CHECK (trim(name) <> '' AND length(name) <= 255),
    content_type TEXT NOT NULL CONSTRAINT content_type_form CHECK (
        content_type GLOB '?*/?*' AND content_type NOT GLOB '*[^ -~]*' AND length(content_type) <= 200
    ),
    size INTEGER NOT NULL CONSTRAINT artifact_size_range CHECK (size BETWEEN 0 AND 33554432),
    sha256 BLOB NOT NULL CONSTRAINT artifact_sha256 CHECK (length(sha256) = 32),
    content_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (account_id, content_id),
    FOREIGN KEY (account_id, content_id) REFERENCES artifact_contents (account_id, id),
    FOREIGN KEY (account_id, project_id) REFERENCES projects (account_id, id)
) STRICT;
INSERT INTO artifacts
    SELECT id, account_id, project_id, run_id, name, content_type, size, sha256, id, created_at, updated_at
    FROM artifact_contents ORDER BY rowid;
CREATE TABLE artifact_contents_2 (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO artifact_contents_2 SELECT account_id, id FROM artifact_contents;
DROP TABLE artifact_contents;
ALTER TABLE artifact_contents_2 RENAME TO artifact_contents;
CREATE INDEX artifacts_by_account ON artifacts (account_id);
CREATE INDEX artifacts_by_project ON artifacts (account_id, project_id);
CREATE INDEX artifacts_by_run ON artifacts (account_id, run_id) WHERE run_id IS NOT NULL;
CREATE TRIGGER artifacts_take_their_contents_along AFTER DELETE ON artifacts
BEGIN
    DELETE FROM artifact_contents WHERE account_id = OLD.account_id AND id = OLD.content_id;
END;
CREATE TRIGGER artifacts_leave_their_contents AFTER UPDATE OF content_id ON artifacts
WHEN NEW.content_id <> OLD.content_id
BEGIN
    DELETE FROM artifact_contents WHERE account_id = OLD.account_id AND id = OLD.content_id;
END;
CREATE TRIGGER projects_leave_their_artifacts BEFORE DELETE ON projects
BEGIN
    UPDATE artifacts SET project_id = NULL WHERE account_id = OLD.account_id AND project_id = OLD.id;
END;

-- What an account stores is counted, and bounded as a whole.
CREATE TRIGGER artifacts_bounded BEFORE INSERT ON artifacts
WHEN (SELECT count(*) FROM artifacts WHERE account_id = NEW.account_id) >= 10000
BEGIN
    SELECT RAISE(ABORT, 'artifacts_count');
END;
CREATE TRIGGER projects_bounded BEFORE INSERT ON projects
WHEN (SELECT count(*) FROM projects WHERE account_id = NEW.account_id) >= 1000
BEGIN
    SELECT RAISE(ABORT, 'projects_count');
END;
CREATE TABLE stored (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    bytes INTEGER NOT NULL DEFAULT 0 CONSTRAINT stored_not_negative CHECK (bytes >= 0)
) STRICT;
CREATE TABLE storage_limit (
    one INTEGER PRIMARY KEY CONSTRAINT one_limit CHECK (one = 1),
    bytes INTEGER NOT NULL CONSTRAINT limit_not_negative CHECK (bytes >= 0)
) STRICT;
INSERT INTO storage_limit VALUES (1, 1073741824);
CREATE TRIGGER accounts_begin_to_store AFTER INSERT ON accounts
BEGIN
    INSERT INTO stored (account_id) VALUES (NEW.id);
END;
INSERT INTO stored (account_id) SELECT id FROM accounts;
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(api_keys.name AS BLOB)), 0)), 0)
    FROM api_keys WHERE api_keys.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(projects.name AS BLOB)), 0) + ifnull(length(CAST(projects.instructions AS BLOB)), 0)), 0)
    FROM projects WHERE projects.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(artifacts.name AS BLOB)), 0) + artifacts.size), 0)
    FROM artifacts WHERE artifacts.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(runs.goal AS BLOB)), 0) + ifnull(length(CAST(runs.output AS BLOB)), 0) + ifnull(length(CAST(runs.error AS BLOB)), 0)), 0)
    FROM runs WHERE runs.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(conversations.title AS BLOB)), 0)), 0)
    FROM conversations WHERE conversations.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(messages.content AS BLOB)), 0)), 0)
    FROM messages WHERE messages.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(support_conversations.subject AS BLOB)), 0)), 0)
    FROM support_conversations WHERE support_conversations.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + length(CAST(support_messages.content AS BLOB))), 0)
    FROM support_messages WHERE support_messages.account_id = stored.account_id);
UPDATE stored SET bytes = bytes + (SELECT ifnull(sum(256 + ifnull(length(CAST(providers.name AS BLOB)), 0) + ifnull(length(CAST(providers.base_url AS BLOB)), 0) + ifnull(length(CAST(providers.models AS BLOB)), 0)), 0)
    FROM providers WHERE providers.account_id = stored.account_id);
CREATE TRIGGER api_keys_are_stored AFTER INSERT ON api_keys
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER api_keys_are_stored_anew AFTER UPDATE OF name ON api_keys
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER api_keys_are_stored_no_more AFTER DELETE ON api_keys
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER projects_are_stored AFTER INSERT ON projects
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.instructions AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER projects_are_stored_anew AFTER UPDATE OF name, instructions ON projects
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.instructions AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.instructions AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER projects_are_stored_no_more AFTER DELETE ON projects
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.instructions AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER artifacts_are_stored AFTER INSERT ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER artifacts_are_stored_anew AFTER UPDATE OF name, size ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size)
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER artifacts_are_stored_no_more AFTER DELETE ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size)
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER runs_are_stored AFTER INSERT ON runs
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER runs_are_stored_anew AFTER UPDATE OF goal, output, error ON runs
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER runs_are_stored_no_more AFTER DELETE ON runs
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER conversations_are_stored AFTER INSERT ON conversations
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.title AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER conversations_are_stored_anew AFTER UPDATE OF title ON conversations
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.title AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER conversations_are_stored_no_more AFTER DELETE ON conversations
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER messages_are_stored AFTER INSERT ON messages
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.content AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER messages_are_stored_anew AFTER UPDATE OF content ON messages
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.content AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.content AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER messages_are_stored_no_more AFTER DELETE ON messages
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.content AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER answers_are_stored AFTER INSERT ON answers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER answers_are_stored_anew AFTER UPDATE OF reasoning, memory ON answers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)))
        - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER answers_are_stored_no_more AFTER DELETE ON answers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER support_conversations_are_stored AFTER INSERT ON support_conversations
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.subject AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER support_conversations_are_stored_anew AFTER UPDATE OF subject ON support_conversations
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.subject AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.subject AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER support_conversations_are_stored_no_more AFTER DELETE ON support_conversations
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.subject AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER support_messages_are_stored AFTER INSERT ON support_messages
BEGIN
    UPDATE stored SET bytes = bytes + 256 + length(CAST(NEW.content AS BLOB))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER support_messages_are_stored_anew AFTER UPDATE OF content ON support_messages
BEGIN
    UPDATE stored SET bytes = bytes + (256 + length(CAST(NEW.content AS BLOB)))
        - (256 + length(CAST(OLD.content AS BLOB)))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER support_messages_are_stored_no_more AFTER DELETE ON support_messages
BEGIN
    UPDATE stored SET bytes = bytes - (256 + length(CAST(OLD.content AS BLOB)))
    WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER providers_are_stored AFTER INSERT ON providers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.base_url AS BLOB)), 0) + ifnull(length(CAST(NEW.models AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER providers_are_stored_anew AFTER UPDATE OF name, base_url, models ON providers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.base_url AS BLOB)), 0) + ifnull(length(CAST(NEW.models AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.base_url AS BLOB)), 0) + ifnull(length(CAST(OLD.models AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER providers_are_stored_no_more AFTER DELETE ON providers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.base_url AS BLOB)), 0) + ifnull(length(CAST(OLD.models AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

-- What calls came to beyond their holds is kept by day from now on; so far it was only logged.
CREATE TABLE overruns (
    day TEXT NOT NULL CONSTRAINT overrun_day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'),
    model TEXT NOT NULL,
    calls INTEGER NOT NULL CONSTRAINT overrun_calls_positive CHECK (calls > 0),
    micros INTEGER NOT NULL CONSTRAINT overrun_micros_positive CHECK (micros > 0),
    PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;

-- An account is gone for its owner before its rows are: what told of the person goes while they are being deleted.
DROP TRIGGER wallets_stay;
CREATE TRIGGER wallets_stay BEFORE DELETE ON wallets
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND email <> 'deleted')
BEGIN
    SELECT RAISE(ABORT, 'a wallet stays as long as its account');
END;

DROP TRIGGER ledger_stays;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger
WHEN OLD.account_id IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND email <> 'deleted')
    OR (NEW.account_id, NEW.request_id, NEW.key_id) IS NOT (NULL, NULL, NULL) OR NEW.description <> ''
    OR (NEW.seq, NEW.id, NEW.kind, NEW.amount_micros, NEW.balance_after_micros, NEW.created_at)
        IS NOT (OLD.seq, OLD.id, OLD.kind, OLD.amount_micros, OLD.balance_after_micros, OLD.created_at)
    OR (NEW.reference, NEW.model, NEW.input_tokens, NEW.output_tokens)
        IS NOT (OLD.reference, OLD.model, OLD.input_tokens, OLD.output_tokens)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

-- What a call changes of a wallet is looked at, and not what it leaves as it was.
DROP TRIGGER wallets_follow_the_ledger;
CREATE TRIGGER wallets_follow_the_ledger BEFORE UPDATE ON wallets
WHEN NEW.account_id <> OLD.account_id
    OR (NEW.balance_micros <> OLD.balance_micros AND NEW.balance_micros <> ifnull(
        (SELECT balance_after_micros FROM ledger WHERE account_id = NEW.account_id ORDER BY seq DESC LIMIT 1), 0))
    OR (NEW.held_micros <> OLD.held_micros
        AND NEW.held_micros <> (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = NEW.account_id))
BEGIN
    SELECT RAISE(ABORT, 'a wallet follows the ledger and the holds');
END;

DROP TRIGGER ledger_continues;
CREATE TRIGGER ledger_continues BEFORE INSERT ON ledger
BEGIN
    SELECT RAISE(ABORT, 'a ledger row is never replaced')
    WHERE EXISTS (SELECT 1 FROM ledger WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)
        OR EXISTS (SELECT 1 FROM ledger WHERE reference = NEW.reference);
    SELECT RAISE(ABORT, 'a ledger row continues the balance of a wallet')
    WHERE NEW.balance_after_micros
        IS NOT (SELECT balance_micros FROM wallets WHERE account_id = NEW.account_id) + NEW.amount_micros;
END;
