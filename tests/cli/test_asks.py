"""`sm asks`, `sm approve`, `sm answer`: what the user is told of what they allowed."""

from sm.core import events as ev
from tests.api.test_asks import RULE, asking

MODE = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
QUESTION = {"question": "Which?", "multiSelect": True, "options": [{"label": "a"}, {"label": "b"}]}


async def test_approve_always_says_what_is_allowed_from_now_on_and_for_how_long(desk, session):
    async with asking(desk.api, session, permission_suggestions=[MODE]) as client:
        words = "edits files without asking, in this session"
        assert f"with --always it also {words}" in (await desk.run("asks")).out
        ran = await desk.run("approve", client.id, "--always")
        assert ran.out == f"{client.id} allowed; and from now on it {words} (a, Bash)\n"
    async with asking(desk.api, session, permission_suggestions=[RULE]) as client:
        assert (await desk.run("approve", client.id[:4].upper())).out == f"{client.id} allowed (a, Bash)\n"


async def test_tail_shows_with_which_words_an_ask_was_answered(desk, session):
    async with asking(desk.api, session) as client:
        await desk.run("deny", client.id, "no:", "use", "make")
        await client.hook
        shown = (await desk.run("tail", session)).out
        assert f"denied: {client.id}: no: use make\n" in shown
    assert "use make" not in (await desk.run("tail", session, session=session)).out


async def test_what_a_command_calls_a_session_can_be_typed_as_it_is(desk):
    session = await desk.api.new("my docs")
    async with asking(desk.api, session) as client:
        await desk.api.engine.sessions.actors[session].ask(ev.ServerStarted(at=1e10))
        await client.hook
        assert f"answer it there: sm attach {session}\n" in (await desk.run("asks")).out
        late = await desk.run("approve", client.id, "--json")
        assert late.error["hint"].endswith(f"sm attach {session}")


async def test_one_form_of_answer_and_no_number_twice(desk, session):
    given = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [QUESTION]}}
    async with asking(desk.api, session, **given) as client:
        ran = await desk.run("answer", client.id, "--choice", "1,1")
        assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: Choice 1,1 has a number twice")
        ran = await desk.run("answer", client.id, "red", "--choice", "1")
        assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: TEXT and --choice were both given")
        assert (await desk.run("answer", client.id)).code == 2
        assert (await desk.run("answer", client.id, "--choice", "2,1")).code == 0


async def test_several_questions_take_one_argument_each_and_one_question_all_words(desk, session):
    other = {**QUESTION, "question": "And why?"}
    given = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [QUESTION, other]}}
    async with asking(desk.api, session, **given) as client:
        ran = await desk.run("answer", client.id, "the", "second", "one")
        assert (ran.code, ran.err.splitlines()[0]) == (1, f"Error: Ask {client.id} has 2 questions, and 3 answers came")
        assert (await desk.run("answer", client.id, "just one")).code == 1
        assert (await desk.run("answer", client.id, "the second", "it is smaller")).code == 0
        _, reply = await client.hook
        answers = reply["hookSpecificOutput"]["decision"]["updatedInput"]["answers"]
        assert answers == {"Which?": "the second", "And why?": "it is smaller"}
    async with asking(desk.api, session, **{**given, "tool_input": {"questions": [QUESTION]}}) as client:
        assert (await desk.run("answer", client.id, "the", "second")).code == 0
        _, reply = await client.hook
        assert reply["hookSpecificOutput"]["decision"]["updatedInput"]["answers"] == {"Which?": "the second"}
