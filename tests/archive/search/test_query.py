"""What a person's words ask of the index, and how a hit is shown."""

import pytest

from sm.archive.search.query import Term, best_line, expression, humps, terms_of


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("two words", [("two",), ("words",)]),
        ('"a phrase" and', [("a", "phrase"), ("and",)]),
        ('"not closed', [("not", "closed")]),
        ("src/sm/archive/search/query.py", [("src", "sm", "archive", "search", "query", "py")]),
        ("snake_case_name", [("snake", "case", "name")]),
        ("検査", [("検", "査")]),
        ("a a a", [("a",)]),
        ("-- {} \U0001f642 \"\" ''", []),
        ("", []),
    ],
)
def test_words_and_phrases(query, expected):
    assert [term.words for term in terms_of(query)] == expected


def test_a_star_stands_for_what_begins_so():
    assert terms_of("conv*") == (Term(("conv",), begins=True),)


def test_a_query_is_never_the_indexs_own_language():
    said = expression(terms_of('x) OR NOT NEAR(a b) text : ^y "'), None)
    assert said == '{text humps} : ("x" AND "OR" AND "NOT" AND "NEAR a" AND "b" AND "text" AND "y")'


def test_sessions_narrow_it():
    assert expression(terms_of("x"), ("aa", "bb")).endswith('AND scope : ("sessionaa" OR "sessionbb")')


def test_humps_are_the_parts_of_names():
    assert humps("ConversationStarted of HTTPServer, getX twice getX, plain words") == (
        "Conversation Started HTTP Server get X"
    )


TEXT = "nothing here\nCafé and the ConversationStarted event\nthe event alone"


@pytest.mark.parametrize(
    ("query", "line", "marked"),
    [
        ("event alone", "the event alone", ["event", "alone"]),
        ("CAFE event", "Café and the ConversationStarted event", ["Café", "event"]),
        ("started", "Café and the ConversationStarted event", ["Started"]),
        ("nowhere", "nothing here", []),
    ],
)
def test_the_line_with_the_most_hits_is_shown(query, line, marked):
    shown = best_line(TEXT, terms_of(query))
    assert shown.line == line
    assert [shown.line[start:end] for start, end in shown.marks] == marked


def test_a_long_line_is_cut_around_its_hit():
    shown = best_line(f"{'x' * 5_000} needle {'y' * 5_000}", terms_of("needle"))
    assert len(shown.line) < 250
    assert [shown.line[start:end] for start, end in shown.marks] == ["needle"]
    assert shown.line[0] == shown.line[-1] == "…"
