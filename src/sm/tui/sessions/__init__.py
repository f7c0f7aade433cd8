"""The list of all sessions: which columns a width holds, and the line of each session in them."""
