-- What clients ask their users: permissions, questions, plans; what was answered through sm, by whom and when.
CREATE TABLE asks (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    agent TEXT NOT NULL DEFAULT '',
    input TEXT NOT NULL,          -- JSON, without secrets
    suggestions TEXT NOT NULL,    -- JSON, likewise
    asked REAL NOT NULL,
    state TEXT NOT NULL,
    changed REAL NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    decision TEXT,
    always INTEGER NOT NULL DEFAULT 0,
    by TEXT NOT NULL DEFAULT '',  -- the session that answered; empty for the user
    answer TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX asks_asked ON asks (asked);
