"""The channels that the user has configured, and when they are used. Only the user's own settings name one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sm.core.model.notify_rules import NotifyRules
from sm.core.ports.notifier import NotifyChannel
from sm.core.ports.panes import Terminal
from sm.notify.command import CommandChannel
from sm.notify.service import ServiceChannel
from sm.notify.terminal import TerminalChannel
from sm.settings import NotifySettings


@dataclass(frozen=True, slots=True)
class ConfiguredNotifier:
    settings: Callable[[], NotifySettings]
    environ: Mapping[str, str]
    """Of the server: a program gets what is allowed of it."""
    terminals: Callable[[], Awaitable[list[Terminal]]]
    devices: Callable[[], Sequence[NotifyChannel]] = tuple
    """Browsers that take notifications."""

    def rules(self) -> NotifyRules:
        return self.settings().rules()

    def channels(self) -> tuple[NotifyChannel, ...]:
        found = self.settings()
        services = [ServiceChannel(number, url, self.environ) for number, url in enumerate(found.urls, start=1)]
        commands = [CommandChannel(found.command, self.environ)] if found.command else []
        terminals = [TerminalChannel(found.terminal, self.terminals)] if found.terminal != "off" else []
        return *services, *commands, *terminals, *self.devices()

    def local_offset(self, at: float) -> float:
        return float(time.localtime(at).tm_gmtoff)
