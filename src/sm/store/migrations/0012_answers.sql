-- The answer to each question, as JSON: given again to a client that did not get it. Empty where it held a secret.
ALTER TABLE asks ADD COLUMN answers TEXT NOT NULL DEFAULT '[]';
