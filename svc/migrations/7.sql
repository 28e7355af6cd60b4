-- The format of a user's own model server.
ALTER TABLE providers ADD COLUMN api TEXT NOT NULL DEFAULT 'chat'
    CONSTRAINT provider_api_known CHECK (api IN ('chat', 'responses', 'messages'));

-- Sealed reasoning of answers with tool calls.
ALTER TABLE answers ADD COLUMN sealed_call_id TEXT;
ALTER TABLE answers ADD COLUMN sealed TEXT
    CONSTRAINT answer_sealed_form CHECK (sealed IS NULL OR (sealed LIKE '[%]' AND length(sealed) <= 1000000 AND sealed_call_id IS NOT NULL));
CREATE INDEX answers_by_sealed_call ON answers (account_id, sealed_call_id) WHERE sealed_call_id IS NOT NULL;
-- Answers with tools, and calls that wait for a person.
ALTER TABLE answers ADD COLUMN steps TEXT CONSTRAINT answer_steps_form CHECK (steps LIKE '[%]');
ALTER TABLE answers ADD COLUMN sources TEXT CONSTRAINT answer_sources_form CHECK (sources LIKE '[%]');
ALTER TABLE answers ADD COLUMN waiting TEXT CONSTRAINT answer_waiting_form CHECK (waiting LIKE '{%}');
CREATE INDEX answers_with_steps ON answers (account_id, message_id) WHERE steps IS NOT NULL;
CREATE INDEX answers_waiting ON answers (account_id, message_id) WHERE waiting IS NOT NULL;
ALTER TABLE conversations ADD COLUMN always_allow TEXT NOT NULL DEFAULT '[]'
    CONSTRAINT always_allow_form CHECK (always_allow LIKE '[%]' AND length(always_allow) <= 10000);
DROP TRIGGER answers_end_once;
CREATE TRIGGER answers_end_once BEFORE UPDATE OF status ON messages
WHEN OLD.status <> 'in_progress' AND NOT (NEW.status = 'in_progress' AND EXISTS (
    SELECT 1 FROM answers WHERE account_id = NEW.account_id AND message_id = NEW.id AND waiting IS NOT NULL))
BEGIN
    SELECT RAISE(ABORT, 'this answer has ended');
END;
CREATE TRIGGER messages_answer_again AFTER UPDATE OF status ON messages
WHEN OLD.status <> 'in_progress' AND NEW.status = 'in_progress'
BEGIN
    UPDATE conversations SET answering = answering + 1 WHERE account_id = NEW.account_id AND id = NEW.conversation_id;
END;
DROP TRIGGER answers_are_stored;
CREATE TRIGGER answers_are_stored AFTER INSERT ON answers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0) + ifnull(length(CAST(NEW.steps AS BLOB)), 0) + ifnull(length(CAST(NEW.sources AS BLOB)), 0) + ifnull(length(CAST(NEW.waiting AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER answers_are_stored_anew;
CREATE TRIGGER answers_are_stored_anew AFTER UPDATE OF reasoning, memory, sealed, steps, sources, waiting ON answers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0) + ifnull(length(CAST(NEW.steps AS BLOB)), 0) + ifnull(length(CAST(NEW.sources AS BLOB)), 0) + ifnull(length(CAST(NEW.waiting AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0) + ifnull(length(CAST(OLD.steps AS BLOB)), 0) + ifnull(length(CAST(OLD.sources AS BLOB)), 0) + ifnull(length(CAST(OLD.waiting AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER answers_are_stored_no_more;
CREATE TRIGGER answers_are_stored_no_more AFTER DELETE ON answers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0) + ifnull(length(CAST(OLD.steps AS BLOB)), 0) + ifnull(length(CAST(OLD.sources AS BLOB)), 0) + ifnull(length(CAST(OLD.waiting AS BLOB)), 0))
    WHERE account_id = OLD.account_id;
END;
CREATE INDEX api_keys_limited ON api_keys (account_id) WHERE monthly_limit_micros IS NOT NULL;

-- Words of Arabic, Hindi and other scripts with marks are cut in another way.
CREATE TABLE reindexing (
    texts TEXT PRIMARY KEY CONSTRAINT reindexing_known CHECK (texts IN ('messages', 'titles')),
    below INTEGER NOT NULL CONSTRAINT below_not_negative CHECK (below >= 0) -- the numbers that are left
) STRICT;
INSERT INTO reindexing SELECT 'messages', ifnull(max(number), 0) + 1 FROM messages;
INSERT INTO reindexing SELECT 'titles', ifnull(max(number), 0) + 1 FROM conversations;

-- Imports.
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

-- Calls of tools by month. Those of users' own tool servers are one row.
CREATE TABLE tool_months (
    month TEXT NOT NULL CONSTRAINT tool_month_form CHECK (month GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'), -- in UTC
    tool TEXT NOT NULL CONSTRAINT tool_name_length CHECK (length(tool) <= 64),
    calls INTEGER NOT NULL CONSTRAINT tool_calls_positive CHECK (calls > 0),
    failures INTEGER NOT NULL CONSTRAINT tool_failures_range CHECK (failures BETWEEN 0 AND calls),
    cost_micros INTEGER NOT NULL CONSTRAINT tool_cost_not_negative CHECK (cost_micros >= 0),
    PRIMARY KEY (month, tool)
) STRICT, WITHOUT ROWID;

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

-- Files of projects.
CREATE UNIQUE INDEX artifacts_by_id ON artifacts (account_id, id);

-- Texts of files, in passages. One that no file has is unused; it is deleted in slices.
CREATE TABLE file_texts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    unused INTEGER NOT NULL DEFAULT 0 CONSTRAINT text_unused_bool CHECK (unused IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_texts_unused ON file_texts (unused) WHERE unused;

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

-- Which models make titles of new conversations.
ALTER TABLE accounts ADD COLUMN generate_titles TEXT NOT NULL DEFAULT 'free'
    CONSTRAINT generate_titles_known CHECK (generate_titles IN ('always', 'free', 'never'));

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

DROP TRIGGER artifacts_take_their_contents_along;
DROP TRIGGER artifacts_leave_their_contents;

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

-- Saved prompts.
CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL CONSTRAINT prompt_name_form CHECK (trim(name) <> '' AND length(name) <= 100),
    text TEXT NOT NULL CONSTRAINT prompt_text_form CHECK (trim(text) <> '' AND length(text) <= 8000),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (account_id, name)
) STRICT;

CREATE TRIGGER prompts_are_imported_no_more AFTER DELETE ON prompts
BEGIN
    DELETE FROM imported_items WHERE account_id = OLD.account_id AND item_id = OLD.id;
END;

-- After the insert, so that a name that exists is the error of a full account, too.
CREATE TRIGGER prompts_bounded AFTER INSERT ON prompts
WHEN (SELECT count(*) FROM prompts WHERE account_id = NEW.account_id) > 500
BEGIN
    SELECT RAISE(ABORT, 'prompts_count');
END;

-- Prompts that administrators share with a group of the catalog, or with everyone.
CREATE TABLE shared_prompts (
    group_name TEXT NOT NULL CONSTRAINT shared_group_length CHECK (length(group_name) <= 63), -- '': everyone
    name TEXT NOT NULL CONSTRAINT shared_name_form CHECK (trim(name) <> '' AND length(name) <= 100),
    text TEXT NOT NULL CONSTRAINT shared_text_form CHECK (trim(text) <> '' AND length(text) <= 8000),
    PRIMARY KEY (group_name, name)
) STRICT, WITHOUT ROWID;

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

-- What the model had of a conversation.
ALTER TABLE answers ADD COLUMN context_tokens INTEGER NOT NULL DEFAULT 0 -- of the prompt and text of its last call; 0: not counted
    CONSTRAINT answer_context_tokens_count CHECK (context_tokens >= 0);
ALTER TABLE answers ADD COLUMN first_sent_message_id TEXT; -- NULL: the first message

-- Archived conversations.
ALTER TABLE conversations ADD COLUMN archived INTEGER NOT NULL DEFAULT 0 CONSTRAINT archived_bool CHECK (archived IN (0, 1));
DROP INDEX conversations_by_use;
CREATE INDEX conversations_by_use ON conversations (account_id, archived, pinned, updated_at, number);

-- The language of pages and mails.
ALTER TABLE accounts ADD COLUMN language TEXT CONSTRAINT language_form CHECK (language GLOB '[a-z][a-z]');

-- Summaries of the messages that are no longer sent.
ALTER TABLE conversations ADD COLUMN summary TEXT
    CONSTRAINT summary_form CHECK (trim(summary) <> '' AND length(summary) <= 20000);
ALTER TABLE conversations ADD COLUMN summary_up_to_id TEXT -- the id of the last message in it
    CONSTRAINT summary_has_end CHECK ((summary_up_to_id IS NULL) = (summary IS NULL));

DROP TRIGGER conversations_are_stored;
DROP TRIGGER conversations_are_stored_anew;
DROP TRIGGER conversations_are_stored_no_more;

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
