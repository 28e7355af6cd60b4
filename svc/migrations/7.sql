-- The format of a user's own model server.
ALTER TABLE providers ADD COLUMN api TEXT NOT NULL DEFAULT 'chat'
    CONSTRAINT provider_api_known CHECK (api IN ('chat', 'responses', 'messages'));

-- Sealed reasoning of answers with tool calls.
ALTER TABLE answers ADD COLUMN sealed_call_id TEXT;
ALTER TABLE answers ADD COLUMN sealed TEXT
    CONSTRAINT answer_sealed_form CHECK (sealed IS NULL OR (sealed LIKE '[%]' AND length(sealed) <= 1000000 AND sealed_call_id IS NOT NULL));
CREATE INDEX answers_by_sealed_call ON answers (account_id, sealed_call_id) WHERE sealed_call_id IS NOT NULL;
DROP TRIGGER answers_are_stored;
CREATE TRIGGER answers_are_stored AFTER INSERT ON answers
BEGIN
    UPDATE stored SET bytes = bytes + 256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0)
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER answers_are_stored_anew;
CREATE TRIGGER answers_are_stored_anew AFTER UPDATE OF reasoning, memory, sealed ON answers
BEGIN
    UPDATE stored SET bytes = bytes + (256 + ifnull(length(CAST(NEW.reasoning AS BLOB)), 0) + length(CAST(NEW.memory AS BLOB)) + ifnull(length(CAST(NEW.sealed AS BLOB)), 0))
        - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0))
    WHERE account_id = NEW.account_id;
END;
DROP TRIGGER answers_are_stored_no_more;
CREATE TRIGGER answers_are_stored_no_more AFTER DELETE ON answers
BEGIN
    UPDATE stored SET bytes = bytes - (256 + ifnull(length(CAST(OLD.reasoning AS BLOB)), 0) + length(CAST(OLD.memory AS BLOB)) + ifnull(length(CAST(OLD.sealed AS BLOB)), 0))
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
