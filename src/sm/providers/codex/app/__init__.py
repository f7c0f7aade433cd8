"""Codex through its app-server: one server per session on a private socket, its own screen a view on that."""
