-- The events of agent runs.
ALTER TABLE runs ADD COLUMN events TEXT CONSTRAINT events_length CHECK (length(events) <= 1000000);
DROP TRIGGER runs_are_stored;
CREATE TRIGGER runs_are_stored AFTER INSERT ON runs
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0) + ifnull(length(CAST(NEW.events AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER runs_are_stored_anew;
CREATE TRIGGER runs_are_stored_anew AFTER UPDATE OF goal, output, error, events ON runs
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0) + ifnull(length(CAST(NEW.events AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0) + ifnull(length(CAST(OLD.events AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER runs_are_stored_no_more;
CREATE TRIGGER runs_are_stored_no_more AFTER DELETE ON runs
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0) + ifnull(length(CAST(OLD.events AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
-- Existing conversations have one branch.
ALTER TABLE messages ADD COLUMN branch INTEGER NOT NULL DEFAULT 0 CONSTRAINT message_branch_range CHECK (branch BETWEEN 0 AND 1000);

CREATE TABLE branches (
    account_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    branch INTEGER NOT NULL CONSTRAINT branch_range CHECK (branch BETWEEN 0 AND 1000),
    parent INTEGER CONSTRAINT parent_before CHECK (ifnull(parent, -1) < branch), -- the branch that it leaves; NULL for 0
    first_id TEXT, -- its first message; NULL for 0
    replaces_id TEXT CONSTRAINT version_of_another CHECK (replaces_id <> first_id), -- the first version of its first message
    last INTEGER NOT NULL DEFAULT 0 CONSTRAINT last_not_negative CHECK (last >= 0), -- the number of its newest message
    shown_to INTEGER NOT NULL CONSTRAINT shown_to_not_negative CHECK (shown_to >= 0), -- the last number that is shown; 0 if none
    PRIMARY KEY (account_id, conversation_id, branch),
    CONSTRAINT branch_of_versions CHECK (
        (parent IS NULL) = (branch = 0) AND (first_id IS NULL) = (branch = 0) AND (replaces_id IS NULL) = (branch = 0)),
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TRIGGER messages_extend_their_branch AFTER INSERT ON messages WHEN NEW.conversation_id IS NOT NULL
BEGIN
    UPDATE branches SET last = NEW.number
    WHERE account_id = NEW.account_id AND conversation_id = NEW.conversation_id AND branch = NEW.branch;
END;

CREATE VIEW current_messages AS
SELECT * FROM messages WHERE NOT EXISTS (
    SELECT 1 FROM branches
    WHERE branches.account_id = messages.account_id AND branches.conversation_id = messages.conversation_id
        AND branches.branch = messages.branch AND shown_to < number);

-- Administrators and the audit log.
ALTER TABLE accounts ADD COLUMN admin INTEGER NOT NULL DEFAULT 0 CONSTRAINT admin_bool CHECK (admin IN (0, 1));
ALTER TABLE accounts ADD COLUMN suspended_at REAL;
ALTER TABLE accounts ADD COLUMN last_seen_at REAL;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    actor TEXT NOT NULL CONSTRAINT actor_length CHECK (length(actor) BETWEEN 1 AND 100), -- an account's id, or 'operator'
    action TEXT NOT NULL CONSTRAINT action_form CHECK (action GLOB '[a-z]*' AND length(action) <= 100),
    subject TEXT CONSTRAINT subject_length CHECK (length(subject) <= 200), -- an account's id, or another name
    details TEXT NOT NULL CONSTRAINT details_form CHECK (details LIKE '{%}'),
    person TEXT CONSTRAINT person_form CHECK (person LIKE '{%}') -- names and addresses of the account that is the subject
) STRICT;

CREATE INDEX audit_by_subject ON audit (subject);

CREATE TRIGGER audit_continues BEFORE INSERT ON audit
BEGIN
    SELECT RAISE(ABORT, 'an audit row is never replaced')
    WHERE NEW.seq IN (SELECT seq FROM audit) OR NEW.id IN (SELECT id FROM audit);
    SELECT RAISE(ABORT, 'only an account has names')
    WHERE NEW.person IS NOT NULL AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = NEW.subject AND deleting_at IS NULL);
END;

CREATE TRIGGER audit_drops_the_person AFTER UPDATE OF deleting_at ON accounts
WHEN NEW.deleting_at IS NOT NULL
BEGIN
    UPDATE audit SET person = NULL WHERE subject = NEW.id AND person IS NOT NULL;
END;

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
WHEN NEW.person IS NOT NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.subject AND deleting_at IS NULL)
    OR (NEW.seq, NEW.id, NEW.at, NEW.actor, NEW.action, NEW.subject, NEW.details)
        IS NOT (OLD.seq, OLD.id, OLD.at, OLD.actor, OLD.action, OLD.subject, OLD.details)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_keeps_all BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- End of the audit log.
-- Links that change an account's email address, and links that undo such a change.
CREATE TABLE new_links (
    token_hash BLOB PRIMARY KEY CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL CONSTRAINT purpose_known CHECK (purpose IN ('reset', 'verify', 'change', 'undo')),
    by_mail INTEGER NOT NULL CONSTRAINT by_mail_bool CHECK (by_mail IN (0, 1)),
    expires_at REAL NOT NULL,
    email TEXT CONSTRAINT link_email_length CHECK (length(email) BETWEEN 3 AND 254), -- the address that the account gets
    email_key TEXT, -- as in accounts: an 'undo' link reserves its address
    CONSTRAINT email_of_a_change CHECK ((email IS NOT NULL AND email_key IS NOT NULL) = (purpose IN ('change', 'undo')))
) STRICT;

INSERT INTO new_links SELECT token_hash, account_id, purpose, by_mail, expires_at, NULL, NULL FROM links;
DROP TABLE links;
ALTER TABLE new_links RENAME TO links;

CREATE INDEX links_by_account ON links (account_id, expires_at);
CREATE INDEX links_reserving ON links (email_key, expires_at) WHERE purpose = 'undo';

-- Anyone can request links for a known address. At this limit no further one is made, and those already sent stay valid.
CREATE TRIGGER links_bounded BEFORE INSERT ON links
WHEN (SELECT count(*) FROM links WHERE account_id = NEW.account_id) >= 20
BEGIN
    SELECT RAISE(ABORT, 'links_count');
END;

-- The prompts of generated images.
ALTER TABLE artifacts ADD COLUMN prompt TEXT CONSTRAINT prompt_length CHECK (length(prompt) <= 4000);
DROP TRIGGER artifacts_are_stored;
CREATE TRIGGER artifacts_are_stored AFTER INSERT ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size + ifnull(length(CAST(NEW.prompt AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER artifacts_are_stored_anew;
CREATE TRIGGER artifacts_are_stored_anew AFTER UPDATE OF name, size, prompt ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size + ifnull(length(CAST(NEW.prompt AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size + ifnull(length(CAST(OLD.prompt AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER artifacts_are_stored_no_more;
CREATE TRIGGER artifacts_are_stored_no_more AFTER DELETE ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size + ifnull(length(CAST(OLD.prompt AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

-- Groups: an account's group, its allowance, and the group in its usage. The paid usage of deleted accounts is kept.
ALTER TABLE accounts ADD COLUMN group_name TEXT CONSTRAINT group_name_length CHECK (length(group_name) BETWEEN 1 AND 63);
ALTER TABLE accounts ADD COLUMN group_chosen INTEGER NOT NULL DEFAULT 0
    CONSTRAINT group_chosen_bool CHECK (group_chosen IN (0, 1));
ALTER TABLE accounts ADD COLUMN allowance_month TEXT
    CONSTRAINT allowance_month_form CHECK (allowance_month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]');
ALTER TABLE accounts ADD COLUMN allowance_given_micros INTEGER NOT NULL DEFAULT 0
    CONSTRAINT allowance_given_range CHECK (allowance_given_micros BETWEEN 0 AND 1000000000000);

CREATE TRIGGER accounts_get_an_allowance_once BEFORE UPDATE OF allowance_month, allowance_given_micros ON accounts
WHEN OLD.allowance_month IS NOT NULL AND ifnull(NEW.allowance_month, '') <= OLD.allowance_month
    AND (NEW.allowance_month IS NOT OLD.allowance_month OR NEW.allowance_given_micros < OLD.allowance_given_micros)
BEGIN
    SELECT RAISE(ABORT, 'an allowance is given once');
END;

CREATE TABLE new_usage_days (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL CONSTRAINT day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'), -- in UTC
    model TEXT NOT NULL,
    key_id TEXT NOT NULL, -- the API key, also a deleted one; '' for a session
    group_name TEXT NOT NULL DEFAULT '' CONSTRAINT group_name_length CHECK (length(group_name) <= 63), -- at the time of the calls
    requests INTEGER NOT NULL CONSTRAINT requests_positive CHECK (requests > 0),
    input_tokens INTEGER NOT NULL CONSTRAINT input_tokens_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT output_tokens_not_negative CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT cost_not_negative CHECK (cost_micros >= 0),
    PRIMARY KEY (day, account_id, model, key_id, group_name)
) STRICT, WITHOUT ROWID;

INSERT INTO new_usage_days (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros)
SELECT account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros
FROM usage_days WHERE account_id IN (SELECT id FROM accounts WHERE deleting_at IS NULL)
ORDER BY day;
DROP TABLE usage_days;
ALTER TABLE new_usage_days RENAME TO usage_days;
CREATE INDEX usage_days_by_account ON usage_days (account_id);

CREATE TABLE deleted_usage (
    day TEXT NOT NULL CONSTRAINT deleted_day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'), -- in UTC
    model TEXT NOT NULL,
    group_name TEXT NOT NULL CONSTRAINT deleted_group_length CHECK (length(group_name) <= 63),
    requests INTEGER NOT NULL CONSTRAINT deleted_requests_positive CHECK (requests > 0),
    input_tokens INTEGER NOT NULL CONSTRAINT deleted_input_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT deleted_output_not_negative CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT deleted_cost_positive CHECK (cost_micros > 0),
    PRIMARY KEY (day, model, group_name)
) STRICT, WITHOUT ROWID;

-- Of accounts that are deleted, or about to be, the ledger has the calls.
INSERT INTO deleted_usage
SELECT date(CAST(created_at AS INTEGER), 'unixepoch'), model, '', count(*), ifnull(sum(input_tokens), 0),
    ifnull(sum(output_tokens), 0), -sum(amount_micros)
FROM ledger
WHERE model IS NOT NULL AND (account_id IS NULL OR account_id IN (SELECT id FROM accounts WHERE deleting_at IS NOT NULL))
GROUP BY 1, 2;

CREATE TRIGGER usage_days_outlive_their_account AFTER DELETE ON usage_days WHEN OLD.cost_micros > 0
BEGIN
    INSERT INTO deleted_usage
    VALUES (OLD.day, OLD.model, OLD.group_name, OLD.requests, OLD.input_tokens, OLD.output_tokens, OLD.cost_micros)
    ON CONFLICT (day, model, group_name) DO UPDATE SET requests = requests + excluded.requests,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cost_micros = cost_micros + excluded.cost_micros;
END;

CREATE TRIGGER ledger_credits_an_allowance_once BEFORE INSERT ON ledger
WHEN NEW.reference GLOB 'allowance:*'
BEGIN
    SELECT RAISE(ABORT, 'allowance_not_due')
    WHERE NEW.amount_micros < 0 OR NEW.model IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM accounts, (
            SELECT count(*) AS times, ifnull(sum(amount_micros), 0) AS micros
            FROM ledger JOIN accounts ON accounts.id = NEW.account_id
            WHERE reference >= 'allowance:' || accounts.id || ':' || allowance_month
                AND reference < 'allowance:' || accounts.id || ':' || allowance_month || ';')
        WHERE id = NEW.account_id AND micros + NEW.amount_micros <= allowance_given_micros
            AND NEW.reference = 'allowance:' || id || ':' || allowance_month || iif(times, ':' || (times + 1), ''));
END;
-- End of the groups.
-- Status and errors of answers (svc/content/history.py).
ALTER TABLE conversations ADD COLUMN answering INTEGER NOT NULL DEFAULT 0 CONSTRAINT one_answer_at_a_time CHECK (answering IN (0, 1));
ALTER TABLE messages ADD COLUMN status TEXT NOT NULL DEFAULT 'complete' CONSTRAINT message_status_known CHECK (
        status IN ('complete', 'in_progress', 'stopped', 'interrupted', 'failed')
    ) CONSTRAINT status_of_answer CHECK (status = 'complete' OR (role = 'assistant' AND conversation_id IS NOT NULL));
ALTER TABLE messages ADD COLUMN error TEXT CONSTRAINT error_of_failed CHECK ((error IS NOT NULL) = (status = 'failed') AND length(error) <= 10000);

CREATE INDEX messages_in_progress ON messages (status) WHERE status = 'in_progress';

CREATE TRIGGER messages_begin_to_answer AFTER INSERT ON messages
WHEN NEW.status = 'in_progress'
BEGIN
    UPDATE conversations SET answering = answering + 1 WHERE account_id = NEW.account_id AND id = NEW.conversation_id;
END;

CREATE TRIGGER messages_have_answered AFTER UPDATE OF status ON messages
WHEN OLD.status = 'in_progress' AND NEW.status <> 'in_progress'
BEGIN
    UPDATE conversations SET answering = answering - 1 WHERE account_id = NEW.account_id AND id = NEW.conversation_id;
END;

CREATE TRIGGER messages_answer_no_more AFTER DELETE ON messages
WHEN OLD.status = 'in_progress'
BEGIN
    UPDATE conversations SET answering = answering - 1 WHERE account_id = OLD.account_id AND id = OLD.conversation_id;
END;

CREATE TRIGGER answers_end_once BEFORE UPDATE OF status ON messages
WHEN OLD.status <> 'in_progress'
BEGIN
    SELECT RAISE(ABORT, 'this answer has ended');
END;

DROP TRIGGER messages_are_stored;
DROP TRIGGER messages_are_stored_anew;
DROP TRIGGER messages_are_stored_no_more;

CREATE TRIGGER messages_are_stored AFTER INSERT ON messages
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.content AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER messages_are_stored_anew AFTER UPDATE OF content, error ON messages
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.content AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.content AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER messages_are_stored_no_more AFTER DELETE ON messages
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.content AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

-- What is older than the operator keeps it.
CREATE INDEX conversations_by_age ON conversations (updated_at);
CREATE INDEX runs_by_age ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX artifacts_by_age ON artifacts (updated_at);
CREATE INDEX messages_by_run ON messages (account_id, run_id) WHERE run_id IS NOT NULL;

-- An artifact remains after its run.
CREATE TRIGGER runs_leave_their_artifacts BEFORE DELETE ON runs
BEGIN
    UPDATE artifacts SET run_id = NULL WHERE account_id = OLD.account_id AND run_id = OLD.id;
END;

-- Cached input.
ALTER TABLE answers ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0
    CONSTRAINT answer_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens);
ALTER TABLE answers ADD COLUMN saved_micros INTEGER NOT NULL DEFAULT 0
    CONSTRAINT answer_saved_amount CHECK (saved_micros >= 0);
ALTER TABLE ledger ADD COLUMN cached_input_tokens INTEGER
    CONSTRAINT cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND ifnull(input_tokens, -1));
ALTER TABLE usage_days ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0
    CONSTRAINT used_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens);
ALTER TABLE deleted_usage ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0
    CONSTRAINT deleted_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens);

DROP TRIGGER usage_days_outlive_their_account;
CREATE TRIGGER usage_days_outlive_their_account AFTER DELETE ON usage_days WHEN OLD.cost_micros > 0
BEGIN
    INSERT INTO deleted_usage
    VALUES (OLD.day, OLD.model, OLD.group_name, OLD.requests, OLD.input_tokens, OLD.output_tokens, OLD.cost_micros,
        OLD.cached_input_tokens)
    ON CONFLICT (day, model, group_name) DO UPDATE SET requests = requests + excluded.requests,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cost_micros = cost_micros + excluded.cost_micros,
        cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens;
END;

DROP TRIGGER ledger_stays;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger
WHEN OLD.account_id IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND deleting_at IS NULL)
    OR (NEW.account_id, NEW.request_id, NEW.key_id) IS NOT (NULL, NULL, NULL) OR NEW.description <> ''
    OR (NEW.seq, NEW.id, NEW.kind, NEW.amount_micros, NEW.balance_after_micros, NEW.created_at)
        IS NOT (OLD.seq, OLD.id, OLD.kind, OLD.amount_micros, OLD.balance_after_micros, OLD.created_at)
    OR (NEW.reference, NEW.model, NEW.input_tokens, NEW.output_tokens, NEW.cached_input_tokens)
        IS NOT (OLD.reference, OLD.model, OLD.input_tokens, OLD.output_tokens, OLD.cached_input_tokens)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

-- Groups by the claims of an identity provider.
ALTER TABLE accounts ADD COLUMN group_claimed TEXT CONSTRAINT group_claimed_length CHECK (length(group_claimed) BETWEEN 1 AND 63);
ALTER TABLE accounts ADD COLUMN signed_in_at REAL;

-- Limits of accounts and keys. The next start would release the holds, too.
ALTER TABLE api_keys ADD COLUMN monthly_limit_micros INTEGER
    CONSTRAINT key_limit_range CHECK (monthly_limit_micros BETWEEN 0 AND 1000000000000000);
ALTER TABLE api_keys ADD COLUMN month TEXT;
ALTER TABLE api_keys ADD COLUMN month_spent_micros INTEGER NOT NULL DEFAULT 0
    CONSTRAINT key_month_not_negative CHECK (month_spent_micros >= 0);
ALTER TABLE wallets ADD COLUMN monthly_limit_micros INTEGER
    CONSTRAINT account_limit_range CHECK (monthly_limit_micros BETWEEN 0 AND 1000000000000000);
ALTER TABLE wallets ADD COLUMN month TEXT;
ALTER TABLE wallets ADD COLUMN month_spent_micros INTEGER NOT NULL DEFAULT 0
    CONSTRAINT wallet_month_not_negative CHECK (month_spent_micros >= 0);
ALTER TABLE ledger ADD COLUMN month TEXT
    CONSTRAINT ledger_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]');
DELETE FROM holds;
ALTER TABLE holds ADD COLUMN key_id TEXT;
ALTER TABLE holds ADD COLUMN month TEXT NOT NULL
    CONSTRAINT hold_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]');

UPDATE wallets SET (month, month_spent_micros) = (newest.month, newest.micros)
FROM (
    SELECT account_id, max(month) AS month, micros FROM (
        SELECT account_id, strftime('%Y-%m', CAST(created_at AS INTEGER), 'unixepoch') AS month, -sum(amount_micros) AS micros
        FROM ledger WHERE account_id IS NOT NULL AND model IS NOT NULL GROUP BY 1, 2
    ) GROUP BY 1
) AS newest
WHERE newest.account_id = wallets.account_id;
UPDATE api_keys SET (month, month_spent_micros) = (newest.month, newest.micros)
FROM (
    SELECT account_id, key_id, max(month) AS month, micros FROM (
        SELECT account_id, key_id, strftime('%Y-%m', CAST(created_at AS INTEGER), 'unixepoch') AS month,
            -sum(amount_micros) AS micros
        FROM ledger WHERE account_id IS NOT NULL AND key_id IS NOT NULL GROUP BY 1, 2, 3
    ) GROUP BY 1, 2
) AS newest
WHERE newest.account_id = api_keys.account_id AND newest.key_id = api_keys.id;

DROP TRIGGER wallets_begin_empty;
CREATE TRIGGER wallets_begin_empty BEFORE INSERT ON wallets
WHEN NEW.balance_micros <> 0 OR NEW.month_spent_micros <> 0
    OR EXISTS (SELECT 1 FROM wallets WHERE account_id = NEW.account_id)
    OR EXISTS (SELECT 1 FROM ledger WHERE account_id = NEW.account_id)
    OR EXISTS (SELECT 1 FROM holds WHERE account_id = NEW.account_id)
BEGIN
    SELECT RAISE(ABORT, 'a wallet begins empty, once');
END;
DROP TRIGGER ledger_moves_the_balance;
CREATE TRIGGER ledger_moves_the_balance AFTER INSERT ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger has no gaps') WHERE NEW.seq <> 1 AND NEW.seq - 1 NOT IN (SELECT seq FROM ledger);
    UPDATE wallets SET balance_micros = NEW.balance_after_micros,
        month_spent_micros = CASE WHEN NEW.month = month THEN month_spent_micros - NEW.amount_micros
            WHEN NEW.month > ifnull(month, '') THEN -NEW.amount_micros ELSE month_spent_micros END,
        month = iif(NEW.month > ifnull(month, ''), NEW.month, month)
    WHERE account_id = NEW.account_id;
    UPDATE accounts SET tier = 'pro' WHERE id = NEW.account_id AND tier = 'free' AND NEW.amount_micros >= 5000000;
END;
DROP TRIGGER ledger_counts_for_its_key;
CREATE TRIGGER ledger_counts_for_its_key AFTER INSERT ON ledger WHEN NEW.key_id IS NOT NULL
BEGIN
    UPDATE api_keys SET spent_micros = spent_micros - NEW.amount_micros,
        month_spent_micros = CASE WHEN NEW.month = month THEN month_spent_micros - NEW.amount_micros
            WHEN NEW.month > ifnull(month, '') THEN -NEW.amount_micros ELSE month_spent_micros END,
        month = iif(NEW.month > ifnull(month, ''), NEW.month, month)
    WHERE account_id = NEW.account_id AND id = NEW.key_id;
END;
DROP TRIGGER ledger_stays;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger
WHEN OLD.account_id IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND deleting_at IS NULL)
    OR (NEW.account_id, NEW.request_id, NEW.key_id) IS NOT (NULL, NULL, NULL) OR NEW.description <> ''
    OR (NEW.seq, NEW.id, NEW.kind, NEW.amount_micros, NEW.balance_after_micros, NEW.created_at)
        IS NOT (OLD.seq, OLD.id, OLD.kind, OLD.amount_micros, OLD.balance_after_micros, OLD.created_at)
    OR (NEW.reference, NEW.model, NEW.input_tokens, NEW.output_tokens, NEW.cached_input_tokens, NEW.month)
        IS NOT (OLD.reference, OLD.model, OLD.input_tokens, OLD.output_tokens, OLD.cached_input_tokens, OLD.month)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
DROP TRIGGER holds_fit_the_balance;
CREATE TRIGGER holds_fit_the_wallet BEFORE INSERT ON holds
BEGIN
    SELECT RAISE(ABORT, 'a hold is never replaced')
    WHERE EXISTS (SELECT 1 FROM holds WHERE account_id = NEW.account_id AND id = NEW.id);
    SELECT CASE
        WHEN NEW.month < month THEN RAISE(ABORT, 'month_is_over')
        WHEN balance_micros < NEW.amount_micros + (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = NEW.account_id)
            THEN RAISE(ABORT, 'held_within_balance')
        WHEN monthly_limit_micros IS NOT NULL
            AND monthly_limit_micros < NEW.amount_micros + iif(month = NEW.month, month_spent_micros, 0) + (
                SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = NEW.account_id AND month = NEW.month)
            THEN RAISE(ABORT, 'within_limit')
        END
    FROM wallets WHERE account_id = NEW.account_id;
    SELECT RAISE(ABORT, 'within_limit') FROM api_keys
    WHERE id = NEW.key_id AND account_id = NEW.account_id AND monthly_limit_micros IS NOT NULL
        AND monthly_limit_micros < NEW.amount_micros + iif(month = NEW.month, month_spent_micros, 0) + (
            SELECT ifnull(sum(amount_micros), 0) FROM holds
            WHERE account_id = NEW.account_id AND key_id = NEW.key_id AND month = NEW.month);
END;

-- Places of deleted conversations, and default models of own providers.
-- The places that the last 100 deleted conversations of each account had in its list: a page may begin after one of them.
CREATE TABLE deleted_conversations (
    seq INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    pinned INTEGER NOT NULL CONSTRAINT deleted_pinned_bool CHECK (pinned IN (0, 1)),
    updated_at REAL NOT NULL,
    number INTEGER NOT NULL
) STRICT;

CREATE INDEX deleted_conversations_by_account ON deleted_conversations (account_id);

CREATE TRIGGER conversations_leave_their_place AFTER DELETE ON conversations
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND deleting_at IS NULL)
BEGIN
    INSERT INTO deleted_conversations (account_id, id, pinned, updated_at, number)
    VALUES (OLD.account_id, OLD.id, OLD.pinned, OLD.updated_at, OLD.number);
    DELETE FROM deleted_conversations WHERE account_id = OLD.account_id AND seq <= (
        SELECT seq FROM deleted_conversations WHERE account_id = OLD.account_id ORDER BY seq DESC LIMIT 1 OFFSET 100);
END;

-- A default model does not outlive its own provider, or its place in the list of models. It follows a new name of the provider.
CREATE TRIGGER providers_take_the_default_model_along AFTER DELETE ON providers
BEGIN
    UPDATE accounts SET default_model = NULL
    WHERE id = OLD.account_id AND substr(default_model, 1, length(OLD.name) + 1) = OLD.name || '/';
END;

CREATE TRIGGER providers_keep_the_default_model AFTER UPDATE OF name, models ON providers
BEGIN
    UPDATE accounts SET default_model = (
        SELECT NEW.name || '/' || model FROM (SELECT substr(default_model, length(OLD.name) + 2) AS model)
        WHERE NEW.models IS NULL OR EXISTS ( -- a name, or an object with `id` and `kind`
            SELECT 1 FROM json_tree(NEW.models) AS named WHERE atom = model AND (path = '$' OR (key = 'id' AND EXISTS (
                SELECT 1 FROM json_tree(NEW.models) WHERE path = named.path AND key = 'kind' AND atom = 'chat')))))
    WHERE id = NEW.account_id AND substr(default_model, 1, length(OLD.name) + 1) = OLD.name || '/';
END;

-- Requests with an Idempotency-Key, and their kept answers.
CREATE TABLE idempotency_keys (
    id TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    place BLOB CONSTRAINT place_sha256 CHECK (length(place) = 32), -- the hash of the path and the key; NULL: no longer in use
    body_sha256 BLOB NOT NULL CONSTRAINT body_sha256_length CHECK (length(body_sha256) = 32),
    claimed_at REAL NOT NULL,
    status INTEGER CONSTRAINT kept_status_range CHECK (status BETWEEN 200 AND 499), -- of the answer; NULL: there is none yet
    headers TEXT CONSTRAINT kept_headers_form CHECK (headers LIKE '{%}' AND length(headers) <= 10000),
    size INTEGER CONSTRAINT kept_size_range CHECK (size BETWEEN 0 AND 8388608), -- bytes, in idempotency_chunks; NULL: not kept
    run_id TEXT, -- the agent run that the request started, whose answer is not kept
    conversation_id TEXT, -- of the answer, which is deleted with the conversation
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, place),
    CONSTRAINT kept_whole CHECK ((status IS NULL) = (headers IS NULL) AND (size IS NULL OR (status IS NOT NULL AND run_id IS NULL)))
) STRICT;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (claimed_at);
CREATE INDEX idempotency_keys_open ON idempotency_keys (id) WHERE status IS NULL;
CREATE INDEX idempotency_keys_by_conversation ON idempotency_keys (account_id, conversation_id) WHERE conversation_id IS NOT NULL;

-- An answer is kept once, as it was sent, until it is deleted.
CREATE TRIGGER answers_are_kept_once BEFORE UPDATE OF body_sha256, status, headers, size, run_id ON idempotency_keys
WHEN OLD.status IS NOT NULL AND (NEW.size IS NOT NULL
    OR (NEW.body_sha256, NEW.status, NEW.headers, NEW.run_id) IS NOT (OLD.body_sha256, OLD.status, OLD.headers, OLD.run_id))
BEGIN
    SELECT RAISE(ABORT, 'this answer is kept');
END;

CREATE TABLE idempotency_chunks (
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    number INTEGER NOT NULL CONSTRAINT kept_chunk_number_range CHECK (number BETWEEN 0 AND 31),
    content BLOB NOT NULL CONSTRAINT kept_chunk_length CHECK (length(content) BETWEEN 1 AND 262144),
    PRIMARY KEY (account_id, key_id, number),
    FOREIGN KEY (account_id, key_id) REFERENCES idempotency_keys (account_id, id) ON DELETE CASCADE
) STRICT;

CREATE TRIGGER idempotency_keys_are_stored AFTER INSERT ON idempotency_keys
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.headers AS BLOB)), 0) + ifnull(NEW.size, 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER idempotency_keys_are_stored_anew AFTER UPDATE OF headers, size ON idempotency_keys
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.headers AS BLOB)), 0) + ifnull(NEW.size, 0))
        - (256 + ifnull(length(CAST(OLD.headers AS BLOB)), 0) + ifnull(OLD.size, 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER idempotency_keys_are_stored_no_more AFTER DELETE ON idempotency_keys
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.headers AS BLOB)), 0) + ifnull(OLD.size, 0))
    WHERE account_id = OLD.account_id;
END;

-- A content is unused after its artifact is deleted, and after it is replaced.
ALTER TABLE artifact_contents
    ADD COLUMN unused INTEGER NOT NULL DEFAULT 0 CONSTRAINT unused_bool CHECK (unused IN (0, 1));
CREATE INDEX artifact_contents_unused ON artifact_contents (account_id, id) WHERE unused;
DROP TRIGGER artifacts_take_their_contents_along;
CREATE TRIGGER artifacts_take_their_contents_along AFTER DELETE ON artifacts
BEGIN
    UPDATE artifact_contents SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.content_id;
END;
DROP TRIGGER artifacts_leave_their_contents;
CREATE TRIGGER artifacts_leave_their_contents AFTER UPDATE OF content_id ON artifacts
WHEN NEW.content_id <> OLD.content_id
BEGIN
    UPDATE artifact_contents SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.content_id;
END;

-- An allowance that is given once to a person, and spending of deleted accounts by their ids.
CREATE TABLE given_allowances (
    month TEXT NOT NULL CONSTRAINT given_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'),
    identity_hash BLOB NOT NULL CONSTRAINT identity_hash_sha256 CHECK (length(identity_hash) = 32), -- with the key of `installation`
    given_micros INTEGER NOT NULL CONSTRAINT given_micros_range CHECK (given_micros BETWEEN 1 AND 1000000000000),
    PRIMARY KEY (identity_hash, month)
) STRICT, WITHOUT ROWID;

CREATE INDEX given_allowances_by_month ON given_allowances (month);

ALTER TABLE installation ADD COLUMN identity_key BLOB CONSTRAINT identity_key_length CHECK (length(identity_key) = 32);
UPDATE installation SET identity_key = randomblob(32);

DROP TRIGGER usage_days_outlive_their_account;
CREATE TABLE new_deleted_usage (
    day TEXT NOT NULL CONSTRAINT deleted_day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'), -- in UTC
    model TEXT NOT NULL,
    group_name TEXT NOT NULL CONSTRAINT deleted_group_length CHECK (length(group_name) <= 63),
    deleted_id TEXT NOT NULL CONSTRAINT deleted_id_length CHECK (length(deleted_id) <= 100), -- the account's; '' for 1.0.0
    requests INTEGER NOT NULL CONSTRAINT deleted_requests_positive CHECK (requests > 0),
    input_tokens INTEGER NOT NULL CONSTRAINT deleted_input_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT deleted_output_not_negative CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT deleted_cost_positive CHECK (cost_micros > 0),
    cached_input_tokens INTEGER NOT NULL DEFAULT 0
        CONSTRAINT deleted_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens),
    PRIMARY KEY (day, model, group_name, deleted_id)
) STRICT, WITHOUT ROWID;

INSERT INTO new_deleted_usage
SELECT day, model, group_name, '', requests, input_tokens, output_tokens, cost_micros, cached_input_tokens FROM deleted_usage;
DROP TABLE deleted_usage;
ALTER TABLE new_deleted_usage RENAME TO deleted_usage;
CREATE TRIGGER usage_days_outlive_their_account AFTER DELETE ON usage_days WHEN OLD.cost_micros > 0
BEGIN
    INSERT INTO deleted_usage
    VALUES (OLD.day, OLD.model, OLD.group_name, OLD.account_id, OLD.requests, OLD.input_tokens, OLD.output_tokens,
        OLD.cost_micros, OLD.cached_input_tokens)
    ON CONFLICT (day, model, group_name, deleted_id) DO UPDATE SET requests = requests + excluded.requests,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cost_micros = cost_micros + excluded.cost_micros,
        cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens;
END;

-- Sign-ins.
CREATE TABLE sign_ins (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE, -- NULL: refused, without an account
    way TEXT NOT NULL CONSTRAINT way_length CHECK (length(way) BETWEEN 1 AND 63), -- password, link, or an identity provider's name
    code TEXT NOT NULL CONSTRAINT sign_in_code_form CHECK (code GLOB '[a-z]*' AND length(code) <= 100) -- ok, or why it was refused
) STRICT;

CREATE INDEX sign_ins_by_account ON sign_ins (account_id) WHERE account_id IS NOT NULL;
