"""Starts the actor of a session, and passes each event that it has committed to whoever follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sm.core import events as ev
from sm.core.effects import Record
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import Panes
from sm.core.ports.provider import ClientState, Driver, Provider
from sm.core.ports.store import Store
from sm.core.rules.session.asks import ask_news
from sm.core.rules.session.context import derived_events
from sm.core.rules.session.status import runs_only_background
from sm.engine.actor import Actor, Changed
from sm.engine.asks import Asks
from sm.engine.budgets import BudgetMonitor
from sm.engine.client_monitor import client_state
from sm.engine.connected_clients import ConnectedClients
from sm.engine.effect_runner import EffectRunner
from sm.engine.foreground_terminal import ForegroundDriver
from sm.engine.messages import Messages
from sm.engine.notifications import Notifications
from sm.engine.pane_queue import PaneWriter
from sm.engine.reminders import Reminders
from sm.engine.sessions import Sessions, provider_named
from sm.engine.tasks import Spawn
from sm.engine.usage_limits import UsageLimits


@dataclass(frozen=True, slots=True)
class ActorFactory:
    sessions: Sessions
    store: Store
    documents: Documents
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    runner: EffectRunner
    messages: Messages
    reminders: Reminders
    notifications: Notifications
    asks: Asks
    usage_limits: UsageLimits
    budgets: BudgetMonitor
    connected: ConnectedClients
    spawn: Spawn
    publish: Changed
    """Called with every committed event, after everything of the engine."""

    def register(self, session: Session) -> Actor:
        """Add the session to those of this server, and start its actor."""
        actor = Actor(
            session,
            provider_named(self.providers, session.provider).traits,
            self.store,
            self.clock,
            self.runner.run_effect,
            self._committed,
            self._follow,
            self._noted,
            self.documents.log_end,
        )
        self.sessions.add(actor)
        self.spawn(actor.run())
        if not session.ended:
            self._set_writer(actor, session)
        return actor

    def _follow(
        self, before: Session, after: Session, event: ev.Event, records: tuple[Record, ...]
    ) -> tuple[Record, ...]:
        told = self.notifications.follow(before, after, event, records)
        return *self.reminders.follow(before, after, event, records), *told

    def _noted(self, records: tuple[Record, ...]) -> None:
        self.reminders.noted(records)
        self.notifications.noted(records)

    def _committed(self, before: Session, after: Session, event: ev.Event, number: int) -> None:
        actor = self.sessions.actor(after.id)
        if isinstance(event, ev.SessionLaunched):
            if after.driver is not ev.DrivenBy.MOD:  # its plugin may be faster than the report of `sm run`
                actor.link.client_started()
            self._set_writer(actor, after)
            self.reminders.woken.set()  # those of a session that lives again
        if isinstance(event, ev.ContextRead) and event.reading.messages is None and event.reading.exact:
            self.runner.context_readers.count(actor)
        for news in (*derived_events(before, after, event), *ask_news(before, after, event)):
            actor.put(news)
        self.messages.heard(before, event)
        self.asks.heard(before, after, event)
        self.usage_limits.follow(before, after, event)
        self.budgets.follow(before, after, event)
        if (before.pid, before.ended) != (after.pid, after.ended):
            self.connected.follow(after)
        self.publish(before, after, event, number)

    def _set_writer(self, actor: Actor, session: Session) -> None:
        provider = self.providers[session.provider]
        actor.traits = provider.traits  # another client may have taken the place of its first

        def state() -> ClientState | None:
            return client_state(provider, actor.session)

        def background() -> bool:
            return runs_only_background(actor.session)

        target = self.panes.pane(session.pane) if session.pane is not None else None
        restarts: Driver | None = None
        if session.foreground is not None:
            restarts = ForegroundDriver(provider, self.clock, lambda: actor.session, state)
        elif target is None and not session.adopted:
            return
        driver = provider.driver(target, actor.link, state, background, restarts)
        actor.pane_queue.writer = PaneWriter(session.id, provider, target, driver, self.documents, self.clock)
