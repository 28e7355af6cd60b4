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
    replaces INTEGER CONSTRAINT replaces_in_parent CHECK ((replaces IS NULL) = (parent IS NULL)), -- the first version's number
    first INTEGER, -- the numbers of its messages; NULL until it has one
    last INTEGER CONSTRAINT last_after_first CHECK (last >= first),
    shown_to INTEGER NOT NULL CONSTRAINT shown_to_range CHECK (shown_to >= 0), -- the last number that is shown; 0 if none
    PRIMARY KEY (account_id, conversation_id, branch),
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TRIGGER messages_extend_their_branch AFTER INSERT ON messages WHEN NEW.conversation_id IS NOT NULL
BEGIN
    UPDATE branches SET first = ifnull(first, NEW.number), last = NEW.number
    WHERE account_id = NEW.account_id AND conversation_id = NEW.conversation_id AND branch = NEW.branch;
END;

CREATE VIEW current_messages AS
SELECT * FROM messages WHERE NOT EXISTS (
    SELECT 1 FROM branches
    WHERE branches.account_id = messages.account_id AND branches.conversation_id = messages.conversation_id
        AND branches.branch = messages.branch AND shown_to < number);
