"""What the parts of a session may see of each other when they decide."""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.events import BackgroundTask
from sm.core.model.client_traits import ClientTraits
from sm.core.model.foreground import Foreground


@dataclass(frozen=True, slots=True)
class Situation:
    idle: bool
    """At its prompt, alive, with no dialog."""
    working: bool
    """In a turn, with no dialog."""
    held: bool
    """A rotation is pending or under way: messages wait for the new context; or for the reset of a usage limit."""
    ended: bool
    """There is no client."""
    typed_to: bool
    """There is a pane: nothing is ever typed into the user's own terminal."""
    takes_prompts: bool
    """It can be cleared and given prompts: by keys in its pane, or by the plugin in its client."""
    max_hold: float
    """Seconds a user who types may hold a message."""
    fresh: bool
    """Its client has started and submitted no prompt yet."""
    turn_over: bool
    """By the client's own hooks: the main turn has ended and no other has begun."""
    conversation: str | None
    before: str | None
    """The conversation before that one."""
    transcript: str | None
    step: int
    """For the one command that may go to the pane now."""
    background: tuple[BackgroundTask, ...]
    wait_background: float
    traits: ClientTraits
    """What its client is like."""
    dialog_shows: float
    """When a dialog that was asked for surely shows in the client's state, UTC seconds; 0 if none was."""
    can_be_told: bool = False
    """The plugin in the client can tell the agent something, and the next request of this turn carries it."""
    scheduled: tuple[str, ...] = ()
    """Jobs that the client will run later."""
    adopted: bool = False
    """The user started the client."""
    progress: int = 0
    """Of this conversation; see `Monitor.progress`."""
    foreground: Foreground | None = None
    """Where the client runs if that is the user's own terminal."""
    paused: str = ""
    """Why the next rotation waits for the user; empty if it does not."""
    provider: str = ""
    """Whose client it has."""
    can_fork: bool = False
    """A fork of the agent's model can write the document that the agent has not written."""
