"""One session: its context over time, its rotation, its messages and its cost."""
