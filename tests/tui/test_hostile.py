"""Texts that an agent can write, wherever they are shown: nothing in them is markup, and nothing acts on a terminal."""

import pytest

from sm.tui.server.follower import Picture
from sm.tui.text import lines, one_line
from tests.api.test_archive import shows, tended
from tests.api.test_asks import asking
from tests.fakes.panes import FakePane

MARKUP = "[red]x[/red] [@click=app.quit]q[/] [/]"
EVIL = f"{MARKUP}\x1b]2;owned\x07\x1b[2J\x1b[31m\x9b2J\x9d0;owned\x9c\x07\x08\u202e\u2028end"


def check(seen, *needed):
    text = seen.text()
    assert [hex(ord(character)) for character in text if not (character.isprintable() or character == "\n")] == []
    for words in needed:
        assert words in seen.words(), seen.text()


def hostile(value):
    """The same with an evil text wherever a text is."""
    match value:
        case str():
            return EVIL
        case dict():
            return {name: hostile(inner) for name, inner in value.items()}
        case list():
            return [hostile(inner) for inner in value]
    return value


async def test_every_field_of_a_row_is_plain(seen):
    [session] = (await seen.api.call("GET", "/sessions"))[1]
    kept = {name: session[name] for name in ("id", "status")}
    evil = {**hostile(session), "branch": EVIL, "model": EVIL, "attempt": EVIL, "parent": None, **kept}
    async with asking(seen.api, session["id"]) as client:
        ask = {**hostile(client.ask), "id": "a", "session": session["id"], "state": "open", "kind": "permission"}
        seen.app._show(Picture((evil,), (ask,), (), seen.api.clock.now()))
        await seen.pilot.pause()
        check(seen, "[red]x[/red]")
        assert EVIL not in seen.app.title
        assert seen.app.title.isprintable()


async def test_an_ask_is_plain(seen):
    async with asking(seen.api, seen.app.chosen.id, tool_input={"command": EVIL, EVIL: [EVIL]}):
        await seen.until(lambda: seen.app.chosen.state == "waiting")
        await seen.press("a")
        await seen.until("command: [red]x[/red] [@click=app.quit]q[/]")
        check(seen)


async def test_a_question_with_its_options_is_plain(seen):
    option = {"label": EVIL, "description": EVIL}
    question = {"question": EVIL, "header": EVIL, "multiSelect": False, "options": [option, option]}
    tool = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [question]}}
    async with asking(seen.api, seen.app.chosen.id, **tool):
        await seen.until(lambda: seen.app.chosen.state == "waiting")
        await seen.press("a")
        await seen.until("1. [red]x[/red]")
        check(seen)


async def test_a_pane_is_plain(seen, monkeypatch):
    async def history(self):
        return f"{EVIL}\nsecond\n"

    monkeypatch.setattr(FakePane, "history", history)
    await seen.press("space")
    await seen.until("second")
    check(seen, "[red]x[/red]")


async def test_messages_are_plain(seen):
    session = seen.app.chosen.id
    status, _ = await seen.api.call("POST", f"/sessions/{session}/messages", body={"text": EVIL})
    assert status == 201
    await seen.press("i", *["pagedown"] * 3)
    await seen.until("[red]x[/red]")
    check(seen)


async def test_documents_and_their_difference_are_plain(seen):
    session, place = seen.app.chosen.id, seen.api.home.root.parent
    for number in range(2):
        (place / f"doc{number}.md").write_text(f"{number}{EVIL}\n")
        body = {"requester_session_id": session, "file_path": str(place / f"doc{number}.md"), "reason": EVIL}
        assert (await seen.api.call("POST", f"/sessions/{session}/handoff", body=body))[0] == 200
        seen.api.clock.advance(60)
    await seen.press("d")
    await seen.until("1[red]x[/red]")
    check(seen)
    await seen.press("d")
    await seen.until("+1[red]x[/red]")
    check(seen)


async def test_hits_are_plain(seen):
    shows(seen.api, seen.app.chosen.id, f"bucket {MARKUP}\r\n\r\n" + "line\r\n\r\n" * 200)
    await tended(seen.api)
    await seen.press("s")
    await seen.type("bucket")
    await seen.press("enter")
    await seen.until("bucket [red]x[/red]")
    check(seen)


async def test_what_a_command_prints_is_plain(seen):
    await seen.press("colon")
    await seen.type("nope[red]x[/red]")
    await seen.press("enter")
    await seen.until("No such command 'nope[red]x[/red]'")
    check(seen)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x1bPq;data\x1b\\b", "ab"),
        ("a\x9b31mb", "ab"),
        ("a\x1b(Bb", "ab"),
        ("\x1b", "?"),
        ("a\tb\nc", "a b c"),
        ("\u202eevil", "?evil"),
        ("[bold]x", "[bold]x"),
    ],
)
def test_a_text_in_one_line_has_no_sequence_for_a_terminal(text, shown):
    assert one_line(text) == shown


def test_lines_stay_lines():
    assert lines("a\r\n\tb\x1b[K\nc") == ["a", "    b", "c"]
