"""A notification service by its URL, through apprise (`pip install 'agent-sm[notify]'`).

apprise loads more than a hundred modules at its first use: it runs in a process of its own (`deliver.py`), which can be
ended, and keeps the server's memory and loop as they are. The URL holds secrets: it goes through standard input.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sm.core.model.notification import UserNotification
from sm.core.ports.notifier import ChannelError
from sm.notify import deliver
from sm.notify.process import run

MAX_SCHEME_CHARS = 20


@dataclass(frozen=True, slots=True)
class ServiceChannel:
    number: int
    """Its place in `notify.urls`."""
    url: str
    """Never logged or shown."""
    environ: Mapping[str, str]

    @property
    def name(self) -> str:
        scheme, found, _ = self.url.partition("://")
        plain = scheme.isascii() and scheme.isalnum() and len(scheme) <= MAX_SCHEME_CHARS
        return f"url {self.number} ({scheme if found and plain else 'unknown'})"

    async def send(self, sent: UserNotification) -> None:
        given = msgspec.json.encode({"url": self.url, "title": sent.title, "text": sent.text or sent.title})
        code, _ = await run((sys.executable, "-I", deliver.__file__), given, self.environ)
        if code:
            raise ChannelError(deliver.PROBLEMS.get(code, f"apprise failed (exit code {code})"))
