-- The contexts of a session in their order, and where each began in the log of its terminal.
CREATE TABLE contexts (
    session TEXT NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    transcript TEXT,
    started REAL NOT NULL,
    log_start INTEGER NOT NULL,   -- bytes the terminal had shown since the session's first start
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
