-- How many messages one agent has sent another since a person last spoke to either.
CREATE TABLE exchanges (
    sender TEXT NOT NULL REFERENCES sessions (id),
    target TEXT NOT NULL REFERENCES sessions (id),
    count INTEGER NOT NULL,
    PRIMARY KEY (sender, target)
) STRICT, WITHOUT ROWID;
