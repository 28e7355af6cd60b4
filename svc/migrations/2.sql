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
