"""Laws of a session in a person's own terminal, over random orders of events, with and without a plugin."""

from hypothesis import given
from hypothesis import strategies as st

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.foreground import Foreground
from sm.core.model.rotation import OVER, Phase
from tests.core.test_laws import KINDS, RELAXED, World

HERE = Foreground(wrapper=7, born="1", limit=1000)
STEPS = st.lists(
    st.tuples(KINDS | st.sampled_from(("taken", "relaunch", "startup")), st.sampled_from((0.01, 0.5, 2.0, 130.0))),
    max_size=40,
)


class TerminalWorld(World):
    def __init__(self):
        super().__init__()
        self.place = HERE
        self.happen("exit")
        self.happen("launch")

    def _launch(self, at, *_):
        launched = ev.SessionLaunched(at=at, pid=1, conversation=self._fresh(), config="/c", foreground=self.place)
        return launched if self.session.ended else None

    def _taken(self, at, step, _):
        ordered = isinstance(self.order, ef.RestartClient) and self.order.step == step
        return ev.RestartTaken(at=at, step=step, conversation=self._fresh()) if ordered else None

    def _relaunch(self, at, *_):
        wanted = self.session.rotation.next if self.session.rotation else ""
        place = self.session.foreground
        launched = ev.SessionLaunched(at=at, pid=2, conversation=wanted, config="/c", foreground=place)
        return launched if wanted and not self.session.ended else None

    def _startup(self, at, *_):
        wanted = self.session.rotation.next if self.session.rotation else ""
        return self._started(at, ev.Origin.STARTUP, wanted) if wanted else None

    def check(self, effect):
        if isinstance(effect, ef.TypeText | ef.ClearContext | ef.TakeSnapshot):
            assert self.session.driver is ev.DrivenBy.MOD
        super().check(effect)

    def answer(self):
        """Let the client and `sm run` do what was ordered, or else begin and end a turn."""
        order, rotation = self.order, self.session.rotation
        due = order is not None and order.step == self.session.step
        if due and isinstance(order, ef.AwaitComposer):
            self.now = max(self.now, order.after)
            self.happen("ready", 2.0)
        elif due and isinstance(order, ef.RestartClient) and rotation is not None and not rotation.next:
            for kind in ("taken", "relaunch", "startup"):
                self.happen(kind)
        elif rotation is not None and rotation.phase is Phase.CLEARING and rotation.next:
            for kind in ("relaunch", "startup"):
                self.happen(kind)
        elif due and isinstance(order, ef.FindPrompt) and self.session.outbox.step is None:
            self.happen("prompt")
            self.happen("stop", 2.0)
            return self.order is not order
        else:
            return super().answer()
        return True


def lived(steps):
    world = TerminalWorld()
    for kind, later in steps:
        world.happen(kind, later)
    return world


@RELAXED
@given(STEPS)
def test_nothing_is_ever_typed_and_no_alarm_spins(steps):
    lived(steps)


@RELAXED
@given(STEPS)
def test_once_the_client_answers_a_rotation_ends(steps):
    world = lived(steps)
    for _ in range(80):
        if world.session.ended or not world.answer():
            break
    rotation = world.session.rotation
    assert world.session.ended or rotation is None or rotation.phase in OVER


@RELAXED
@given(STEPS)
def test_with_a_plugin_every_message_is_released_exactly_once(steps):
    world = lived(steps)
    world.happen("plugin")
    for _ in range(80):
        if world.session.ended or not world.answer():
            break
    session = world.session
    if not session.ended and (session.rotation is None or not session.rotation.holds_messages):
        assert session.outbox.queue == ()
        assert sorted(identity for identity in world.ended if identity in world.sent) == sorted(world.sent)


@RELAXED
@given(STEPS)
def test_a_client_is_ended_only_by_an_order_of_this_step_and_only_once(steps):
    world = TerminalWorld()
    for kind, later in steps:
        before = world.session
        world.happen(kind, later)
        after = world.session
        moved = after.rotation is not None and after.rotation.next
        if moved and (before.rotation is None or before.rotation.next != after.rotation.next):
            assert kind == "taken"
            assert before.rotation.phase is Phase.CLEARING
            assert not before.rotation.next
