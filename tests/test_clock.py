import time

import pytest

from sm.clock import SystemClock, iso, parse_iso, stamp

AT = 1_770_014_730.0


def test_times_are_written_in_utc_with_a_z():
    assert iso(AT + 0.9) == "2026-02-02T06:45:30Z"
    assert stamp(AT) == "20260202-064530"


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-02T06:45:30Z",
        "2026-02-02T06:45:30",
        "2026-02-02T13:45:30+07:00",
        "2026-02-02 06:45:30.000Z",
        "2026-02-02T06:45:30Z\n",
    ],
)
def test_a_time_is_read_in_every_form_and_without_a_zone_as_utc(text, monkeypatch):
    """Case A78."""
    monkeypatch.setenv("TZ", "Asia/Bangkok")
    time.tzset()
    try:
        assert parse_iso(text) == AT
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "yesterday", "1770014730"])
def test_anything_else_is_no_time(text):
    with pytest.raises(ValueError):
        parse_iso(text)


def test_a_step_of_the_system_clock_does_not_move_it(monkeypatch):
    clock = SystemClock()
    before = clock.now()
    assert abs(before - time.time()) < 1
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock.now() - before < 1
