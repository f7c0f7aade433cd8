"""The scripted agent: a small substitute for Claude Code's terminal client, for tests that need many of them.

It takes the real client's arguments, keys and settings and produces the real client's screen, hooks, transcript and
state file, as far as an adapter relies on them; its model plays a scenario.
"""
