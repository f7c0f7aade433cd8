-- The attempt of a run that the session works on, as RUN/ISSUE/NUMBER: at most one session has it.
ALTER TABLE sessions ADD COLUMN attempt TEXT;
CREATE UNIQUE INDEX sessions_attempt ON sessions (attempt) WHERE attempt IS NOT NULL AND removed IS NULL;
