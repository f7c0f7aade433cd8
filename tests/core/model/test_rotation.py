"""When a rotation has entered a phase."""

import pytest

from sm.core.model.rotation import Phase, Rotation, phase_entered
from sm.core.values import replace
from tests.core.playbook import HANDOFF

WAITS = Rotation(HANDOFF)
OTHER = Rotation(replace(HANDOFF, id="HO-other"))


@pytest.mark.parametrize(
    ("before", "after", "entered"),
    [
        (None, None, None),
        (None, WAITS, (Phase.PENDING, HANDOFF.id)),
        (WAITS, replace(WAITS, note="a dialog is open", since=9.0), None),
        (WAITS, replace(WAITS, phase=Phase.RESERVED), (Phase.RESERVED, HANDOFF.id)),
        (WAITS, OTHER, (Phase.PENDING, "HO-other")),
        (WAITS, Rotation(None), (Phase.PENDING, "")),
    ],
)
def test_a_phase_is_entered_by_another_phase_or_another_handoff(before, after, entered):
    assert phase_entered(before, after) == entered
