-- From version 3 to 4.

-- What is held of a wallet is the sum of its holds, no column beside it: each paid call changes a wallet once, not three times.
DROP TRIGGER holds_count;
DROP TRIGGER holds_end;
CREATE TABLE old_wallets AS SELECT account_id, balance_micros FROM wallets;
DROP TABLE wallets;
CREATE TABLE wallets (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    balance_micros INTEGER NOT NULL DEFAULT 0
        CONSTRAINT balance_in_bounds CHECK (balance_micros BETWEEN 0 AND 1000000000000000)
) STRICT, WITHOUT ROWID;
INSERT INTO wallets (account_id, balance_micros) SELECT account_id, balance_micros FROM old_wallets;
DROP TABLE old_wallets;

CREATE TRIGGER wallets_begin_empty BEFORE INSERT ON wallets
WHEN NEW.balance_micros <> 0
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
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id AND email <> 'deleted')
BEGIN
    SELECT RAISE(ABORT, 'a wallet stays as long as its account');
END;

CREATE TRIGGER holds_fit_the_balance BEFORE INSERT ON holds
BEGIN
    SELECT RAISE(ABORT, 'a hold is never replaced')
    WHERE EXISTS (SELECT 1 FROM holds WHERE account_id = NEW.account_id AND id = NEW.id);
    SELECT RAISE(ABORT, 'held_within_balance')
    WHERE (SELECT balance_micros FROM wallets WHERE account_id = NEW.account_id)
        < NEW.amount_micros + (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = NEW.account_id);
END;

-- What a ledger row must be is found by fewer steps.
DROP TRIGGER ledger_continues;
CREATE TRIGGER ledger_continues BEFORE INSERT ON ledger
BEGIN
    SELECT RAISE(ABORT, 'a ledger row is never replaced')
    WHERE NEW.seq IN (SELECT seq FROM ledger) OR NEW.id IN (SELECT id FROM ledger)
        OR NEW.reference IN (SELECT reference FROM ledger);
    SELECT RAISE(ABORT, 'a ledger row continues the balance of a wallet')
    WHERE NEW.balance_after_micros
        IS NOT (SELECT balance_micros FROM wallets WHERE account_id = NEW.account_id) + NEW.amount_micros;
END;

DROP TRIGGER ledger_moves_the_balance;
CREATE TRIGGER ledger_moves_the_balance AFTER INSERT ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger has no gaps') WHERE NEW.seq <> 1 AND NEW.seq - 1 NOT IN (SELECT seq FROM ledger);
    UPDATE wallets SET balance_micros = NEW.balance_after_micros WHERE account_id = NEW.account_id;
    UPDATE accounts SET tier = 'pro' WHERE id = NEW.account_id AND tier = 'free' AND NEW.amount_micros >= 5000000;
END;
