"""The digest of a conversation: a handoff document made without a model, from what a transcript's structure shows.

A provider tells what happened (`transcript_events`), the `collector` keeps what may matter, and `document` chooses what
is said.
"""
