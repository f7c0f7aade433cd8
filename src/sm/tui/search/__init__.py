"""The search over all contexts of all sessions."""
