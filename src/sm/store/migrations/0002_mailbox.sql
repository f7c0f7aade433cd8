-- The order of all messages; what is queued later has a higher number.
ALTER TABLE messages ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET number = rowid;

-- As the line above the message names its sender; empty for words of sm itself.
ALTER TABLE messages ADD COLUMN frame TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN mode TEXT NOT NULL DEFAULT 'sequential';
ALTER TABLE messages ADD COLUMN command INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN expires REAL;
ALTER TABLE messages ADD COLUMN notify_on_stop INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN wait REAL;

-- How it reached its target, when it left, and when the client showed it.
ALTER TABLE messages ADD COLUMN channel TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN delivered REAL;
ALTER TABLE messages ADD COLUMN confirmed REAL;

CREATE INDEX messages_waiting ON messages (target, mode, number) WHERE state = 'queued';
CREATE INDEX messages_expiring ON messages (expires) WHERE state = 'queued' AND expires IS NOT NULL;
CREATE INDEX messages_target ON messages (target, number);
