from datetime import UTC, datetime

import pytest

from sm.core.model.usage_limit import UsageLimit
from sm.providers.claude.limit_notices import limit_in

AT = datetime(2026, 11, 28, 16, 30, 20, tzinfo=UTC).timestamp()


def stamp(*moment):
    return datetime(*moment, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "kind", "resets_at"),
    [
        ("You've hit your 5-hour limit · resets 4:58pm (UTC)", "five_hour", stamp(2026, 11, 28, 16, 58)),
        ("You've hit your session limit · resets 4pm (UTC)", "five_hour", stamp(2026, 11, 29, 16)),
        ("You've hit your weekly limit · resets Dec 2, 9am (UTC)", "seven_day", stamp(2026, 12, 2, 9)),
        ("You've hit your weekly limit · resets Jan 2 at 9am (UTC)", "seven_day", stamp(2027, 1, 2, 9)),
        ("You've hit your 5-hour limit · resets 12am (America/New_York)", "five_hour", stamp(2026, 11, 29, 5)),
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


def test_a_time_without_a_zone_is_the_machines_own():  # C20
    found = limit_in("You've hit your 5-hour limit · resets 4:58pm", AT)
    assert AT - 60 <= found.resets_at <= AT + 86_400
