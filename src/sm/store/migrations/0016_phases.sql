-- The phase that a session's rotation has entered with an event, and the handoff it is about; NULL where it entered none.
ALTER TABLE events ADD COLUMN phase TEXT;
ALTER TABLE events ADD COLUMN handoff TEXT;
CREATE INDEX events_phase ON events (session, number) WHERE phase IS NOT NULL;
