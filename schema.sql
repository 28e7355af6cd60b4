-- The newest schema. Every rule that SQLite can enforce is a constraint or a trigger.
-- Times are Unix seconds (REAL), money is integer micros of a US dollar.

-- owner: svc/auth/accounts.py
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT CONSTRAINT email_length CHECK (length(email) BETWEEN 3 AND 254),
    email_key TEXT UNIQUE, -- the email address in lower case: one account for each address
    name TEXT CONSTRAINT name_length CHECK (length(name) <= 200),
    password_hash TEXT, -- NULL: the account signs in with an identity provider
    tier TEXT NOT NULL DEFAULT 'free' CONSTRAINT tier_known CHECK (tier IN ('free', 'pro')),
    default_model TEXT CONSTRAINT default_model_length CHECK (length(default_model) <= 364), -- provider 63, slash, model 300
    memory_enabled INTEGER NOT NULL DEFAULT 1 CONSTRAINT memory_enabled_bool CHECK (memory_enabled IN (0, 1)),
    instructions TEXT CONSTRAINT account_instructions_length CHECK (length(instructions) <= 8000), -- for chats of its sessions
    created_at REAL NOT NULL,
    email_verified_at REAL,
    deleting_at REAL, -- when its deletion began; queries do not return such an account
    admin INTEGER NOT NULL DEFAULT 0 CONSTRAINT admin_bool CHECK (admin IN (0, 1)),
    suspended_at REAL, -- NULL: the account is active
    last_seen_at REAL, -- to about an hour
    group_name TEXT CONSTRAINT group_name_length CHECK (length(group_name) BETWEEN 1 AND 63), -- in the catalog
    group_chosen INTEGER NOT NULL DEFAULT 0 CONSTRAINT group_chosen_bool CHECK (group_chosen IN (0, 1)), -- 0: found by the address
    allowance_month TEXT CONSTRAINT allowance_month_form CHECK (allowance_month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'), -- the last one
    allowance_given_micros INTEGER NOT NULL DEFAULT 0
        CONSTRAINT allowance_given_range CHECK (allowance_given_micros BETWEEN 0 AND 1000000000000), -- the allowance of that month
    group_claimed TEXT CONSTRAINT group_claimed_length CHECK (length(group_claimed) BETWEEN 1 AND 63), -- by the identity provider
    signed_in_at REAL, -- the last time with an identity provider
    generate_titles TEXT NOT NULL DEFAULT 'free'
        CONSTRAINT generate_titles_known CHECK (generate_titles IN ('always', 'free', 'never')), -- for new conversations
    language TEXT CONSTRAINT language_form CHECK (language GLOB '[a-z][a-z]'), -- of pages and mails; NULL: that of the browser
    CONSTRAINT email_until_deletion CHECK (deleting_at IS NOT NULL OR (email IS NOT NULL AND email_key IS NOT NULL)),
    CONSTRAINT nothing_personal_after CHECK (
        deleting_at IS NULL OR coalesce(email, email_key, name, password_hash, default_model, instructions) IS NULL
    )
) STRICT;

CREATE INDEX accounts_deleting ON accounts (deleting_at) WHERE deleting_at IS NOT NULL;

-- A pro account stays pro, with any balance.
CREATE TRIGGER accounts_stay_pro BEFORE UPDATE OF tier ON accounts
WHEN OLD.tier = 'pro' AND NEW.tier <> 'pro'
BEGIN
    SELECT RAISE(ABORT, 'a pro account stays pro');
END;

-- owner: svc/audit.py
-- What administrators and the operator did. Append-only, also after accounts are deleted.
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

-- The only change of an audit row: deleting its account removes names and addresses.
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

-- The clock may go back, but an allowance is not given again: its month does not go back, and it only grows within a month.
CREATE TRIGGER accounts_get_an_allowance_once BEFORE UPDATE OF allowance_month, allowance_given_micros ON accounts
WHEN OLD.allowance_month IS NOT NULL AND ifnull(NEW.allowance_month, '') <= OLD.allowance_month
    AND (NEW.allowance_month IS NOT OLD.allowance_month OR NEW.allowance_given_micros < OLD.allowance_given_micros)
BEGIN
    SELECT RAISE(ABORT, 'an allowance is given once');
END;

-- owner: svc/auth/links.py
-- One-time links, by the hash of their secret. An account may have several: a new one leaves the earlier ones valid.
CREATE TABLE links (
    token_hash BLOB PRIMARY KEY CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL CONSTRAINT purpose_known CHECK (purpose IN ('reset', 'verify', 'change', 'undo')),
    by_mail INTEGER NOT NULL CONSTRAINT by_mail_bool CHECK (by_mail IN (0, 1)),
    expires_at REAL NOT NULL,
    email TEXT CONSTRAINT link_email_length CHECK (length(email) BETWEEN 3 AND 254), -- the address that the account gets
    email_key TEXT, -- as in accounts: an 'undo' link reserves its address
    CONSTRAINT email_of_a_change CHECK ((email IS NOT NULL AND email_key IS NOT NULL) = (purpose IN ('change', 'undo')))
) STRICT;

CREATE INDEX links_by_account ON links (account_id, expires_at);
CREATE INDEX links_reserving ON links (email_key, expires_at) WHERE purpose = 'undo';

-- Anyone can request links for a known address. At this limit no further one is made, and those already sent stay valid.
CREATE TRIGGER links_bounded BEFORE INSERT ON links
WHEN (SELECT count(*) FROM links WHERE account_id = NEW.account_id) >= 20
BEGIN
    SELECT RAISE(ABORT, 'links_count');
END;

-- owner: svc/auth/given.py
-- The allowance that former owners of an address or an identity were given in a month: a deleted account, or one that changed
-- its address or unlinked the identity. Whoever has it now gets only what is left. Deleted after the month.
CREATE TABLE given_allowances (
    month TEXT NOT NULL CONSTRAINT given_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'),
    identity_hash BLOB NOT NULL CONSTRAINT identity_hash_sha256 CHECK (length(identity_hash) = 32), -- with the key of `installation`
    given_micros INTEGER NOT NULL CONSTRAINT given_micros_range CHECK (given_micros BETWEEN 1 AND 1000000000000),
    PRIMARY KEY (identity_hash, month)
) STRICT, WITHOUT ROWID;

CREATE INDEX given_allowances_by_month ON given_allowances (month);

-- owner: svc/auth/identities.py
-- Identities at identity providers. Each signs in to one account.
CREATE TABLE identities (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL CONSTRAINT subject_length CHECK (length(subject) BETWEEN 1 AND 255),
    email TEXT, -- as the provider reported it when the identity was linked
    created_at REAL NOT NULL,
    UNIQUE (issuer, subject)
) STRICT;

CREATE INDEX identities_by_account ON identities (account_id, id);

-- owner: svc/auth/oauth_flows.py
-- Sign-ins in progress at a provider. Only hashes: the secrets are derived from the state, which only the browser has.
CREATE TABLE oauth_flows (
    state_hash BLOB PRIMARY KEY CONSTRAINT state_hash_sha256 CHECK (length(state_hash) = 32),
    browser_hash BLOB NOT NULL CONSTRAINT browser_hash_sha256 CHECK (length(browser_hash) = 32),
    provider TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE, -- the account to link the identity to; NULL for a sign-in
    expires_at REAL NOT NULL
) STRICT;

CREATE INDEX oauth_flows_by_account ON oauth_flows (account_id);
CREATE INDEX oauth_flows_by_end ON oauth_flows (expires_at);

-- owner: svc/auth/oauth_flows.py
-- Completed sign-ins, whose page exchanges the code for a session.
CREATE TABLE oauth_codes (
    code_hash BLOB PRIMARY KEY CONSTRAINT code_hash_sha256 CHECK (length(code_hash) = 32),
    browser_hash BLOB NOT NULL CONSTRAINT browser_hash_sha256 CHECK (length(browser_hash) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    expires_at REAL NOT NULL
) STRICT;

CREATE INDEX oauth_codes_by_account ON oauth_codes (account_id);
CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);

-- owner: svc/auth/sign_ins.py
-- Sign-ins of the last 90 days, also refused ones.
CREATE TABLE sign_ins (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE, -- NULL: refused, without an account
    way TEXT NOT NULL CONSTRAINT way_length CHECK (length(way) BETWEEN 1 AND 63), -- password, link, or an identity provider's name
    code TEXT NOT NULL CONSTRAINT sign_in_code_form CHECK (code GLOB '[a-z]*' AND length(code) <= 100) -- ok, or why it was refused
) STRICT;

CREATE INDEX sign_ins_by_account ON sign_ins (account_id) WHERE account_id IS NOT NULL;

-- owner: svc/auth/tokens.py
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    token_hash BLOB NOT NULL UNIQUE CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    key_prefix TEXT NOT NULL CONSTRAINT key_prefix_form CHECK (length(key_prefix) = 10 AND key_prefix GLOB 'svc-v1-*'),
    name TEXT NOT NULL CONSTRAINT name_not_blank CHECK (trim(name) <> ''),
    created_at REAL NOT NULL,
    last_used_at REAL,
    spent_micros INTEGER NOT NULL DEFAULT 0, -- the sum of the debits with this key, updated by a trigger of the ledger
    monthly_limit_micros INTEGER CONSTRAINT key_limit_range CHECK (monthly_limit_micros BETWEEN 0 AND 1000000000000000), -- NULL: none
    month TEXT, -- as in wallets
    month_spent_micros INTEGER NOT NULL DEFAULT 0 CONSTRAINT key_month_not_negative CHECK (month_spent_micros >= 0)
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, id);
CREATE INDEX api_keys_limited ON api_keys (account_id) WHERE monthly_limit_micros IS NOT NULL;

-- owner: svc/content/projects.py
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL CONSTRAINT project_name_form CHECK (trim(name) <> '' AND length(name) <= 200),
    instructions TEXT NOT NULL CONSTRAINT instructions_length CHECK (length(instructions) <= 100000),
    max_planner_steps INTEGER CONSTRAINT max_planner_steps_range CHECK (max_planner_steps BETWEEN 1 AND 20),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (account_id, id) -- foreign keys use both columns, so that they cannot refer to a project of another account
) STRICT;

CREATE TRIGGER projects_bounded BEFORE INSERT ON projects
WHEN (SELECT count(*) FROM projects WHERE account_id = NEW.account_id) >= 1000
BEGIN
    SELECT RAISE(ABORT, 'projects_count');
END;

-- owner: svc/content/prompts.py
CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL CONSTRAINT prompt_name_form CHECK (trim(name) <> '' AND length(name) <= 100),
    text TEXT NOT NULL CONSTRAINT prompt_text_form CHECK (trim(text) <> '' AND length(text) <= 8000),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (account_id, name)
) STRICT;

-- After the insert, so that a name that exists is the error of a full account, too.
CREATE TRIGGER prompts_bounded AFTER INSERT ON prompts
WHEN (SELECT count(*) FROM prompts WHERE account_id = NEW.account_id) > 500
BEGIN
    SELECT RAISE(ABORT, 'prompts_count');
END;

-- owner: svc/content/prompts.py
-- Prompts that administrators share with a group of the catalog, or with everyone.
CREATE TABLE shared_prompts (
    group_name TEXT NOT NULL CONSTRAINT shared_group_length CHECK (length(group_name) <= 63), -- '': everyone
    name TEXT NOT NULL CONSTRAINT shared_name_form CHECK (trim(name) <> '' AND length(name) <= 100),
    text TEXT NOT NULL CONSTRAINT shared_text_form CHECK (trim(text) <> '' AND length(text) <= 8000),
    PRIMARY KEY (group_name, name)
) STRICT, WITHOUT ROWID;

-- owner: svc/content/artifact_contents.py
-- The contents of artifacts. One without an artifact is being written, or is unused.
CREATE TABLE artifact_contents (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    unused INTEGER NOT NULL DEFAULT 0 CONSTRAINT unused_bool CHECK (unused IN (0, 1)), -- the writer deletes it when it has time
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_contents_unused ON artifact_contents (account_id, id) WHERE unused;

-- owner: svc/content/artifacts.py
CREATE TABLE artifacts (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    project_id TEXT,
    run_id TEXT, -- the agent run that created it
    name TEXT NOT NULL CONSTRAINT artifact_name_form CHECK (trim(name) <> '' AND length(name) <= 200),
    content_type TEXT NOT NULL CONSTRAINT content_type_form CHECK (
        content_type GLOB '?*/?*' AND content_type NOT GLOB '*[^ -~]*' AND length(content_type) <= 200
    ),
    size INTEGER NOT NULL CONSTRAINT artifact_size_range CHECK (size BETWEEN 0 AND 33554432), -- bytes, in artifact_chunks
    sha256 BLOB NOT NULL CONSTRAINT artifact_sha256 CHECK (length(sha256) = 32),
    content_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    prompt TEXT CONSTRAINT prompt_length CHECK (length(prompt) <= 4000), -- of a generated image
    UNIQUE (account_id, content_id),
    FOREIGN KEY (account_id, content_id) REFERENCES artifact_contents (account_id, id),
    FOREIGN KEY (account_id, project_id) REFERENCES projects (account_id, id)
) STRICT;

CREATE INDEX artifacts_by_account ON artifacts (account_id);
CREATE INDEX artifacts_by_project ON artifacts (account_id, project_id);
CREATE INDEX artifacts_by_age ON artifacts (updated_at);
CREATE INDEX artifacts_by_run ON artifacts (account_id, run_id) WHERE run_id IS NOT NULL;

-- A content is unused after its artifact is deleted or replaced, unless a share has it. SQLite overwrites what it deletes: a whole
-- content would take too long for one transaction.
CREATE TRIGGER artifacts_take_their_contents_along AFTER DELETE ON artifacts
BEGIN
    UPDATE artifact_contents SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.content_id
        AND NOT EXISTS (SELECT 1 FROM share_pictures WHERE account_id = OLD.account_id AND content_id = OLD.content_id);
END;

CREATE TRIGGER artifacts_leave_their_contents AFTER UPDATE OF content_id ON artifacts
WHEN NEW.content_id <> OLD.content_id
BEGIN
    UPDATE artifact_contents SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.content_id
        AND NOT EXISTS (SELECT 1 FROM share_pictures WHERE account_id = OLD.account_id AND content_id = OLD.content_id);
END;

-- An account has at most 10,000 artifacts.
CREATE TRIGGER artifacts_bounded BEFORE INSERT ON artifacts
WHEN (SELECT count(*) FROM artifacts WHERE account_id = NEW.account_id) >= 10000
BEGIN
    SELECT RAISE(ABORT, 'artifacts_count');
END;

-- An artifact remains after its project. (ON DELETE SET NULL would also clear account_id.)
CREATE TRIGGER projects_leave_their_artifacts BEFORE DELETE ON projects
BEGIN
    UPDATE artifacts SET project_id = NULL WHERE account_id = OLD.account_id AND project_id = OLD.id;
END;

-- owner: svc/content/artifact_contents.py
-- A content in chunks of 256 KiB: a slow reader of 32 MiB has one of them in memory, and a writer does not block others.
CREATE TABLE artifact_chunks (
    account_id TEXT NOT NULL,
    content_id TEXT NOT NULL,
    number INTEGER NOT NULL CONSTRAINT chunk_number_range CHECK (number BETWEEN 0 AND 127),
    content BLOB NOT NULL CONSTRAINT chunk_length CHECK (length(content) BETWEEN 1 AND 262144),
    PRIMARY KEY (account_id, content_id, number),
    FOREIGN KEY (account_id, content_id) REFERENCES artifact_contents (account_id, id) ON DELETE CASCADE
) STRICT;

-- owner: svc/content/idempotency.py
-- Requests with an Idempotency-Key. One without a status is in progress, or was when the server ended; the next start deletes that.
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

-- owner: svc/content/idempotency.py
-- Kept answers, in chunks of 256 KiB.
CREATE TABLE idempotency_chunks (
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    number INTEGER NOT NULL CONSTRAINT kept_chunk_number_range CHECK (number BETWEEN 0 AND 31),
    content BLOB NOT NULL CONSTRAINT kept_chunk_length CHECK (length(content) BETWEEN 1 AND 262144),
    PRIMARY KEY (account_id, key_id, number),
    FOREIGN KEY (account_id, key_id) REFERENCES idempotency_keys (account_id, id) ON DELETE CASCADE
) STRICT;

-- owner: svc/agents/run_records.py
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    status TEXT NOT NULL DEFAULT 'running' CONSTRAINT status_known CHECK (status IN ('running', 'final', 'error', 'stopped')),
    goal TEXT NOT NULL CONSTRAINT goal_not_blank CHECK (trim(goal) <> ''),
    model TEXT NOT NULL,
    max_steps INTEGER NOT NULL CONSTRAINT max_steps_range CHECK (max_steps BETWEEN 1 AND 20),
    steps INTEGER NOT NULL DEFAULT 0 CONSTRAINT steps_range CHECK (steps BETWEEN 0 AND max_steps),
    output TEXT CONSTRAINT output_of_final CHECK ((output IS NOT NULL) = (status = 'final')),
    error TEXT CONSTRAINT error_of_error CHECK ((error IS NOT NULL) = (status = 'error')),
    reason TEXT CONSTRAINT reason_of_stopped CHECK ((reason IS NOT NULL) = (status = 'stopped')),
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0 CONSTRAINT cost_not_negative CHECK (cost_micros >= 0),
    project_id TEXT,
    created_at REAL NOT NULL,
    finished_at REAL CONSTRAINT finished_when_ended CHECK ((finished_at IS NULL) = (status = 'running')),
    events TEXT CONSTRAINT events_length CHECK (length(events) <= 1000000), -- lines of JSON, see update_run
    FOREIGN KEY (account_id, project_id) REFERENCES projects (account_id, id)
) STRICT;

CREATE INDEX runs_by_account ON runs (account_id); -- in order of insertion, as in lists
CREATE INDEX runs_by_project ON runs (account_id, project_id) WHERE project_id IS NOT NULL;
CREATE INDEX runs_by_age ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_open ON runs (status) WHERE status = 'running';

-- A run remains after its project.
CREATE TRIGGER projects_leave_their_runs BEFORE DELETE ON projects
BEGIN
    UPDATE runs SET project_id = NULL WHERE account_id = OLD.account_id AND project_id = OLD.id;
END;

-- An artifact remains after its run.
CREATE TRIGGER runs_leave_their_artifacts BEFORE DELETE ON runs
BEGIN
    UPDATE artifacts SET run_id = NULL WHERE account_id = OLD.account_id AND run_id = OLD.id;
END;

-- A run ends once.
CREATE TRIGGER runs_end_once BEFORE UPDATE OF status ON runs
WHEN OLD.status <> 'running'
BEGIN
    SELECT RAISE(ABORT, 'this run has ended');
END;

-- owner: svc/content/conversations.py
-- No cascade: an account may have too many conversations and messages for one transaction.
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- identifies its title in the word index; never reused
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    project_id TEXT,
    title TEXT CONSTRAINT title_form CHECK (trim(title) <> '' AND length(title) <= 200), -- NULL until the first message
    title_version INTEGER NOT NULL DEFAULT 0 CONSTRAINT title_version_range CHECK (title_version BETWEEN 0 AND 127),
    pinned INTEGER NOT NULL DEFAULT 0 CONSTRAINT pinned_bool CHECK (pinned IN (0, 1)),
    temperature REAL CONSTRAINT temperature_range CHECK (temperature BETWEEN 0 AND 2), -- NULL: the model's own
    max_output_tokens INTEGER CONSTRAINT max_output_tokens_range CHECK (max_output_tokens BETWEEN 1 AND 2147483647),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    -- whether one of its messages is in progress, updated by triggers of messages
    answering INTEGER NOT NULL DEFAULT 0 CONSTRAINT one_answer_at_a_time CHECK (answering IN (0, 1)),
    always_allow TEXT NOT NULL DEFAULT '[]' -- the tools that run there without a question, as JSON
        CONSTRAINT always_allow_form CHECK (always_allow LIKE '[%]' AND length(always_allow) <= 10000),
    archived INTEGER NOT NULL DEFAULT 0 CONSTRAINT archived_bool CHECK (archived IN (0, 1)), -- out of the list
    summary TEXT CONSTRAINT summary_form CHECK (trim(summary) <> '' AND length(summary) <= 20000), -- of what is no longer sent
    summary_up_to_id TEXT -- the id of the last message in it
        CONSTRAINT summary_has_end CHECK ((summary_up_to_id IS NULL) = (summary IS NULL)),
    UNIQUE (account_id, id),
    FOREIGN KEY (account_id, project_id) REFERENCES projects (account_id, id)
) STRICT;

CREATE INDEX conversations_by_project ON conversations (account_id, project_id, id);
CREATE INDEX conversations_by_number ON conversations (account_id, number);
CREATE INDEX conversations_by_age ON conversations (updated_at);
CREATE INDEX conversations_by_use ON conversations (account_id, archived, pinned, updated_at, number); -- pinned, most recently used first

-- owner: svc/content/conversations.py
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

-- A conversation remains after its project.
CREATE TRIGGER projects_leave_their_conversations BEFORE DELETE ON projects
BEGIN
    UPDATE conversations SET project_id = NULL WHERE account_id = OLD.account_id AND project_id = OLD.id;
END;

-- owner: svc/content/history.py
-- The messages of an account's sessions: in a conversation, or the goal and the output of an agent run.
CREATE TABLE messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- the order, and its number in the word index; never reused
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    conversation_id TEXT,
    run_id TEXT CONSTRAINT one_source CHECK ((run_id IS NULL) <> (conversation_id IS NULL)),
    role TEXT NOT NULL CONSTRAINT role_known CHECK (role IN ('system', 'user', 'assistant')),
    content TEXT NOT NULL CONSTRAINT content_length CHECK (length(content) <= 1000000),
    model TEXT, -- that generated the answer
    created_at REAL NOT NULL,
    branch INTEGER NOT NULL DEFAULT 0 CONSTRAINT message_branch_range CHECK (branch BETWEEN 0 AND 1000), -- of the conversation
    status TEXT NOT NULL DEFAULT 'complete' CONSTRAINT message_status_known CHECK (
        status IN ('complete', 'in_progress', 'stopped', 'interrupted', 'failed')
    ) CONSTRAINT status_of_answer CHECK (status = 'complete' OR (role = 'assistant' AND conversation_id IS NOT NULL)),
    error TEXT CONSTRAINT error_of_failed CHECK ((error IS NOT NULL) = (status = 'failed') AND length(error) <= 10000), -- JSON
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id)
) STRICT;

CREATE INDEX messages_by_conversation ON messages (account_id, conversation_id, number);
CREATE INDEX messages_by_run ON messages (account_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX messages_by_number ON messages (account_id, number);
CREATE INDEX messages_in_progress ON messages (status) WHERE status = 'in_progress';

CREATE TRIGGER messages_begin_to_answer AFTER INSERT ON messages
WHEN NEW.status = 'in_progress'
BEGIN
    UPDATE conversations SET answering = answering + 1 WHERE account_id = NEW.account_id AND id = NEW.conversation_id;
END;

CREATE TRIGGER messages_answer_again AFTER UPDATE OF status ON messages
WHEN OLD.status <> 'in_progress' AND NEW.status = 'in_progress'
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

-- An answer ends once, but for one that waits for a person.
CREATE TRIGGER answers_end_once BEFORE UPDATE OF status ON messages
WHEN OLD.status <> 'in_progress' AND NOT (NEW.status = 'in_progress' AND EXISTS (
    SELECT 1 FROM answers WHERE account_id = NEW.account_id AND message_id = NEW.id AND waiting IS NOT NULL))
BEGIN
    SELECT RAISE(ABORT, 'this answer has ended');
END;

-- owner: svc/content/branches.py
-- The branches of a conversation in which messages were replaced. Each one but 0 begins with a new version of a message.
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

-- The messages on the current branch of their conversation, and those of agent runs.
CREATE VIEW current_messages AS
SELECT * FROM messages WHERE NOT EXISTS (
    SELECT 1 FROM branches
    WHERE branches.account_id = messages.account_id AND branches.conversation_id = messages.conversation_id
        AND branches.branch = messages.branch AND shown_to < number);

-- owner: svc/content/remembered.py
-- Messages that recall leaves out, because their account has forgotten them.
CREATE TABLE forgotten (
    message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL,
    forgotten_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX forgotten_by_account ON forgotten (account_id, message_id);

-- The messages that recall may find, and those that were forgotten.
CREATE VIEW remembered_messages AS
SELECT *, 0 AS forgotten FROM current_messages AS own
WHERE role <> 'system' AND status <> 'in_progress' AND content <> ''
    AND NOT EXISTS (SELECT 1 FROM forgotten WHERE forgotten.account_id = own.account_id AND message_id = own.id);

CREATE VIEW forgotten_messages AS
SELECT messages.*, 1 AS forgotten FROM forgotten CROSS JOIN messages ON messages.id = message_id
WHERE messages.account_id = forgotten.account_id;

-- owner: svc/content/answers.py
-- Usage and cost of an answer in a conversation. Deleted with its message.
CREATE TABLE answers (
    message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL,
    input_tokens INTEGER NOT NULL CONSTRAINT answer_input_tokens_count CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT answer_output_tokens_count CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT answer_cost_amount CHECK (cost_micros >= 0),
    duration_ms INTEGER NOT NULL CONSTRAINT answer_duration CHECK (duration_ms >= 0),
    finish_reason TEXT, -- NULL if the answer was interrupted
    reasoning TEXT CONSTRAINT reasoning_length CHECK (length(reasoning) <= 200000),
    memory TEXT NOT NULL CONSTRAINT memory_form CHECK (memory LIKE '[%]'),
    cached_input_tokens INTEGER NOT NULL DEFAULT 0
        CONSTRAINT answer_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens),
    saved_micros INTEGER NOT NULL DEFAULT 0 -- by the prices of cached input
        CONSTRAINT answer_saved_amount CHECK (saved_micros >= 0),
    sealed_call_id TEXT, -- the id of its first tool call, if its reasoning is sealed
    sealed TEXT -- the seals of its reasoning, as JSON
        CONSTRAINT answer_sealed_form CHECK (sealed IS NULL OR (sealed LIKE '[%]' AND length(sealed) <= 1000000 AND sealed_call_id IS NOT NULL)),
    steps TEXT -- what tools did for it, as JSON
        CONSTRAINT answer_steps_form CHECK (steps LIKE '[%]'),
    sources TEXT -- what they found, as JSON
        CONSTRAINT answer_sources_form CHECK (sources LIKE '[%]'),
    waiting TEXT -- the calls that wait for a person, and the request that goes on, as JSON
        CONSTRAINT answer_waiting_form CHECK (waiting LIKE '{%}'),
    context_tokens INTEGER NOT NULL DEFAULT 0 -- of the prompt and text of its last call; 0: not counted
        CONSTRAINT answer_context_tokens_count CHECK (context_tokens >= 0),
    first_sent_message_id TEXT -- NULL: the first message
) STRICT;

CREATE INDEX answers_by_account ON answers (account_id, message_id);
CREATE INDEX answers_with_steps ON answers (account_id, message_id) WHERE steps IS NOT NULL;
CREATE INDEX answers_waiting ON answers (account_id, message_id) WHERE waiting IS NOT NULL;
CREATE INDEX answers_by_sealed_call ON answers (account_id, sealed_call_id) WHERE sealed_call_id IS NOT NULL;

-- owner: svc/content/imports.py
-- Imports of exports of other applications and of this service. Those of the last 30 days.
CREATE TABLE imports (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    status TEXT NOT NULL DEFAULT 'reading' CONSTRAINT import_status_known CHECK (status IN ('reading', 'done', 'failed', 'undone')),
    source TEXT CONSTRAINT import_source_known CHECK (source IN ('chatgpt', 'claude', 'open_webui', 'librechat', 'svc')), -- NULL: not known yet
    reason TEXT CONSTRAINT import_reason_length CHECK (length(reason) <= 1000), -- of a failure
    settings TEXT CONSTRAINT import_settings_form CHECK (settings LIKE '{%}' AND length(settings) <= 20000), -- before they were replaced
    imported INTEGER NOT NULL DEFAULT 0, -- conversations, as counted by a trigger
    skipped INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    UNIQUE (account_id, id),
    CONSTRAINT import_reason_of_failed CHECK (reason IS NULL OR status <> 'reading')
) STRICT;

CREATE UNIQUE INDEX imports_one_reading ON imports (account_id) WHERE status = 'reading';
CREATE INDEX imports_by_age ON imports (created_at);

-- owner: svc/content/imports.py
-- The report: each conversation of an import.
CREATE TABLE import_entries (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    import_id TEXT NOT NULL,
    title TEXT CONSTRAINT entry_title_length CHECK (length(title) <= 200),
    status TEXT NOT NULL CONSTRAINT entry_status_known CHECK (status IN ('imported', 'skipped', 'failed')),
    reason TEXT CONSTRAINT entry_reason_length CHECK (length(reason) <= 1000),
    FOREIGN KEY (account_id, import_id) REFERENCES imports (account_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX import_entries_by_import ON import_entries (account_id, import_id, number);

CREATE TRIGGER import_entries_bounded BEFORE INSERT ON import_entries
WHEN (SELECT imported + skipped + failed FROM imports WHERE account_id = NEW.account_id AND id = NEW.import_id) >= 100000
BEGIN
    SELECT RAISE(ABORT, 'import_entries_count');
END;

CREATE TRIGGER import_entries_are_counted AFTER INSERT ON import_entries
BEGIN
    UPDATE imports SET imported = imported + (NEW.status = 'imported'), skipped = skipped + (NEW.status = 'skipped'),
        failed = failed + (NEW.status = 'failed')
    WHERE account_id = NEW.account_id AND id = NEW.import_id;
END;

-- owner: svc/content/imports.py
-- What was imported, by its id in the export: it is not imported again, and it is deleted with its import.
CREATE TABLE imported_items (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    import_id TEXT NOT NULL,
    kind TEXT NOT NULL CONSTRAINT item_kind_known CHECK (kind IN ('project', 'artifact', 'project_file', 'conversation', 'message', 'prompt')),
    source TEXT NOT NULL CONSTRAINT item_source_known CHECK (source IN ('chatgpt', 'claude', 'open_webui', 'librechat', 'svc')),
    conversation_id TEXT NOT NULL, -- of a message, or the project of a project's file; '' for others
    source_id TEXT NOT NULL CONSTRAINT source_id_length CHECK (length(source_id) <= 200),
    item_id TEXT NOT NULL,
    UNIQUE (account_id, source, conversation_id, kind, source_id)
) STRICT;

CREATE INDEX imported_items_by_import ON imported_items (account_id, import_id, kind);
CREATE INDEX imported_items_by_item ON imported_items (account_id, item_id);

CREATE TRIGGER conversations_are_imported_no_more AFTER DELETE ON conversations
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

CREATE TRIGGER messages_are_imported_no_more AFTER DELETE ON messages
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

CREATE TRIGGER artifacts_are_imported_no_more AFTER DELETE ON artifacts
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

CREATE TRIGGER projects_are_imported_no_more AFTER DELETE ON projects
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

CREATE TRIGGER prompts_are_imported_no_more AFTER DELETE ON prompts
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

-- owner: svc/content/word_runs.py
-- The newest words, by place: "zebra" and "lion" as "\nzebra\nlion\n". Titles have = before place and words.
CREATE TABLE fresh_words (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    place TEXT NOT NULL, -- ten hexadecimal digits: number * 128 + chunk of a message, or + version of a title
    lines INTEGER NOT NULL CONSTRAINT fresh_lines_positive CHECK (lines > 0), -- in words
    words TEXT NOT NULL,
    PRIMARY KEY (account_id, place)
) STRICT, WITHOUT ROWID;

-- owner: svc/content/word_runs.py
-- Runs of lines "zebra 00000004d2". Those that have an `into_run` are being merged into it.
CREATE TABLE word_runs (
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    level INTEGER NOT NULL CONSTRAINT run_level_positive CHECK (level > 0),
    into_run INTEGER REFERENCES word_runs (id) CONSTRAINT into_later_run CHECK (into_run > id)
) STRICT;

CREATE INDEX word_runs_by_account ON word_runs (account_id, level);
CREATE INDEX word_runs_merged ON word_runs (into_run) WHERE into_run IS NOT NULL;
CREATE INDEX word_runs_merging ON word_runs (level, account_id) WHERE into_run IS NOT NULL;

-- owner: svc/content/word_runs.py
-- The lines of a run, sorted and compressed. An account has too many for one transaction, so they do not cascade.
CREATE TABLE word_blocks (
    run INTEGER NOT NULL REFERENCES word_runs (id),
    first TEXT NOT NULL, -- line
    lines BLOB NOT NULL,
    PRIMARY KEY (run, first)
) STRICT;

-- owner: svc/content/word_runs.py
-- Accounts whose runs hold lines of deleted texts. A purge that has begun rewrites all runs up to `last_run`.
CREATE TABLE word_purges (
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    due_at REAL NOT NULL,
    deleted_bytes INTEGER NOT NULL CONSTRAINT deleted_bytes_not_negative CHECK (deleted_bytes >= 0),
    last_run INTEGER
) STRICT;

CREATE INDEX word_purges_due ON word_purges (due_at);
CREATE INDEX word_purges_by_account ON word_purges (account_id);
CREATE UNIQUE INDEX word_purges_once ON word_purges (account_id) WHERE last_run IS NULL;

-- owner: svc/content/fulltext.py
-- Long messages of which only the first chunks are indexed. The writer indexes the rest when it has time.
CREATE TABLE unindexed (
    number INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
    next_chunk INTEGER NOT NULL CONSTRAINT next_chunk_range CHECK (next_chunk BETWEEN 0 AND 127)
) STRICT;

CREATE INDEX unindexed_by_chunk ON unindexed (next_chunk, number);

-- owner: svc/content/fulltext.py
-- Texts that an older release indexed with other rules for words. The writer reads them again, the newest first.
CREATE TABLE reindexing (
    texts TEXT PRIMARY KEY CONSTRAINT reindexing_known CHECK (texts IN ('messages', 'titles')),
    below INTEGER NOT NULL CONSTRAINT below_not_negative CHECK (below >= 0) -- the numbers that are left
) STRICT;

-- owner: svc/content/support.py
CREATE TABLE support_conversations (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    status TEXT NOT NULL DEFAULT 'active' CONSTRAINT support_status_known CHECK (status IN ('active', 'closed')),
    subject TEXT CONSTRAINT subject_form CHECK (trim(subject) <> '' AND length(subject) <= 200),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    closed_at REAL CONSTRAINT closed_at_when_closed CHECK ((closed_at IS NULL) = (status = 'active')),
    UNIQUE (account_id, id)
) STRICT;

-- One active support conversation.
CREATE UNIQUE INDEX support_one_active ON support_conversations (account_id) WHERE status = 'active';

CREATE TRIGGER support_closes_once BEFORE UPDATE OF status ON support_conversations
WHEN OLD.status = 'closed'
BEGIN
    SELECT RAISE(ABORT, 'this support conversation is closed');
END;

-- owner: svc/content/support.py
CREATE TABLE support_messages (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    support_id TEXT NOT NULL,
    role TEXT NOT NULL CONSTRAINT support_role_known CHECK (role IN ('user', 'operator')),
    content TEXT NOT NULL CONSTRAINT support_content_form CHECK (trim(content) <> '' AND length(content) <= 10000),
    created_at REAL NOT NULL,
    FOREIGN KEY (account_id, support_id) REFERENCES support_conversations (account_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX support_messages_by_conversation ON support_messages (account_id, support_id, number);

-- It is displayed completely, so its length is limited.
CREATE TRIGGER support_messages_bounded BEFORE INSERT ON support_messages
WHEN (SELECT count(*) FROM support_messages WHERE account_id = NEW.account_id AND support_id = NEW.support_id) >= 200
BEGIN
    SELECT RAISE(ABORT, 'support_messages_count');
END;

CREATE TRIGGER support_ends BEFORE INSERT ON support_messages
WHEN (SELECT status FROM support_conversations WHERE account_id = NEW.account_id AND id = NEW.support_id) = 'closed'
BEGIN
    SELECT RAISE(ABORT, 'support_closed');
END;

-- owner: svc/inference/providers.py
CREATE TABLE providers (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL CONSTRAINT provider_name_slug CHECK (length(name) BETWEEN 1 AND 63 AND name NOT GLOB '*[^a-z0-9_-]*'),
    base_url TEXT NOT NULL CONSTRAINT base_url_scheme CHECK (base_url GLOB 'http://?*' OR base_url GLOB 'https://?*'),
    sealed_key BLOB, -- encrypted, bound to account and provider; NULL: none
    api_key_hint TEXT CONSTRAINT hint_with_key CHECK ((api_key_hint IS NULL) = (sealed_key IS NULL)),
    models TEXT CONSTRAINT models_list CHECK (models GLOB '[[]*'), -- NULL: the list is requested from the provider
    created_at REAL NOT NULL,
    api TEXT NOT NULL DEFAULT 'chat' CONSTRAINT provider_api_known CHECK (api IN ('chat', 'responses', 'messages')),
    UNIQUE (account_id, name)
) STRICT;

-- The list of models sends a request to each of them.
CREATE TRIGGER providers_bounded BEFORE INSERT ON providers
WHEN (SELECT count(*) FROM providers WHERE account_id = NEW.account_id) >= 100
BEGIN
    SELECT RAISE(ABORT, 'providers_count');
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

-- owner: svc/inference/tool_servers/records.py
-- Users' own tool servers, with the tools that each listed the last time.
CREATE TABLE tool_servers (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL CONSTRAINT tool_server_name_slug CHECK (length(name) BETWEEN 1 AND 63 AND name NOT GLOB '*[^a-z0-9_-]*'),
    url TEXT NOT NULL CONSTRAINT tool_server_url_scheme CHECK (url GLOB 'http://?*' OR url GLOB 'https://?*'),
    sealed_key BLOB, -- encrypted, bound to account and server; NULL: none
    api_key_hint TEXT CONSTRAINT tool_server_hint_with_key CHECK ((api_key_hint IS NULL) = (sealed_key IS NULL)),
    tools TEXT NOT NULL DEFAULT '[]' CONSTRAINT tools_list CHECK (tools GLOB '[[]*' AND length(tools) <= 600000),
    accepted TEXT CONSTRAINT accepted_form CHECK (accepted LIKE '{%}'), -- digests of accepted tools by name; NULL: no list yet
    ask TEXT NOT NULL DEFAULT '{}' CONSTRAINT ask_form CHECK (ask LIKE '{%}'), -- whether a tool needs approval, by name
    failed INTEGER NOT NULL CONSTRAINT failed_bool CHECK (failed IN (0, 1)), -- the last time its list was asked for
    detail TEXT CONSTRAINT detail_length CHECK (length(detail) <= 1000), -- why it failed, or why tools are left out
    read_at REAL NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (account_id, name)
) STRICT;

CREATE INDEX tool_servers_by_reading ON tool_servers (read_at);

CREATE TRIGGER tool_servers_bounded BEFORE INSERT ON tool_servers
WHEN (SELECT count(*) FROM tool_servers WHERE account_id = NEW.account_id) >= 10
BEGIN
    SELECT RAISE(ABORT, 'tool_servers_count');
END;

-- owner: svc/inference/tool_servers/operators.py
-- The tool servers of the catalog, with the tools that each listed the last time.
CREATE TABLE operator_tool_servers (
    name TEXT PRIMARY KEY CONSTRAINT operator_server_name_slug CHECK (length(name) BETWEEN 1 AND 63 AND name NOT GLOB '*[^a-z0-9_-]*'),
    settings TEXT NOT NULL CONSTRAINT settings_form CHECK (settings LIKE '{%}'), -- of the catalog, without secrets
    tools TEXT NOT NULL DEFAULT '[]' CONSTRAINT operator_tools_list CHECK (tools GLOB '[[]*'),
    accepted TEXT CONSTRAINT operator_accepted_form CHECK (accepted LIKE '{%}'), -- as in tool_servers
    failed INTEGER NOT NULL DEFAULT 0 CONSTRAINT operator_failed_bool CHECK (failed IN (0, 1)),
    detail TEXT CONSTRAINT operator_detail_length CHECK (length(detail) <= 1000),
    read_at REAL -- NULL: it is read next
) STRICT, WITHOUT ROWID;

-- owner: svc/billing/tool_usage.py
-- Calls of tools by month. Those of users' own tool servers are one row.
CREATE TABLE tool_months (
    month TEXT NOT NULL CONSTRAINT tool_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'), -- in UTC
    tool TEXT NOT NULL CONSTRAINT tool_name_length CHECK (length(tool) <= 64),
    calls INTEGER NOT NULL CONSTRAINT tool_calls_positive CHECK (calls > 0),
    failures INTEGER NOT NULL CONSTRAINT tool_failures_range CHECK (failures BETWEEN 0 AND calls),
    cost_micros INTEGER NOT NULL CONSTRAINT tool_cost_not_negative CHECK (cost_micros >= 0),
    PRIMARY KEY (month, tool)
) STRICT, WITHOUT ROWID;

-- owner: svc/billing/wallet.py
-- Balances, equal to that of the newest ledger row, which the triggers below ensure. The held amount is the sum of the holds.
CREATE TABLE wallets (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    balance_micros INTEGER NOT NULL DEFAULT 0
        CONSTRAINT balance_in_bounds CHECK (balance_micros BETWEEN 0 AND 1000000000000000),
    monthly_limit_micros INTEGER CONSTRAINT account_limit_range CHECK (monthly_limit_micros BETWEEN 0 AND 1000000000000000), -- NULL: none
    month TEXT, -- the newest one with a call, such as 2026-11 (UTC), updated by a trigger of the ledger
    month_spent_micros INTEGER NOT NULL DEFAULT 0 -- the debits of that month's calls, likewise
        CONSTRAINT wallet_month_not_negative CHECK (month_spent_micros >= 0)
) STRICT, WITHOUT ROWID;

-- owner: svc/billing/wallet.py
-- Append-only and without gaps. The balance is always the sum of an account's rows.
CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT REFERENCES accounts (id), -- NULL after the account is deleted: the amounts remain, without a person
    kind TEXT NOT NULL CONSTRAINT kind_by_sign CHECK (kind = iif(amount_micros > 0, 'credit', 'debit')),
    amount_micros INTEGER NOT NULL CONSTRAINT amount_not_zero CHECK (amount_micros <> 0),
    balance_after_micros INTEGER NOT NULL
        CONSTRAINT balance_after_in_bounds CHECK (balance_after_micros BETWEEN 0 AND 1000000000000000),
    description TEXT NOT NULL,
    reference TEXT UNIQUE, -- what this row books, only once: a hold, a checkout, refund:PAYMENT:NUMBER, payment:EVENT, allowance:...
    model TEXT,
    input_tokens INTEGER CONSTRAINT input_tokens_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER CONSTRAINT output_tokens_not_negative CHECK (output_tokens >= 0),
    request_id TEXT,
    key_id TEXT,
    created_at REAL NOT NULL,
    cached_input_tokens INTEGER -- a part of input_tokens; NULL for a call of an earlier version
        CONSTRAINT cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND ifnull(input_tokens, -1)),
    -- of a call: the month of its hold, in UTC; NULL in calls of an earlier version, which belong to the month of created_at
    month TEXT CONSTRAINT ledger_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]')
) STRICT;

CREATE INDEX ledger_by_account ON ledger (account_id); -- and by seq, which is the rowid

-- owner: svc/billing/wallet.py
-- The maximum cost of each paid request in progress.
CREATE TABLE holds (
    id TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES wallets (account_id) ON DELETE CASCADE,
    amount_micros INTEGER NOT NULL CONSTRAINT hold_positive CHECK (amount_micros > 0),
    created_at REAL NOT NULL,
    key_id TEXT, -- the API key of the call; NULL: a session
    month TEXT NOT NULL CONSTRAINT hold_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'), -- in UTC
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

-- owner: svc/billing/usage.py
-- A row sums the calls with a cost and those without.
CREATE TABLE usage_days (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL CONSTRAINT day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'), -- in UTC
    model TEXT NOT NULL,
    key_id TEXT NOT NULL, -- the API key, also a deleted one; '' for a session
    group_name TEXT NOT NULL DEFAULT '' CONSTRAINT group_name_length CHECK (length(group_name) <= 63), -- at the time of the calls
    requests INTEGER NOT NULL CONSTRAINT requests_positive CHECK (requests > 0),
    input_tokens INTEGER NOT NULL CONSTRAINT input_tokens_not_negative CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CONSTRAINT output_tokens_not_negative CHECK (output_tokens >= 0),
    cost_micros INTEGER NOT NULL CONSTRAINT cost_not_negative CHECK (cost_micros >= 0),
    cached_input_tokens INTEGER NOT NULL DEFAULT 0 -- a part of input_tokens
        CONSTRAINT used_cached_within_input CHECK (cached_input_tokens BETWEEN 0 AND input_tokens),
    PRIMARY KEY (day, account_id, model, key_id, group_name) -- by day, so that a month of all accounts is read at once
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_days_by_account ON usage_days (account_id); -- and by day, which the primary key adds

-- owner: svc/billing/usage.py
-- The paid usage of deleted accounts, by their ids and without a person.
CREATE TABLE deleted_usage (
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

-- Free calls are not kept: users choose the names of their own models.
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

-- owner: svc/billing/usage.py
-- Cost of calls over their holds, which the operator pays. Without account ids, so the rows remain after accounts are deleted.
CREATE TABLE overruns (
    day TEXT NOT NULL CONSTRAINT overrun_day_form CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'), -- in UTC
    model TEXT NOT NULL,
    calls INTEGER NOT NULL CONSTRAINT overrun_calls_positive CHECK (calls > 0),
    micros INTEGER NOT NULL CONSTRAINT overrun_micros_positive CHECK (micros > 0),
    PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER accounts_have_a_wallet AFTER INSERT ON accounts
BEGIN
    INSERT INTO wallets (account_id) VALUES (NEW.id);
END;

-- INSERT OR REPLACE deletes without a DELETE trigger, so these tables have triggers against it.
CREATE TRIGGER wallets_begin_empty BEFORE INSERT ON wallets
WHEN NEW.balance_micros <> 0 OR NEW.month_spent_micros <> 0
    OR EXISTS (SELECT 1 FROM wallets WHERE account_id = NEW.account_id)
    OR EXISTS (SELECT 1 FROM ledger WHERE account_id = NEW.account_id)
    OR EXISTS (SELECT 1 FROM holds WHERE account_id = NEW.account_id)
BEGIN
    SELECT RAISE(ABORT, 'a wallet begins empty, once');
END;

CREATE TRIGGER wallets_follow_the_ledger BEFORE UPDATE ON wallets
BEGIN
    SELECT RAISE(ABORT, 'a wallet follows the ledger')
    WHERE NEW.account_id <> OLD.account_id OR NEW.balance_micros <> ifnull(
        (SELECT balance_after_micros FROM ledger WHERE account_id = NEW.account_id ORDER BY seq DESC LIMIT 1), 0);
    SELECT RAISE(ABORT, 'held_within_balance')
    WHERE NEW.balance_micros < (SELECT sum(amount_micros) FROM holds WHERE account_id = NEW.account_id);
END;

CREATE TRIGGER wallets_stay BEFORE DELETE ON wallets
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND deleting_at IS NULL)
BEGIN
    SELECT RAISE(ABORT, 'a wallet stays as long as its account');
END;

CREATE TRIGGER ledger_continues BEFORE INSERT ON ledger
BEGIN
    SELECT RAISE(ABORT, 'a ledger row is never replaced')
    WHERE NEW.seq IN (SELECT seq FROM ledger) OR NEW.id IN (SELECT id FROM ledger)
        OR NEW.reference IN (SELECT reference FROM ledger);
    SELECT RAISE(ABORT, 'a ledger row continues the balance of a wallet')
    WHERE NEW.balance_after_micros
        IS NOT (SELECT balance_micros FROM wallets WHERE account_id = NEW.account_id) + NEW.amount_micros;
END;

-- A credit of 5 USD makes the account pro, in the transaction that books it. A call belongs to the month of its hold: one of
-- an earlier month than the newest changes no sum.
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

CREATE TRIGGER ledger_counts_for_its_key AFTER INSERT ON ledger WHEN NEW.key_id IS NOT NULL
BEGIN
    UPDATE api_keys SET spent_micros = spent_micros - NEW.amount_micros,
        month_spent_micros = CASE WHEN NEW.month = month THEN month_spent_micros - NEW.amount_micros
            WHEN NEW.month > ifnull(month, '') THEN -NEW.amount_micros ELSE month_spent_micros END,
        month = iif(NEW.month > ifnull(month, ''), NEW.month, month)
    WHERE account_id = NEW.account_id AND id = NEW.key_id;
END;

-- The only change of a ledger row: deleting its account removes what identifies the person.
CREATE TRIGGER ledger_drops_the_person AFTER DELETE ON accounts
BEGIN
    UPDATE ledger SET account_id = NULL, description = '', request_id = NULL, key_id = NULL WHERE account_id = OLD.id;
END;

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

CREATE TRIGGER ledger_keeps_all BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

-- A hold fits into the balance, and with the other holds of its month into the limits of its account and its key. The clock may go
-- back, but a month with spending does not come again.
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

CREATE TRIGGER holds_stay_as_they_are BEFORE UPDATE ON holds
BEGIN
    SELECT RAISE(ABORT, 'a hold is settled or released, never changed');
END;

-- owner: svc/billing/payments.py
CREATE TABLE checkouts (
    id TEXT PRIMARY KEY,
    account_id TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    amount_micros INTEGER NOT NULL -- 5 to 10,000 USD in whole cents
        CONSTRAINT checkout_amount CHECK (amount_micros BETWEEN 5000000 AND 10000000000 AND amount_micros % 10000 = 0),
    state TEXT NOT NULL DEFAULT 'open' CONSTRAINT state_known CHECK (state IN ('open', 'paid', 'failed', 'expired')),
    session_id TEXT UNIQUE, -- the processor's id; NULL before its answer
    created_at REAL NOT NULL,
    paid_at REAL CONSTRAINT paid_at_when_paid CHECK ((paid_at IS NOT NULL) = (state = 'paid')),
    payment_intent TEXT -- the processor's id of the payment, which refunds and disputes refer to
) STRICT;

CREATE INDEX checkouts_by_account ON checkouts (account_id, id);
CREATE INDEX checkouts_by_payment ON checkouts (payment_intent) WHERE payment_intent IS NOT NULL;
CREATE INDEX checkouts_by_time ON checkouts (created_at);
CREATE INDEX checkouts_abandoned ON checkouts (created_at) WHERE state <> 'paid';

-- owner: svc/billing/payments.py
-- The money of every event of the processor, without personal data.
CREATE TABLE payment_events (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    session_id TEXT,
    checkout_id TEXT REFERENCES checkouts (id) ON DELETE CASCADE,
    credited INTEGER NOT NULL CONSTRAINT credited_bool CHECK (credited IN (0, 1)),
    reason TEXT CONSTRAINT reason_unless_credited CHECK ((reason IS NULL) = credited), -- why it was not credited
    received_at REAL NOT NULL,
    amount_micros INTEGER, -- the amount paid, refunded or disputed, in millionths of its currency
    currency TEXT,
    payment_intent TEXT, -- the processor's id of the payment
    returns INTEGER GENERATED ALWAYS AS (type IN ('charge.refunded', 'charge.dispute.created')) -- whether money was returned
) STRICT;

CREATE INDEX payment_events_by_checkout ON payment_events (checkout_id);
CREATE INDEX payment_events_by_payment ON payment_events (payment_intent) WHERE payment_intent IS NOT NULL;
CREATE UNIQUE INDEX payment_events_credit_once ON payment_events (checkout_id) WHERE credited;

CREATE TRIGGER checkouts_begin_open BEFORE INSERT ON checkouts
WHEN NEW.state <> 'open' OR NEW.account_id IS NULL OR EXISTS (SELECT 1 FROM checkouts WHERE id = NEW.id OR session_id = NEW.session_id)
BEGIN
    SELECT RAISE(ABORT, 'a checkout begins open, once');
END;

-- A paid checkout is credited, in the same transaction.
CREATE TRIGGER checkouts_keep_their_terms BEFORE UPDATE ON checkouts
WHEN (NEW.id, NEW.amount_micros, NEW.created_at) IS NOT (OLD.id, OLD.amount_micros, OLD.created_at)
    OR (NEW.account_id IS NOT OLD.account_id
        AND (NEW.account_id IS NOT NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND deleting_at IS NULL)))
    OR (NEW.session_id IS NOT OLD.session_id AND OLD.session_id IS NOT NULL)
    OR (NEW.payment_intent IS NOT OLD.payment_intent AND OLD.payment_intent IS NOT NULL)
    OR (OLD.state = 'paid' AND (NEW.state, NEW.paid_at) IS NOT (OLD.state, OLD.paid_at))
    OR (NEW.state = 'paid' AND OLD.state <> 'paid' AND NOT EXISTS (
        SELECT 1 FROM ledger
        WHERE reference = NEW.id AND account_id = NEW.account_id AND amount_micros = NEW.amount_micros))
BEGIN
    SELECT RAISE(ABORT, 'a checkout keeps its terms, and is paid when the ledger says so');
END;

-- Checkouts are deleted only if unpaid after 30 days, without an event except that their page expired.
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

-- For each payment: the amounts credited, returned by the processor, and booked as returned. A refund or dispute of an unknown
-- payment has a separate row.
CREATE VIEW refunds (payment_id, checkout_id, account_id, paid_micros, returned_micros, booked_micros) AS
SELECT id, id, account_id,
    (SELECT ifnull(sum(amount_micros), 0) FROM ledger WHERE reference IN (
        SELECT checkouts.id UNION ALL SELECT 'payment:' || id FROM payment_events WHERE checkout_id = checkouts.id)),
    (SELECT ifnull(sum(amount_micros), 0) FROM payment_events
        WHERE checkout_id = checkouts.id AND returns AND currency = 'usd'),
    (SELECT ifnull(-sum(amount_micros), 0) FROM ledger
        WHERE reference > 'refund:' || checkouts.id || ':' AND reference < 'refund:' || checkouts.id || ';')
FROM checkouts
UNION ALL
SELECT id, NULL, NULL, ifnull(amount_micros, 0), ifnull(amount_micros, 0),
    (SELECT ifnull(-sum(amount_micros), 0) FROM ledger
        WHERE reference > 'refund:' || payment_events.id || ':' AND reference < 'refund:' || payment_events.id || ';')
FROM payment_events
WHERE checkout_id IS NULL AND returns AND currency = 'usd';

-- Refunds are booked up to the amount that the processor has returned, and never over the amount paid. Before its first report
-- the operator can book one refund.
CREATE TRIGGER ledger_books_a_refund_once BEFORE INSERT ON ledger
WHEN NEW.model IS NULL AND NEW.reference GLOB 'refund:*'
BEGIN
    SELECT RAISE(ABORT, 'refund_not_due')
    WHERE NEW.amount_micros > 0 OR NEW.reference GLOB 'refund:*:*:*' OR NOT EXISTS (
        SELECT 1 FROM refunds
        WHERE payment_id = substr(NEW.reference, 8, instr(substr(NEW.reference, 8), ':') - 1)
            AND (account_id = NEW.account_id OR checkout_id IS NULL)
            AND booked_micros - NEW.amount_micros <= min(
                paid_micros, CASE WHEN returned_micros > 0 THEN returned_micros WHEN booked_micros > 0 THEN 0 ELSE paid_micros END));
END;

-- The operator credits a payment that could not be credited, only once.
CREATE TRIGGER ledger_credits_a_payment_once BEFORE INSERT ON ledger
WHEN NEW.model IS NULL AND NEW.reference GLOB 'payment:*'
BEGIN
    SELECT RAISE(ABORT, 'payment_not_credited')
    WHERE NEW.amount_micros < 0 OR NOT EXISTS (
        SELECT 1 FROM payment_events LEFT JOIN checkouts ON checkouts.id = checkout_id
        WHERE payment_events.id = substr(NEW.reference, 9) AND NOT credited AND type LIKE 'checkout.session.%'
            AND reason NOT IN ('unpaid', 'no payment', 'credited before') AND ifnull(account_id, NEW.account_id) = NEW.account_id);
END;

-- Allowances: allowance:ACCOUNT:MONTH, then :2 and :3 after a raise. Together they never exceed the allowance of the month.
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

-- owner: svc/quota.py
-- Bytes that each account stores: texts, names and files, and 256 for each row. Triggers count them; svc/quota.py has the limit.
CREATE TABLE stored (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    bytes INTEGER NOT NULL DEFAULT 0 CONSTRAINT stored_not_negative CHECK (bytes >= 0)
) STRICT;

-- owner: svc/secrets.py
-- The installation. Archives of `svc backup` and SVC_NEW_SECRETS name its id, which changes when a lost master key is replaced.
CREATE TABLE installation (
    one INTEGER PRIMARY KEY CONSTRAINT one_installation CHECK (one = 1),
    id TEXT NOT NULL CONSTRAINT installation_id_form CHECK (length(id) = 8 AND id NOT GLOB '*[^0-9a-f]*'),
    key_check BLOB CONSTRAINT key_check_length CHECK (length(key_check) = 32), -- derived from master.key; NULL before the first start
    identity_key BLOB CONSTRAINT identity_key_length CHECK (length(identity_key) = 32) -- of given_allowances; no rotation changes it
) STRICT;

INSERT INTO installation VALUES (1, lower(hex(randomblob(4))), NULL, randomblob(32));

-- owner: svc/quota.py
-- The storage limit of every account: the setting SVC_ACCOUNT_BYTES at the last start.
CREATE TABLE storage_limit (
    one INTEGER PRIMARY KEY CONSTRAINT one_limit CHECK (one = 1),
    bytes INTEGER NOT NULL CONSTRAINT limit_not_negative CHECK (bytes >= 0)
) STRICT;

INSERT INTO storage_limit VALUES (1, 1073741824);

-- owner: svc/quota.py
-- Storage reserved for calls in progress. Each check of the limit counts it, so that two calls cannot use the same bytes.
CREATE TABLE reserved_room (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL, -- the id of an agent run, or of the reservation
    bytes INTEGER NOT NULL CONSTRAINT reserved_bytes_not_negative CHECK (bytes >= 0),
    artifacts INTEGER NOT NULL CONSTRAINT reserved_artifacts_not_negative CHECK (artifacts >= 0),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER accounts_begin_to_store AFTER INSERT ON accounts
BEGIN
    INSERT INTO stored (account_id, bytes) VALUES (NEW.id, ifnull(length(CAST(NEW.instructions AS BLOB)), 0));
END;

CREATE TRIGGER accounts_are_stored_anew AFTER UPDATE OF instructions ON accounts
BEGIN
    UPDATE stored SET bytes = bytes + ifnull(length(CAST(NEW.instructions AS BLOB)), 0)
        - ifnull(length(CAST(OLD.instructions AS BLOB)), 0)
    WHERE account_id = NEW.id;
END;

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

CREATE TRIGGER prompts_are_stored AFTER INSERT ON prompts
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.text AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER prompts_are_stored_anew AFTER UPDATE OF name, text ON prompts
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.text AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.text AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER prompts_are_stored_no_more AFTER DELETE ON prompts
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.text AS BLOB)), 0))
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
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size + ifnull(length(CAST(NEW.prompt AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER artifacts_are_stored_anew AFTER UPDATE OF name, size, prompt ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + NEW.size + ifnull(length(CAST(NEW.prompt AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size + ifnull(length(CAST(OLD.prompt AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER artifacts_are_stored_no_more AFTER DELETE ON artifacts
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + OLD.size + ifnull(length(CAST(OLD.prompt AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

CREATE TRIGGER runs_are_stored AFTER INSERT ON runs
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0) + ifnull(length(CAST(NEW.events AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER runs_are_stored_anew AFTER UPDATE OF goal, output, error, events ON runs
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.goal AS BLOB)), 0) + ifnull(length(CAST(NEW.output AS BLOB)), 0) + ifnull(length(CAST(NEW.error AS BLOB)), 0) + ifnull(length(CAST(NEW.events AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0) + ifnull(length(CAST(OLD.events AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER runs_are_stored_no_more AFTER DELETE ON runs
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.goal AS BLOB)), 0) + ifnull(length(CAST(OLD.output AS BLOB)), 0) + ifnull(length(CAST(OLD.error AS BLOB)), 0) + ifnull(length(CAST(OLD.events AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

CREATE TRIGGER conversations_are_stored AFTER INSERT ON conversations
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + ifnull(length(CAST(NEW.summary AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER conversations_are_stored_anew AFTER UPDATE OF title, summary ON conversations
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + ifnull(length(CAST(NEW.summary AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + ifnull(length(CAST(OLD.summary AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER conversations_are_stored_no_more AFTER DELETE ON conversations
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + ifnull(length(CAST(OLD.summary AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

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

CREATE TRIGGER answers_are_stored AFTER INSERT ON answers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0) + ifnull(length(CAST(NEW.steps AS BLOB)), 0) + ifnull(length(CAST(NEW.sources AS BLOB)), 0) + ifnull(length(CAST(NEW.waiting AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER answers_are_stored_anew AFTER UPDATE OF reasoning, memory, sealed, steps, sources, waiting ON answers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0) + ifnull(length(CAST(NEW.steps AS BLOB)), 0) + ifnull(length(CAST(NEW.sources AS BLOB)), 0) + ifnull(length(CAST(NEW.waiting AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0) + ifnull(length(CAST(OLD.steps AS BLOB)), 0) + ifnull(length(CAST(OLD.sources AS BLOB)), 0) + ifnull(length(CAST(OLD.waiting AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER answers_are_stored_no_more AFTER DELETE ON answers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0) + ifnull(length(CAST(OLD.steps AS BLOB)), 0) + ifnull(length(CAST(OLD.sources AS BLOB)), 0) + ifnull(length(CAST(OLD.waiting AS BLOB)), 0))
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

CREATE TRIGGER tool_servers_are_stored AFTER INSERT ON tool_servers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.url AS BLOB)), 0) + ifnull(length(CAST(NEW.tools AS BLOB)), 0) + ifnull(length(CAST(NEW.accepted AS BLOB)), 0) + ifnull(length(CAST(NEW.ask AS BLOB)), 0) + ifnull(length(CAST(NEW.detail AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER tool_servers_are_stored_anew AFTER UPDATE OF name, url, tools, accepted, ask, detail ON tool_servers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.name AS BLOB)), 0) + ifnull(length(CAST(NEW.url AS BLOB)), 0) + ifnull(length(CAST(NEW.tools AS BLOB)), 0) + ifnull(length(CAST(NEW.accepted AS BLOB)), 0) + ifnull(length(CAST(NEW.ask AS BLOB)), 0) + ifnull(length(CAST(NEW.detail AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.url AS BLOB)), 0) + ifnull(length(CAST(OLD.tools AS BLOB)), 0) + ifnull(length(CAST(OLD.accepted AS BLOB)), 0) + ifnull(length(CAST(OLD.ask AS BLOB)), 0) + ifnull(length(CAST(OLD.detail AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER tool_servers_are_stored_no_more AFTER DELETE ON tool_servers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.name AS BLOB)), 0) + ifnull(length(CAST(OLD.url AS BLOB)), 0) + ifnull(length(CAST(OLD.tools AS BLOB)), 0) + ifnull(length(CAST(OLD.accepted AS BLOB)), 0) + ifnull(length(CAST(OLD.ask AS BLOB)), 0) + ifnull(length(CAST(OLD.detail AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

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

CREATE TRIGGER imports_are_stored AFTER INSERT ON imports
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.reason AS BLOB)), 0) + ifnull(length(CAST(NEW.settings AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER imports_are_stored_anew AFTER UPDATE OF reason, settings ON imports
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.reason AS BLOB)), 0) + ifnull(length(CAST(NEW.settings AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.reason AS BLOB)), 0) + ifnull(length(CAST(OLD.settings AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER imports_are_stored_no_more AFTER DELETE ON imports
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.reason AS BLOB)), 0) + ifnull(length(CAST(OLD.settings AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

CREATE TRIGGER import_entries_are_stored AFTER INSERT ON import_entries
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + ifnull(length(CAST(NEW.reason AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER import_entries_are_stored_anew AFTER UPDATE OF title, reason ON import_entries
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + ifnull(length(CAST(NEW.reason AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + ifnull(length(CAST(OLD.reason AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER import_entries_are_stored_no_more AFTER DELETE ON import_entries
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + ifnull(length(CAST(OLD.reason AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;

CREATE UNIQUE INDEX artifacts_by_id ON artifacts (account_id, id);

-- owner: svc/content/project_files.py
-- Texts of files, in passages. One that no file has is unused; it is deleted in slices.
CREATE TABLE file_texts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    unused INTEGER NOT NULL DEFAULT 0 CONSTRAINT text_unused_bool CHECK (unused IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_texts_unused ON file_texts (unused) WHERE unused;

-- owner: svc/content/project_files.py
-- The files of a project, which are artifacts. `text_id` is the text of a file that is ready.
CREATE TABLE project_files (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    artifact_id TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'reading' CONSTRAINT file_status_known CHECK (status IN ('reading', 'ready', 'failed')),
    error_code TEXT CONSTRAINT file_error_code_length CHECK (length(error_code) <= 64),
    error_message TEXT CONSTRAINT file_error_length CHECK (length(error_message) <= 1000),
    text_id TEXT,
    text_bytes INTEGER NOT NULL DEFAULT 0 CONSTRAINT text_bytes_range CHECK (text_bytes BETWEEN 0 AND 50000000),
    created_at REAL NOT NULL,
    UNIQUE (account_id, project_id, artifact_id),
    FOREIGN KEY (account_id, project_id) REFERENCES projects (account_id, id) ON DELETE CASCADE,
    FOREIGN KEY (account_id, artifact_id) REFERENCES artifacts (account_id, id) ON DELETE CASCADE,
    FOREIGN KEY (account_id, text_id) REFERENCES file_texts (account_id, id),
    CONSTRAINT text_of_ready CHECK ((text_id IS NOT NULL) = (status = 'ready')),
    CONSTRAINT error_of_failed CHECK ((error_code IS NOT NULL AND error_message IS NOT NULL) = (status = 'failed'))
) STRICT;

CREATE INDEX project_files_by_artifact ON project_files (account_id, artifact_id);
CREATE INDEX project_files_by_text ON project_files (account_id, text_id);
CREATE INDEX project_files_reading ON project_files (number) WHERE status = 'reading';

CREATE TRIGGER project_files_bounded BEFORE INSERT ON project_files
WHEN (SELECT count(*) FROM project_files WHERE account_id = NEW.account_id AND project_id = NEW.project_id) >= 200
BEGIN
    SELECT RAISE(ABORT, 'project_files_count');
END;

CREATE TRIGGER project_files_leave_their_texts AFTER DELETE ON project_files
BEGIN
    UPDATE file_texts SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.text_id;
END;

CREATE TRIGGER project_files_replace_their_texts AFTER UPDATE OF text_id ON project_files
WHEN OLD.text_id IS NOT NEW.text_id
BEGIN
    UPDATE file_texts SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.text_id;
END;

-- A replaced file is read again.
CREATE TRIGGER artifacts_are_read_again AFTER UPDATE OF content_id ON artifacts
WHEN NEW.content_id <> OLD.content_id
BEGIN
    UPDATE project_files SET status = 'reading', error_code = NULL, error_message = NULL, text_id = NULL, text_bytes = 0
    WHERE account_id = OLD.account_id AND artifact_id = OLD.id;
END;

-- owner: svc/content/project_files.py
-- Passages of texts, in order. Their words are in the index (word_runs.py), so a number is never used again.
CREATE TABLE file_passages (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL,
    text_id TEXT NOT NULL,
    mark TEXT NOT NULL CONSTRAINT mark_form CHECK (mark GLOB '+*+'), -- before its words in the index: of its project
    page INTEGER CONSTRAINT page_positive CHECK (page > 0),
    from_line INTEGER NOT NULL CONSTRAINT from_line_positive CHECK (from_line > 0),
    to_line INTEGER NOT NULL CONSTRAINT to_line_range CHECK (to_line >= from_line),
    text TEXT NOT NULL CONSTRAINT passage_length CHECK (length(text) <= 4000),
    FOREIGN KEY (account_id, text_id) REFERENCES file_texts (account_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX file_passages_by_text ON file_passages (account_id, text_id, number);

CREATE TRIGGER project_files_are_stored AFTER INSERT ON project_files
BEGIN
    UPDATE stored SET bytes = bytes + 256 + NEW.text_bytes
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER project_files_are_stored_anew AFTER UPDATE OF text_bytes ON project_files
BEGIN
    UPDATE stored SET bytes = bytes + NEW.text_bytes - OLD.text_bytes
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER project_files_are_stored_no_more AFTER DELETE ON project_files
BEGIN
    UPDATE stored SET bytes = bytes - (256 + OLD.text_bytes)
    WHERE account_id = OLD.account_id;
END;

-- owner: svc/content/shares.py
-- Frozen copies of conversations. Anybody who has the link reads one; only the hash of its token is stored.
CREATE TABLE shares (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE CONSTRAINT share_token_sha256 CHECK (length(token_hash) = 32),
    title TEXT CONSTRAINT share_title_length CHECK (length(title) <= 200),
    messages TEXT NOT NULL CONSTRAINT share_length CHECK (length(messages) <= 4000000), -- as JSON
    created_at REAL NOT NULL,
    expires_at REAL, -- NULL: never
    UNIQUE (account_id, id),
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX shares_by_account ON shares (account_id, number);
CREATE INDEX shares_by_conversation ON shares (account_id, conversation_id);
CREATE INDEX shares_by_expiry ON shares (expires_at) WHERE expires_at IS NOT NULL;

CREATE TRIGGER shares_bounded BEFORE INSERT ON shares
WHEN (SELECT count(*) FROM shares WHERE account_id = NEW.account_id) >= 1000
BEGIN
    SELECT RAISE(ABORT, 'shares_count');
END;

-- owner: svc/content/shares.py
-- The pictures of a share's answers. Their contents stay when the artifacts change or go.
CREATE TABLE share_pictures (
    account_id TEXT NOT NULL,
    share_id TEXT NOT NULL,
    artifact_id TEXT NOT NULL, -- as the messages name it
    content_id TEXT NOT NULL,
    content_type TEXT NOT NULL CONSTRAINT share_picture_type CHECK (content_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')),
    size INTEGER NOT NULL CONSTRAINT share_picture_size CHECK (size BETWEEN 0 AND 33554432), -- bytes
    PRIMARY KEY (account_id, share_id, artifact_id),
    FOREIGN KEY (account_id, share_id) REFERENCES shares (account_id, id) ON DELETE CASCADE,
    FOREIGN KEY (account_id, content_id) REFERENCES artifact_contents (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX share_pictures_by_content ON share_pictures (account_id, content_id);

CREATE TRIGGER share_pictures_leave_their_contents AFTER DELETE ON share_pictures
BEGIN
    UPDATE artifact_contents SET unused = 1 WHERE account_id = OLD.account_id AND id = OLD.content_id
        AND NOT EXISTS (SELECT 1 FROM artifacts WHERE account_id = OLD.account_id AND content_id = OLD.content_id)
        AND NOT EXISTS (SELECT 1 FROM share_pictures WHERE account_id = OLD.account_id AND content_id = OLD.content_id);
END;

CREATE TRIGGER shares_are_stored AFTER INSERT ON shares
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + length(CAST(NEW.messages AS BLOB))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER shares_are_stored_anew AFTER UPDATE OF title, messages ON shares
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.title AS BLOB)), 0) + length(CAST(NEW.messages AS BLOB)))
        - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + length(CAST(OLD.messages AS BLOB)))
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER shares_are_stored_no_more AFTER DELETE ON shares
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.title AS BLOB)), 0) + length(CAST(OLD.messages AS BLOB)))
    WHERE account_id = OLD.account_id;
END;

CREATE TRIGGER share_pictures_are_stored AFTER INSERT ON share_pictures
BEGIN
    UPDATE stored SET bytes = bytes + 256 + NEW.size
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER share_pictures_are_stored_anew AFTER UPDATE OF size ON share_pictures
BEGIN
    UPDATE stored SET bytes = bytes + NEW.size - OLD.size
    WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER share_pictures_are_stored_no_more AFTER DELETE ON share_pictures
BEGIN
    UPDATE stored SET bytes = bytes - (256 + OLD.size)
    WHERE account_id = OLD.account_id;
END;
