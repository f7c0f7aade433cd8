"""Links by which a browser logs in: each for one login within five minutes, known by the hash of its code alone."""

from __future__ import annotations

import re
import secrets
from collections import deque
from dataclasses import dataclass, field

from sm.core.errors import error
from sm.core.ids import token_hash
from sm.core.ports.clock import Clock

CODE_BYTES = 32
CODE = re.compile(r"[\w-]{43}", re.ASCII)
"""32 bytes in base64."""
LINK_LIFETIME_S = 300.0
MAX_LINKS = 20
"""Unused ones; a further one replaces the oldest."""
MAX_WRONG = 10
"""Wrong codes within a minute that are looked at and logged; a right one always is."""
WRONG_PERIOD_S = 60.0


@dataclass(frozen=True, slots=True)
class LoginLink:
    expires: float
    name: str
    """Of the device; empty for what its browser is called."""
    read_only: bool


@dataclass(slots=True)
class LoginLinks:
    """In memory: a server that starts again knows none."""

    clock: Clock
    known: dict[str, LoginLink] = field(default_factory=dict)
    wrong: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_WRONG))

    def make(self, name: str, *, read_only: bool) -> tuple[str, LoginLink]:
        """Return a new code with its link."""
        self._drop_expired()
        while len(self.known) >= MAX_LINKS:
            self.known.pop(next(iter(self.known)))
        code = secrets.token_urlsafe(CODE_BYTES)
        link = self.known[token_hash(code)] = LoginLink(self.clock.now() + LINK_LIFETIME_S, name, read_only)
        return code, link

    def take(self, code: str) -> LoginLink | None:
        """Use a code up; None for one that is not known (any more). SmError if too many were wrong."""
        self._drop_expired()
        link = self.known.pop(token_hash(code), None) if CODE.fullmatch(code) else None
        if link is None:
            self._count_wrong()
        return link

    def _count_wrong(self) -> None:
        now = self.clock.now()
        if len(self.wrong) == MAX_WRONG and now - self.wrong[0] < WRONG_PERIOD_S:
            raise error("too_many_logins", "Too many logins have failed within a minute", "run sm web for a new link")
        self.wrong.append(now)

    def _drop_expired(self) -> None:
        now = self.clock.now()
        for key in [key for key, link in self.known.items() if link.expires <= now]:
            del self.known[key]
