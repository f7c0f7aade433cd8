from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sm.core.model.usage_limit import CLOCK_SLACK_S, UsageLimit
from sm.providers.claude.limit_notices import limit_in

AT = datetime(2026, 11, 28, 16, 30, 20, tzinfo=UTC).timestamp()


def stamp(*moment):
    return datetime(*moment, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "kind", "resets_at"),
    [
        ("You've hit your 5-hour limit · resets 4:58pm (UTC)", "five_hour", stamp(2026, 11, 28, 16, 58)),
        ("You've hit your session limit · resets 4pm (UTC)", "five_hour", AT),
        ("You've hit your weekly limit · resets Dec 2, 9am (UTC)", "seven_day", stamp(2026, 12, 2, 9)),
        ("You've hit your 5-hour limit · resets 2pm (America/New_York)", "five_hour", stamp(2026, 11, 28, 19)),
        ("You've hit your 5-hour limit · resets 4:28pm (UTC)", "five_hour", AT),
        ("You've hit your weekly limit · resets 4:28pm (UTC)", "seven_day", AT),
        ("You've hit your weekly limit · resets 9am (UTC)", "seven_day", stamp(2026, 11, 29, 9)),
        ("You've hit your weekly limit · resets Nov 28, 4:28pm (UTC)", "seven_day", AT),
        ("You've hit your weekly limit · resets Nov 27, 4pm (UTC)", "seven_day", AT),
        ("You've hit your weekly limit · resets Feb 29, 3pm (UTC)", "seven_day", None),
        ("You've hit your weekly limit · resets Dec 2, 13pm (UTC)", "seven_day", stamp(2026, 12, 2, 13)),
        ("You've hit your 5-hour limit · resets 4:58pm (America)", "five_hour", None),
        ("You've hit your Opus limit", "model", None),
        ("You've hit your 5-hour limit · resets 4:58pm (Nowhere/Land)", "five_hour", None),
        ("Claude AI usage limit reached|1795882000", "usage", 1_795_882_000.0),
        (
            "Usage limit reached · continuing automatically at 4:58pm (UTC) · esc to cancel",
            "usage",
            stamp(2026, 11, 28, 16, 58),
        ),
    ],
)
def test_the_clients_words_tell_which_limit_and_until_when(text, kind, resets_at):  # C20
    assert limit_in(text, AT) == UsageLimit(kind, resets_at, AT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "API Error: 429 This request would exceed your rate limit.",
        "You are near your limit",
        "x" * 100_000,
        "limit",
    ],
)
def test_other_words_tell_of_none(text):  # C20
    assert limit_in(text, AT) is None


def test_the_next_year_is_meant_at_the_end_of_one():  # C20
    found = limit_in("You've hit your weekly limit · resets Jan 2 at 9am (UTC)", stamp(2026, 12, 30))
    assert found.resets_at == stamp(2027, 1, 2, 9)


def test_a_time_without_a_zone_is_the_machines_own():  # C20
    found = limit_in("You've hit your 5-hour limit · resets 4:58pm", AT)
    assert AT - 60 <= found.resets_at <= AT + 86_400


MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2036, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Foo")
ZONES = ("UTC", "America/New_York", "America", "zone.tab", "posixrules", "/etc", ".", "a//b", "A" * 40)


@given(MOMENTS, st.sampled_from(MONTHS), st.integers(0, 99), st.integers(0, 99), st.sampled_from(ZONES))
@example(datetime(2028, 3, 1, tzinfo=UTC), "Feb", 29, 3, "UTC")
def test_whatever_a_notice_says_it_is_a_limit_and_ends_within_a_week(moment, month, day, hour, zone):
    at = moment.timestamp()
    for date in ("", f"{month} {day} "):
        found = limit_in(f"You've hit your weekly limit · resets {date}{hour}pm ({zone})", at)
        assert at <= found.ends_at(at) <= at + 7 * 86_400 + CLOCK_SLACK_S
