"""A transcript of what happens to a session and what is done about it:

    Playbook() >> HandoffRequested(…) << RecordHandoff(…) >> TurnEnded(…) << …

`>>` feeds an event, `<<` expects the next effect. What was not expected and not ignored fails the next `>>` and `end`.
Times and steps are filled in: events are a second apart, and an effect is compared without its step.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.handoff import Handoff
from sm.core.model.session import Session
from sm.core.rules.session import advance as rules
from sm.providers.claude.traits import CLAUDE

HANDOFF = Handoff(
    id="HO-20260202-064530-c74cc080",
    path="/p/.sm/handoff.md",
    copy="/home/handoffs/HO.md",
    conversation="c0",
    channel="global",
    directory="/p",
    created=1.0,
)
WAKE = "Read /p/.sm/handoff.md and continue from where you left off."
advance = partial(rules.advance, traits=CLAUDE)
IGNORED = (ef.ReadContext, ef.RefreshDocument, ef.RecordContext)


def idle_session(**changes) -> Session:
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0, **changes)
    for event in (
        ev.SessionLaunched(at=1.0, pane="%1", pid=1, conversation="c0", config="/c"),
        ev.ConversationStarted(at=1.1, conversation="c0", transcript="/t0"),
        ev.ActivityChanged(at=1.2, activity=ev.Activity.IDLE),
    ):
        session, _ = advance(session, event)
    return replace(session, fresh=False)  # it has worked before


class Playbook:
    def __init__(self, session: Session | None = None) -> None:
        self.session = session or idle_session()
        self.now = 10.0
        self.left: list[ef.Effect] = []

    def __rshift__(self, event: ev.Event) -> Playbook:
        self.end()
        self.now += 1.0
        filled = {"at": event.at or self.now}
        if isinstance(event, ev.StepResult) and event.step == 0:
            filled["step"] = self.session.step
        self.session, effects = advance(self.session, replace(event, **filled))
        self.left = [effect for effect in effects if not isinstance(effect, IGNORED) or getattr(effect, "fork", False)]
        return self

    def __lshift__(self, expected: ef.Effect) -> Playbook:
        assert self.left, f"nothing was done; expected {expected}"
        found = self.left.pop(0)
        known = replace(found, step=expected.step) if isinstance(expected, ef.PaneCommand) else found
        assert known == expected
        return self

    def skip(self, *kinds: type[ef.Effect]) -> Playbook:
        """Drop the effects of these kinds: another test is about them."""
        self.left = [effect for effect in self.left if not isinstance(effect, kinds)]
        return self

    def end(self) -> Playbook:
        assert not self.left, f"not expected: {self.left}"
        return self

    @property
    def phase(self):
        return self.session.rotation.phase if self.session.rotation else None


def result(kind, /, **values):
    """A result of the order under way."""
    return kind(at=0, step=0, **values)


def event(kind, /, **values):
    """An event of the first conversation, a second after the one before."""
    if "conversation" in {field.name for field in fields(kind)}:
        values.setdefault("conversation", "c0")
    return kind(at=0, **values)
