-- What was checked out where a document was written; and a directory without a repository is a channel of its own.
ALTER TABLE handoffs ADD COLUMN branch TEXT NOT NULL DEFAULT '';
UPDATE handoffs SET channel = directory WHERE channel = 'global';
