-- From version 1 to 2.

-- The list of conversations begins with the last used.
CREATE INDEX conversations_by_use ON conversations (account_id, updated_at, number);
