-- A session and everything its rules need to go on, as one JSON value: `advance` reads and returns the whole of it.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created REAL NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    token TEXT NOT NULL,          -- SHA-256 of its bearer token
    launch TEXT NOT NULL,         -- what a restart of its client needs: arguments, model, command
    state TEXT NOT NULL
) STRICT;

-- A name belongs to one living session.
CREATE UNIQUE INDEX sessions_name ON sessions (name) WHERE ended = 0;

-- What happened, without payload bodies: ids, sizes, usage.
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id),
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;

CREATE INDEX events_session ON events (session, number);

CREATE TABLE handoffs (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id),
    conversation TEXT NOT NULL,
    channel TEXT NOT NULL,
    path TEXT NOT NULL,
    copy TEXT NOT NULL,
    created REAL NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    changed REAL NOT NULL,
    reason TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX handoffs_session ON handoffs (session, created);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL REFERENCES sessions (id),
    sender TEXT NOT NULL,         -- session id, or empty for a person or sm itself
    body TEXT NOT NULL,
    queued REAL NOT NULL,
    state TEXT NOT NULL,
    changed REAL NOT NULL,
    reason TEXT NOT NULL DEFAULT ''
) STRICT;
