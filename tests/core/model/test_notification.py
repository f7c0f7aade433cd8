"""The words of a notification: whose they are, how long, and that nothing in them acts on whoever shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.model.notification import (
    MAX_KEPT_CHARS,
    MAX_TEXT_CHARS,
    TITLES,
    Episode,
    defused,
    digest,
    ended_run,
    kept,
    notification,
    plain_words,
    run_ended,
)
from sm.core.model.notify_rules import NotificationKind as Kind


def episode(number=1, kind=Kind.ASK, **values):
    return Episode(f"e{number}", kind, **{"session": f"s{number}", "name": f"n{number}", "since": 1_000.0, **values})


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_a_title_that_names_the_session(kind):
    told = notification([episode(kind=kind)])
    assert told.title.startswith("sm: ")
    assert "n1" in told.title
    assert set(TITLES) == set(Kind)


def test_words_of_an_agent_are_quoted_behind_those_of_sm():
    told = notification([episode(said="tried twice", quoted='rm -rf "x"')])
    assert told.text == "tried twice: \"rm -rf 'x'\""


def test_sessions_of_an_account_are_named_and_the_same_words_said_once():
    limits = [episode(number, Kind.LIMITED, said="5-hour limit reached") for number in range(5)]
    told = notification(limits)
    assert told.title == "sm: usage limit reached by n0, n1, n2 and 2 more"
    assert told.text == "5-hour limit reached"


def test_a_digest_has_a_line_for_each_notification():
    told = digest([notification([episode(1)]), notification([episode(2, Kind.DIED, quoted="exit code 1")])])
    assert told.title == "sm: 2 notifications"
    assert told.text == 'n1 waits for you\nn2 has ended unexpectedly: "exit code 1"'
    assert [each.id for each in told.episodes] == ["e1", "e2"]


def test_a_long_digest_is_cut():
    many = digest([notification([episode(number, quoted="x" * 150)]) for number in range(100)])
    assert len(many.text) == MAX_TEXT_CHARS


HOSTILE = "\x1b]9;4;1;50\x07\x1b[31m@everyone <!channel> [pay](https://evil.example) `x` \u202eabc\r\n[sm] done\x00"


def test_nothing_of_a_hostile_text_calls_links_or_controls():
    told = notification([kept(episode(name=HOSTILE, said=HOSTILE, quoted=HOSTILE), lambda text: text)])
    for text in (told.title, told.text):
        assert text.isprintable()
        assert not set("@<>[]`\\") & set(text)
        assert "://" not in text


@given(st.text(max_size=500))
def test_any_text_becomes_one_bounded_printable_line(text):
    found = kept(episode(quoted=text), lambda text: text)
    assert len(found.quoted) <= MAX_KEPT_CHARS
    told = notification([found]).text
    assert told.isprintable()
    assert not set("@<>[]`\\") & set(told)
    assert "://" not in told


def test_a_secret_is_found_behind_control_characters_and_before_the_cut():
    hide = lambda text: text.replace("sk-secret", "(hidden)")
    text = "x" * (MAX_KEPT_CHARS - 4) + "sk-\x1b[0msec\u200bret"
    assert "sk-" not in kept(episode(quoted=text), hide).quoted


def test_an_address_and_a_link_stay_readable():
    assert defused("dev@host https://host/x") == "dev\N{FULLWIDTH COMMERCIAL AT}host https:/ /host/x"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('{"command": "make", "timeout": 5, "all": true}', "make"),
        ('{"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]}', "Which? / a / b"),
        ('"alone"', "alone"),
        ("{}", ""),
        ("{broken", ""),
        ("[" * 100_000, ""),
    ],
)
def test_what_a_tool_is_given_reads_as_its_words(given, words):
    assert plain_words(given) == words


def test_the_end_of_a_run_is_one_episode_however_often_it_is_reported():
    first, second = (run_ended("R-1", "shop", "2 delivered", at) for at in (1.0, 2.0))
    assert (first.id, first.kind, first.name, first.said) == (second.id, Kind.RUN_ENDED, "shop", "2 delivered")


def test_the_end_of_a_run_names_the_run_and_no_other_episode_does():
    ended = run_ended("R-20260101-000000-cc33", "p", "1 done", 1.0)
    assert ended_run(ended) == "R-20260101-000000-cc33"
    assert ended_run(episode(1, Kind.ASK)) == ""
