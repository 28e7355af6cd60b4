-- The whole schema, version 1. STRICT tables; every rule that the database can hold stands here first (architecture.md).
-- Times are Unix seconds (REAL), money is integer micros of a US dollar.

-- owner: svc/accounts.py
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL CONSTRAINT email_length CHECK (length(email) BETWEEN 3 AND 254),
    email_key TEXT NOT NULL UNIQUE, -- the e-mail in one case: one account per e-mail
    name TEXT CONSTRAINT name_length CHECK (length(name) <= 200),
    password_hash TEXT, -- NULL: this account signs in elsewhere
    tier TEXT NOT NULL DEFAULT 'free' CONSTRAINT tier_known CHECK (tier IN ('free', 'pro')),
    default_model TEXT CONSTRAINT default_model_length CHECK (length(default_model) <= 300),
    memory_enabled INTEGER NOT NULL DEFAULT 1 CONSTRAINT memory_enabled_bool CHECK (memory_enabled IN (0, 1)),
    created_at REAL NOT NULL
) STRICT;

-- A pro account stays pro (specification 3.3).
CREATE TRIGGER accounts_stay_pro BEFORE UPDATE OF tier ON accounts
WHEN OLD.tier = 'pro' AND NEW.tier <> 'pro'
BEGIN
    SELECT RAISE(ABORT, 'a pro account stays pro');
END;

-- owner: svc/accounts.py
CREATE TABLE password_resets (
    token_hash BLOB PRIMARY KEY CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    account_id TEXT NOT NULL UNIQUE REFERENCES accounts (id) ON DELETE CASCADE, -- UNIQUE: a newer link voids the older one
    by_mail INTEGER NOT NULL CONSTRAINT by_mail_bool CHECK (by_mail IN (0, 1)),
    expires_at REAL NOT NULL
) STRICT;

-- owner: svc/tokens.py
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    token_hash BLOB NOT NULL UNIQUE CONSTRAINT token_hash_sha256 CHECK (length(token_hash) = 32),
    key_prefix TEXT NOT NULL CONSTRAINT key_prefix_form CHECK (length(key_prefix) = 10 AND key_prefix GLOB 'svc-v1-*'),
    name TEXT NOT NULL CONSTRAINT name_not_blank CHECK (trim(name) <> ''),
    created_at REAL NOT NULL,
    last_used_at REAL
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, id);
