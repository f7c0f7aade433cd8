-- What a session wants to be told, and when. Bound to sessions: a rotation changes nothing here.
CREATE TABLE reminders (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,           -- once, every, track, wait, stop, check
    owner TEXT NOT NULL REFERENCES sessions (id),
    target TEXT NOT NULL REFERENCES sessions (id),
    created REAL NOT NULL,        -- UTC seconds, as all times here
    due REAL,                     -- NULL while it waits for an event
    text TEXT NOT NULL,
    every REAL NOT NULL,
    deadline REAL,
    message TEXT NOT NULL,
    running INTEGER NOT NULL,
    unanswered INTEGER NOT NULL,
    reported REAL NOT NULL
) STRICT;

-- What was said when one was due, until a message is made of it under the same id.
CREATE TABLE notices (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id),
    text TEXT NOT NULL
) STRICT;
