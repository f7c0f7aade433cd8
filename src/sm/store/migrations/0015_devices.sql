-- Browsers that were let in. Of the secret in a device's cookie only its hash is stored.
CREATE TABLE devices (
    id TEXT PRIMARY KEY,
    secret TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created REAL NOT NULL,
    seen REAL NOT NULL,
    read_only INTEGER NOT NULL,
    revoked REAL
) STRICT;
