-- Which of several of a kind an episode is: the id of what the client asks.
ALTER TABLE episodes ADD COLUMN subject TEXT NOT NULL DEFAULT '';
