"""Laws of delivery over random lives of an agent, its client, its hooks' answers and its server."""

from collections import Counter
from dataclasses import replace

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import MessageState, Mode, StoredMessage, message
from sm.core.model.message_queue import WINDOW
from sm.core.model.rotation import Phase
from sm.core.model.session import Session
from sm.core.rules.session.advance import next_alarm
from tests.core.playbook import HANDOFF, advance, idle_session

END = {MessageState.CONFIRMED, MessageState.UNCONFIRMED, MessageState.EXPIRED, MessageState.FAILED}
STEPS = (
    *(f"send {mode.value}" for mode in Mode),
    *("tool", "stop", "person", "ask", "answer", "ready", "enter", "alarm", "idle", "hand off", "new", "fail"),
    *("lose", "restart"),
)


class World:
    """A session and a client that does what clients do; what the model was told is the truth of it all."""

    def __init__(self):
        self.session = idle_session()
        self.now, self.count = 2.0, 0
        self.busy = self.dialog = self.lose = False
        self.conversation = "c0"
        self.table, self.state = {}, {}
        self.told = []
        self.order = None
        self.inbox = []
        self.box = []

    # what happens

    def happen(self, event, *, hooked=True):
        self.inbox.append((event, hooked))
        while self.inbox:
            self._take(*self.inbox.pop(0))

    def _take(self, event, hooked):
        self.session, effects = advance(self.session, event)
        lost, self.lose = self.lose and hooked, self.lose and not hooked
        for effect in effects:
            getattr(self, f"_{type(effect).__name__}", lambda *_: None)(effect, lost)
        assert all(count <= WINDOW + 1 for count in self._waiting_by_mode().values()), "the window stays small"
        self.session = msgspec.json.decode(msgspec.json.encode(self.session), type=Session)

    def _waiting_by_mode(self):
        fresh = [queued for queued in self.session.outbox.queue if not queued.tries and queued.number]
        return Counter(queued.mode for queued in fresh)

    def _AddContext(self, effect, lost):  # noqa: N802
        if not lost:
            assert not self.session.rotation or not self.session.rotation.holds_messages or not effect.messages
            self.told += effect.messages

    def _KeepMessage(self, effect, _):  # noqa: N802
        stored = effect.message
        made = replace(message(stored.id, stored.body), number=stored.number, mode=stored.mode)
        self.table[stored.number] = made
        self.state[effect.message.id] = MessageState.QUEUED

    def _RecordMessage(self, effect, _):  # noqa: N802
        assert self.state.get(effect.message) not in END, "a message ends once"
        self.state[effect.message] = effect.state

    def _order(self, effect, _):
        self.order = effect

    _AwaitComposer = _AwaitBox = _TakeSnapshot = _ClearContext = _LeavePane = _order

    def _TypeText(self, effect, _):  # noqa: N802
        assert not self.dialog, "nothing is typed while a dialog is open"
        assert effect.now or not self.busy
        self.order = effect

    def _FindMessages(self, effect, _):  # noqa: N802
        asked = tuple(delivery.message.id for delivery in effect.handed)
        found = tuple(identity for identity in asked if identity in self.told)
        self.inbox.append((ev.MessagesSought(at=self.now, asked=asked, found=found), False))

    def _FindPrompt(self, effect, _):  # noqa: N802
        self.order = effect
        text = next((text for text in self.told if effect.digest == message("x", text).digest), None)
        missing = ev.PromptMissing(at=self.now, step=effect.step)
        found = ev.PromptSubmitted(at=self.now, conversation=self.conversation, text=text or "", replayed=True)
        self.inbox.append((found if text else missing, False))

    def _FetchMessages(self, effect, _):  # noqa: N802
        wanted = effect.refill
        waits = [
            row
            for number, row in sorted(self.table.items())
            if wanted.after < number <= wanted.known
            and row.mode is wanted.mode
            and self.state[row.id] is MessageState.QUEUED
        ]
        got = tuple(waits[: wanted.count])
        left = len(waits) - len(got)
        self.inbox.append((ev.MessagesFetched(at=self.now, refill=wanted, messages=got, left=left), False))

    # what may happen

    def step(self, kind):
        self.now += 0.2
        name, _, mode = kind.partition(" ")
        if name == "send":
            self.send(Mode(mode))
        else:
            getattr(self, f"do_{kind.replace(' ', '_')}")()

    def of_conversation(self, kind, **values):
        return kind(at=self.now, conversation=self.conversation, **values)

    def send(self, mode):
        self.count += 1
        name = f"m{self.count}"
        # What is typed is its own id: then a prompt's text tells which message the model was given.
        queued = replace(message(name, name), number=self.count, mode=mode)
        stored = StoredMessage(name, "s", name, number=self.count, mode=mode)
        self.happen(ev.MessageQueued(at=self.now, message=queued, stored=stored), hooked=False)

    def do_tool(self):
        if self.busy and not self.dialog:
            self.happen(self.of_conversation(ev.ToolUsed, tool="Bash"))

    def do_stop(self):
        if self.busy and not self.dialog:
            before = len(self.told)
            self.happen(self.of_conversation(ev.TurnEnded))
            self.busy = len(self.told) > before

    def do_fail(self):
        if self.busy and not self.dialog:
            self.busy = False
            self.happen(self.of_conversation(ev.TurnFailed))

    def do_person(self):
        if not self.dialog:
            self.busy = True
            self.happen(self.of_conversation(ev.PromptSubmitted, text="a person's words"))

    def do_ask(self):
        if self.busy:
            self.dialog = True
            self.happen(self.of_conversation(ev.PermissionAsked, tool="Bash"))

    def do_answer(self):
        if self.dialog:
            self.dialog = False
            self.do_tool()

    def do_idle(self):
        activity = ev.Activity.WAITING if self.dialog else ev.Activity.BUSY if self.busy else ev.Activity.IDLE
        self.now += 1.0
        self.happen(ev.ActivityChanged(at=self.now, activity=activity), hooked=False)

    def do_ready(self):
        order = self.order
        if self.dialog or order is None or order.step != self.session.step:
            return
        if isinstance(order, ef.AwaitComposer) and not self.busy and order.after <= self.now:
            self.happen(ev.ComposerReady(at=self.now, step=order.step), hooked=False)
        elif isinstance(order, ef.AwaitBox):
            self.happen(ev.BoxFree(at=self.now, step=order.step), hooked=False)
        elif isinstance(order, ef.TakeSnapshot):
            self.happen(ev.SnapshotTaken(at=self.now, step=order.step), hooked=False)

    def do_enter(self):
        order = self.order
        if self.dialog or order is None or order.step != self.session.step:
            return
        if isinstance(order, ef.ClearContext) and not self.busy:
            self.do_new()
        elif isinstance(order, ef.TypeText) and (order.now or not self.busy):
            self.order = None
            self.busy = True
            self.told.append(order.text)
            if not self.lose:
                self.happen(self.of_conversation(ev.PromptSubmitted, text=order.text))
            self.lose = False

    def do_new(self):
        if self.busy:
            return
        self.count += 1
        self.conversation = f"c{self.count}"
        started = ev.ConversationStarted(
            at=self.now, conversation=self.conversation, transcript="/t", origin=ev.Origin.CLEAR
        )
        self.happen(started)

    def do_hand_off(self):
        if self.session.rotation is None or not self.session.rotation.active:
            self.happen(ev.HandoffRequested(at=self.now, handoff=HANDOFF), hooked=False)

    def do_alarm(self):
        alarm = next_alarm(self.session)
        if alarm is not None:
            self.now = max(self.now, alarm)
            self.happen(ev.AlarmRang(at=self.now), hooked=False)
            again = next_alarm(self.session)
            assert again is None or again > self.now, "an alarm that rings again at once never lets the actor rest"

    def do_lose(self):
        """The answer to the next hook reaches nobody."""
        self.lose = True

    def do_restart(self):
        self.order = None
        self.happen(ev.ServerStarted(at=self.now), hooked=False)

    def rest(self):
        """Let the client do what it is asked until nothing is left to do."""
        self.lose = False
        rotates = ("ready", "enter") * 5
        for _ in range(400):
            for kind in ("answer", "stop", "idle", *rotates, "stop", "alarm"):
                self.step(kind)
            if not (self.busy or self.session.outbox.waiting or self.session.outbox.handed):
                return
            if self.session.rotation is not None and self.session.rotation.phase is Phase.PENDING:
                self.step("person")  # a handoff that timed out is tried again at the next turn's end
            if self.session.rotation is not None and self.session.rotation.phase is Phase.FAILED:
                self.happen(ev.HandoffRetried(at=self.now), hooked=False)


def lived(steps):
    world = World()
    for kind in steps:
        world.step(kind)
    world.rest()
    return world


RELAXED = settings(suppress_health_check=[HealthCheck.too_slow])


def told_messages(world):
    return [identity for identity in world.told if identity.startswith("m")]


@RELAXED
@given(st.lists(st.sampled_from(STEPS), max_size=80))
def test_each_message_is_told_exactly_once_whatever_is_lost_and_whoever_dies(steps):
    world = lived(steps)
    assert Counter(told_messages(world)) == Counter(list(world.state))
    assert set(world.state.values()) <= {MessageState.CONFIRMED}


@RELAXED
@given(st.lists(st.sampled_from(STEPS), max_size=80))
def test_messages_of_a_mode_are_told_in_the_order_they_were_sent(steps):
    world = lived(steps)
    mode = {row.id: row.mode for row in world.table.values()}
    for wanted in Mode:
        numbers = [int(identity[1:]) for identity in told_messages(world) if mode[identity] is wanted]
        assert numbers == sorted(numbers)


@RELAXED
@given(st.integers(1, 60), st.lists(st.sampled_from(STEPS), max_size=40))
def test_what_waits_behind_the_window_comes_in_its_turn(many, steps):
    world = World()
    world.do_person()
    for _ in range(many):
        world.send(Mode.SEQUENTIAL)
    assert world.session.outbox.waiting == many
    for kind in steps:
        world.step(kind)
    world.rest()
    assert Counter(told_messages(world)) == Counter(list(world.state))
