-- What the user is notified of, once: a row from its beginning until it is over.
CREATE TABLE episodes (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    since REAL NOT NULL,          -- UTC seconds, as all times here
    said TEXT NOT NULL,           -- without secrets, as is what follows
    quoted TEXT NOT NULL,
    account TEXT NOT NULL,
    sent INTEGER NOT NULL,
    pending TEXT NOT NULL,        -- channels that are still to tell it, a line each
    tries INTEGER NOT NULL,
    retry_at REAL NOT NULL
) STRICT;
