-- From version 2 to 3.

-- A wallet and its holds are found in one step, and a hold is a row in one place: each paid call writes fewer pages.
CREATE TABLE old_wallets AS SELECT * FROM wallets;
CREATE TABLE old_holds AS SELECT * FROM holds;
DROP TABLE holds;
DROP TABLE wallets;
CREATE TABLE wallets (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    balance_micros INTEGER NOT NULL DEFAULT 0
        CONSTRAINT balance_in_bounds CHECK (balance_micros BETWEEN 0 AND 1000000000000000),
    held_micros INTEGER NOT NULL DEFAULT 0 CONSTRAINT held_not_negative CHECK (held_micros >= 0),
    CONSTRAINT held_within_balance CHECK (held_micros <= balance_micros)
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
    id TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES wallets (account_id) ON DELETE CASCADE,
    amount_micros INTEGER NOT NULL CONSTRAINT hold_positive CHECK (amount_micros > 0),
    created_at REAL NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO wallets (account_id, balance_micros, held_micros) SELECT account_id, balance_micros, held_micros FROM old_wallets;
INSERT INTO holds (id, account_id, amount_micros, created_at) SELECT id, account_id, amount_micros, created_at FROM old_holds;
DROP TABLE old_wallets;
DROP TABLE old_holds;
DROP INDEX ledger_by_account;
CREATE INDEX ledger_by_account ON ledger (account_id);

CREATE TRIGGER wallets_begin_empty BEFORE INSERT ON wallets
WHEN NEW.balance_micros <> 0 OR NEW.held_micros <> 0
    OR EXISTS (SELECT 1 FROM wallets WHERE account_id = NEW.account_id)
    OR EXISTS (SELECT 1 FROM ledger WHERE account_id = NEW.account_id)
BEGIN
    SELECT RAISE(ABORT, 'a wallet begins empty, once');
END;

CREATE TRIGGER wallets_follow_the_ledger BEFORE UPDATE ON wallets
WHEN NEW.account_id <> OLD.account_id
    OR (NEW.balance_micros <> OLD.balance_micros AND NEW.balance_micros <> ifnull(
        (SELECT balance_after_micros FROM ledger WHERE account_id = NEW.account_id ORDER BY seq DESC LIMIT 1), 0))
    OR (NEW.held_micros <> OLD.held_micros
        AND NEW.held_micros <> (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = NEW.account_id))
BEGIN
    SELECT RAISE(ABORT, 'a wallet follows the ledger and the holds');
END;

CREATE TRIGGER holds_count AFTER INSERT ON holds
BEGIN
    UPDATE wallets SET held_micros = held_micros + NEW.amount_micros WHERE account_id = NEW.account_id;
END;

CREATE TRIGGER holds_end AFTER DELETE ON holds
BEGIN
    UPDATE wallets SET held_micros = held_micros - OLD.amount_micros WHERE account_id = OLD.account_id;
END;

CREATE TRIGGER holds_stay_as_they_are BEFORE UPDATE ON holds
BEGIN
    SELECT RAISE(ABORT, 'a hold is settled or released, never changed');
END;

CREATE TRIGGER wallets_stay BEFORE DELETE ON wallets
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND email <> 'deleted')
BEGIN
    SELECT RAISE(ABORT, 'a wallet stays as long as its account');
END;
