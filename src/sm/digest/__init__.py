"""The digest of a conversation: a handoff document made without a model, from what a transcript's structure shows.

A provider reads events from its transcript (`transcript_events`), the `collector` keeps what may matter, and `document`
chooses what is written.
"""
