"""The handoff documents of a session as a chain, and the difference between two of them."""
