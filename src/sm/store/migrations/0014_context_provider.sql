-- Whose client wrote the transcript of a context, since another one may continue a session; empty for the session's own.
ALTER TABLE contexts ADD COLUMN provider TEXT NOT NULL DEFAULT '';
