-- When the user removed it from the list. The row stays for messages and handoffs that name it; no server loads it.
ALTER TABLE sessions ADD COLUMN removed REAL;
