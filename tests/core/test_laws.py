"""Laws of a session over random orders of events, hostile ones included."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.ask import AskKind, AskRequest, Decision
from sm.core.model.context import ContextReading, Source
from sm.core.model.message import MessageState, message
from sm.core.model.rotation import OVER
from sm.core.model.session import Session, Status
from sm.core.rules.session.advance import next_alarm
from sm.core.rules.session.refusals import may_hand_off
from tests.core.playbook import HANDOFF, advance, idle_session

REQUEST = AskRequest(AskKind.PERMISSION, "Bash")
SIMPLE = {
    "cancel": ev.HandoffCancelled,
    "retry": ev.HandoffRetried,
    "server": ev.ServerStarted,
    "kill": ev.SessionKilled,
    "rearm": ev.LatchesReset,
    "asks": lambda **k: ev.AskOpened(ask="a1", kind=REQUEST.kind, tool="Bash", request=REQUEST, **k),
    "answers": lambda **k: ev.AskAnswered(ask="a1", decision=Decision.ALLOW, **k),
    "hook gone": lambda **k: ev.AskExpired(ask="a1", reason="the hook ran out", **k),
    "dialog gone": lambda **k: ev.AskWithdrawn(ask="a1", reason="answered there", **k),
    "plugin": lambda **k: ev.DriverChanged(driver=ev.DrivenBy.MOD, **k),
    "plugin gone": lambda **k: ev.DriverChanged(driver=ev.DrivenBy.KEYS, reason="it does not answer", **k),
}
OF_CONVERSATION = {
    "tool": lambda **k: ev.ToolUsed(tool="Bash", **k),
    "stop": ev.TurnEnded,
    "stop with a shell": lambda **k: ev.TurnEnded(background=(ev.BackgroundTask("t", "shell"),), **k),
    "fail": ev.TurnFailed,
    "rate limit": lambda **k: ev.TurnFailed(error="rate_limit", **k),
    "permission": ev.PermissionAsked,
    "compaction": ev.CompactionStarted,
    "compacted": ev.CompactionEnded,
    "prompt": lambda **k: ev.PromptSubmitted(text="a person's words", **k),
}
RESULTS = {
    "held": lambda **k: ev.ComposerHeld(reason="the user is typing", **k),
    "refused": lambda **k: ev.TypingRefused(reason="not shown", **k),
    "typed": ev.Typed,
    "snapshot": ev.SnapshotTaken,
    "missing": ev.PromptMissing,
}
SPECIAL = (
    "ready",
    "stale",
    "wake",
    "new",
    "compact",
    "client_state",
    "message",
    "handoff",
    "exit",
    "launch",
    "read",
    "alarm",
)
ACTIVITIES = ("idle", "busy", "waiting", "unknown")
KINDS = st.sampled_from((*SIMPLE, *OF_CONVERSATION, *RESULTS, *SPECIAL, *ACTIVITIES, "blocked", "gone"))
STEPS = st.lists(st.tuples(KINDS, st.sampled_from((0.01, 0.5, 2.0, 130.0))), max_size=40)


DONE = {ef.AwaitComposer: "ready", ef.TakeSnapshot: "snapshot", ef.ClearContext: "new", ef.FindPrompt: "missing"}
"""What comes of an order that is carried out."""


class World:
    """A session, what was ordered of its pane, and the time."""

    def __init__(self) -> None:
        self.session = idle_session()
        self.now = 2.0
        self.count = 0
        self.order: ef.PaneCommand | None = None
        self.sent: list[str] = []
        self.ended: list[str] = []
        self.crossed: dict[tuple[str, int], list[object]] = {}

    def event(self, kind: str) -> ev.Event | None:
        at, step = self.now, self.session.step
        conversation = self.session.conversation.id
        if kind in SIMPLE:
            return SIMPLE[kind](at=at)
        if kind in OF_CONVERSATION:
            return OF_CONVERSATION[kind](at=at, conversation=conversation)
        if kind in RESULTS:
            return RESULTS[kind](at=at, step=step)
        if kind in ACTIVITIES:
            return ev.ActivityChanged(at=at, activity=ev.Activity(kind))
        return getattr(self, f"_{kind}")(at, step, conversation)

    def _ready(self, at, step, _):
        early = isinstance(self.order, ef.AwaitComposer) and self.order.after > at
        return None if early else ev.ComposerReady(at=at, step=step)

    def _stale(self, at, step, _):
        return ev.ComposerReady(at=at, step=step - 1)

    def _wake(self, at, _, conversation):
        text = self.order.text if isinstance(self.order, ef.TypeText) else None
        return ev.PromptSubmitted(at=at, conversation=conversation, text=text) if text else None

    def _started(self, at, origin, conversation):
        return ev.ConversationStarted(at=at, conversation=conversation, transcript="/t", origin=origin)

    def _fresh(self):
        self.count += 1
        return f"c{self.count}"

    def _new(self, at, *_):
        return self._started(at, ev.Origin.CLEAR, self._fresh())

    def _client_state(self, at, *_):
        return self._started(at, ev.Origin.CLIENT_STATE, self._fresh())

    def _compact(self, at, _, conversation):
        return self._started(at, ev.Origin.COMPACT, conversation)

    def _message(self, at, *_):
        self.count += 1
        self.sent.append(f"m{self.count}")
        return ev.MessageQueued(at=at, message=message(f"m{self.count}", f"text {self.count}"))

    def _handoff(self, at, *_):
        return ev.HandoffRequested(at=at, handoff=HANDOFF) if may_hand_off(self.session) is None else None

    def _exit(self, at, *_):
        return ev.ClientExited(at=at, signal=9)

    def _launch(self, at, *_):
        launched = ev.SessionLaunched(at=at, pane="%1", pid=1, conversation=self._fresh(), config="/c")
        return launched if self.session.ended else None

    def _read(self, at, _, conversation):
        reading = ContextReading(tokens=90_000, projected=90_000, source=Source.USAGE, exact=True, window=200_000)
        epoch = self.session.conversation.epoch
        return ev.ContextRead(at=at, conversation=conversation, epoch=epoch, reading=reading, usable=100_000)

    def _blocked(self, at, *_):
        return ev.ClientBlocked(at=at, reason="limit")

    def _gone(self, at, *_):
        return ev.DocumentGone(at=at, handoff=HANDOFF.id)

    def _alarm(self, *_):
        alarm = next_alarm(self.session)
        self.now = max(self.now, alarm or 0.0)
        return None if alarm is None else ev.AlarmRang(at=self.now)

    def happen(self, kind: str, later: float = 0.1) -> None:
        self.now += later
        event = self.event(kind)
        if event is None:
            return
        self.session, effects = advance(self.session, event)
        for effect in effects:
            self.check(effect)
        self.check_state(event)

    def check(self, effect: ef.Effect) -> None:
        if isinstance(effect, ef.TypeText | ef.ClearContext):
            assert (self.session.status, self.session.dialog) == (Status.IDLE, None)
        if isinstance(effect, ef.PaneCommand):
            assert isinstance(effect, ef.LeavePane) or not self.session.ended
            self.order = effect
        if isinstance(effect, ef.RecordMessage) and effect.state not in {MessageState.QUEUED, MessageState.DELIVERED}:
            self.ended.append(effect.message)

    def check_state(self, event: ev.Event) -> None:
        assert len(set(self.ended)) == len(self.ended), "a message ends once"
        alarm = next_alarm(self.session)
        if isinstance(event, ev.AlarmRang):
            assert alarm is None or alarm > event.at, "an alarm that rings again at once never lets the actor rest"
        assert msgspec.json.decode(msgspec.json.encode(self.session), type=Session) == self.session

    def answer(self) -> bool:
        """Let the client do what was ordered, or else begin and end a turn; False if nothing came of it."""
        order = self.order
        kinds = {
            ef.AwaitComposer: "ready",
            ef.TakeSnapshot: "snapshot",
            ef.ClearContext: "new",
            ef.FindPrompt: "missing",
        }
        if self.session.outbox.handed:
            self.look()
        elif order is not None and order.step == self.session.step and type(order) in kinds:
            self.happen(kinds[type(order)], 2.0)
        elif isinstance(order, ef.TypeText) and order.step == self.session.step:
            self.happen("wake")
            self.happen("stop")
        else:
            self.happen("prompt")
            self.happen("stop", 2.0)
            return self.order is not order or bool(self.session.outbox.handed)
        return True

    def look(self) -> None:
        """Find in the transcript all that was handed over."""
        asked = tuple(delivery.message.id for delivery in self.session.outbox.handed)
        self.now += 2.0
        found = ev.MessagesSought(at=self.now, asked=asked, found=asked)
        self.session, effects = advance(self.session, found)
        for effect in effects:
            self.check(effect)
        self.check_state(found)


def lived(steps) -> World:
    world = World()
    for kind, later in steps:
        world.happen(kind, later)
    return world


RELAXED = settings(suppress_health_check=[HealthCheck.too_slow])


@RELAXED
@given(STEPS)
def test_nothing_is_typed_unless_idle_without_a_dialog_and_no_alarm_spins(steps):
    lived(steps)


@RELAXED
@given(STEPS)
def test_once_the_client_answers_a_rotation_ends_and_every_message_is_released_exactly_once(steps):
    world = lived(steps)
    for _ in range(80):
        if world.session.ended or not world.answer():
            break
    session = world.session
    if session.ended:
        return
    assert session.rotation is None or session.rotation.phase in OVER
    if session.rotation is None or not session.rotation.holds_messages:
        assert session.outbox.queue == ()
        known = [identity for identity in world.ended if identity in world.sent]
        assert sorted(known) == sorted(world.sent)


@RELAXED
@given(STEPS)
def test_no_threshold_is_crossed_twice_in_one_conversation(steps):
    world = World()
    for kind, later in steps:
        before = world.session.conversation
        world.happen(kind, later)
        after = world.session.conversation
        if kind != "rearm" and (before.id, before.epoch) == (after.id, after.epoch):
            assert after.monitor.crossed[: len(before.monitor.crossed)] == before.monitor.crossed
        levels = [level for level, _ in after.monitor.crossed]
        assert len(set(levels)) == len(levels)


@RELAXED
@given(STEPS, st.sampled_from(("c-other", None)))
def test_a_reading_never_goes_to_a_conversation_it_was_not_taken_from(steps, conversation):
    world = lived(steps)
    session = world.session
    reading = ContextReading(tokens=1, projected=1, source=Source.USAGE, exact=True)
    late = ev.ContextRead(
        at=world.now,
        conversation=conversation or session.conversation.id,
        epoch=session.conversation.epoch - (conversation is None),
        reading=reading,
        usable=10,
    )
    assert advance(session, late)[0].conversation == session.conversation
