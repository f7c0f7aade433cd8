"""Where issues come from, and in which order they are worked.

A source (`source.py`) is files, a checklist or a tracker. What it yields are values (`issue.py`), and everything else
here decides over those. Nothing here knows a session, a server or the durable engine.
"""
