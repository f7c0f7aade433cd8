"""The services of a running server, and their start and end. `bootstrap.py` makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.notifier import Notifier, Unnotified
from sm.core.ports.panes import Panes
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Provider
from sm.core.ports.store import Store
from sm.engine.asks import Asks
from sm.engine.attempts import Attempts
from sm.engine.branches import Branches
from sm.engine.budgets import BudgetMonitor
from sm.engine.client_monitor import ClientMonitor
from sm.engine.configuration_monitor import ConfigurationMonitor
from sm.engine.connected_clients import ConnectedClients
from sm.engine.costs import Costs
from sm.engine.errors import logged
from sm.engine.external_clients import ExternalClients
from sm.engine.foreground import ForegroundClients
from sm.engine.handoffs import Handoffs
from sm.engine.hooks import Hooks
from sm.engine.launch import SessionLauncher
from sm.engine.log_keeper import LogKeeper
from sm.engine.messages import Messages
from sm.engine.notifications import Notifications
from sm.engine.pane_lines import PaneLines
from sm.engine.recovery import Recovery
from sm.engine.reminders import Reminders
from sm.engine.sessions import Sessions
from sm.engine.switch import ClientSwitches
from sm.engine.tasks import Tasks
from sm.engine.team import Team
from sm.engine.usage_limits import UsageLimits


@dataclass(frozen=True, slots=True)
class Ports:
    """What the engine needs of the outside."""

    store: Store
    documents: Documents
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    policies: Policies
    notifier: Notifier = field(default_factory=Unnotified)
    redact: Callable[[str], str] = lambda text: text
    """Takes secrets out of what leaves this machine."""


@dataclass(frozen=True, slots=True)
class Engine:
    ports: Ports
    tasks: Tasks
    sessions: Sessions
    hooks: Hooks
    asks: Asks
    handoffs: Handoffs
    switches: ClientSwitches
    messages: Messages
    reminders: Reminders
    notifications: Notifications
    costs: Costs
    launcher: SessionLauncher
    attempts: Attempts
    team: Team
    foreground: ForegroundClients
    external_clients: ExternalClients
    recovery: Recovery
    client_monitor: ClientMonitor
    configuration_monitor: ConfigurationMonitor
    log_keeper: LogKeeper
    pane_lines: PaneLines
    usage_limits: UsageLimits
    budgets: BudgetMonitor
    connected: ConnectedClients
    branches: Branches

    async def start(self) -> None:
        """Take over what the last server left, then begin everything that runs behind the requests."""
        await self.handoffs.start()
        await self.sessions.load()
        await self.reminders.load()
        await self.notifications.load()
        await self.recovery.run()
        with logged("messages not loaded"):
            await self.messages.start()
        for work in (
            self.connected.start(),
            self.reminders.run(),
            self.notifications.run(),
            self.messages.post_notices(),
            self.client_monitor.run(),
            self.configuration_monitor.run(),
            self.handoffs.sweep(),
            self.log_keeper.run(),
            self.pane_lines.run(),
            self.usage_limits.run(),
            self.budgets.run(),
            self.asks.arrival.start(),
        ):
            self.tasks.spawn(work)

    def stop(self) -> None:
        """End the actors; what they were doing is on disk and is taken up at the next start."""
        self.tasks.cancel()

    def problems(self) -> list[str]:
        """Return what the user should know: events, terminal logs and notifications that fail."""
        return [*self.sessions.problems(), *self.log_keeper.problems(), *self.notifications.problems()]
