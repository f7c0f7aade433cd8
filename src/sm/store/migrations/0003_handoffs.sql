-- Who has a handoff, and from when its age counts.
ALTER TABLE handoffs ADD COLUMN directory TEXT NOT NULL DEFAULT '';
ALTER TABLE handoffs ADD COLUMN holder TEXT NOT NULL DEFAULT '';   -- session that has taken it up, or is to
ALTER TABLE handoffs ADD COLUMN counted REAL NOT NULL DEFAULT 0;   -- creation, or when that was seen to lie ahead
ALTER TABLE handoffs ADD COLUMN created_pid INTEGER;               -- of the client it was written in
ALTER TABLE handoffs ADD COLUMN consumed REAL;
ALTER TABLE handoffs ADD COLUMN consumed_pid INTEGER;              -- of the client that took it

UPDATE handoffs SET
    counted = created,
    holder = CASE WHEN state IN ('pending', 'consumed', 'failed') THEN session ELSE '' END,
    consumed = CASE WHEN state = 'consumed' THEN changed END,
    directory = COALESCE((SELECT json_extract(s.state, '$.directory') FROM sessions s WHERE s.id = session), '');

-- What a session left that has ended waits for another.
UPDATE handoffs SET state = 'active', holder = ''
    WHERE state IN ('pending', 'failed') AND session IN (SELECT id FROM sessions WHERE ended = 1);

CREATE INDEX handoffs_channel ON handoffs (channel, created);
CREATE INDEX handoffs_waiting ON handoffs (channel) WHERE state IN ('pending', 'active');
