from itertools import product

import pytest

from sm.core.model.rights import STRICTEST, Freedom, Rights

ALL = [Rights(level, asks) for level, asks in product(Freedom, (True, False))]


@pytest.mark.parametrize("given", ALL)
def test_rights_are_within_others_by_what_they_allow_and_not_by_who_is_asked(given):
    within = [other.level for other in ALL if given.within(other)]
    assert set(within) == {level for level in Freedom if level >= given.level}


def test_what_is_not_known_may_read_and_asks_nobody():
    assert (STRICTEST.level, STRICTEST.asks) == (Freedom.READING, False)
    assert all(STRICTEST.within(other) for other in ALL)
