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
