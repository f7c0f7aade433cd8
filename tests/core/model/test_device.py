import pytest

from sm.core.model.device import MAX_UNUSED_S, Device


@pytest.mark.parametrize(
    ("revoked", "unused", "valid"),
    [(None, 0.0, True), (None, MAX_UNUSED_S - 1, True), (None, MAX_UNUSED_S, False), (5.0, 0.0, False)],
)
def test_a_device_may_come_in_until_it_is_revoked_or_was_not_used_for_a_month(revoked, unused, valid):
    device = Device("0a1b2c3d", "phone", 1.0, 1_000.0, read_only=False, revoked=revoked)
    assert device.is_valid(1_000.0 + unused) is valid
