"""Every key, at 60 and at 200 columns, on a real server: what it opens, what it orders, and what is said then."""

import asyncio
import json

from sm import __version__
from sm.lock import ServerLock, announce
from sm.paths import atomic_write
from sm.tui.keys import KEYS, LEGEND
from sm.tui.runs.box import run_lines
from tests.api.rig import USER
from tests.api.test_archive import shows, tended
from tests.api.test_asks import PID, RULE, asking
from tests.tui.rig import watching

QUESTION = {
    "tool_name": "AskUserQuestion",
    "tool_input": {
        "questions": [
            {
                "question": "Which one?",
                "header": "h",
                "multiSelect": False,
                "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": ""}],
            },
            {
                "question": "And why?",
                "header": "w",
                "multiSelect": True,
                "options": [{"label": "speed", "description": ""}, {"label": "cost", "description": ""}],
            },
        ]
    },
}


def chosen(seen):
    return seen.app.chosen.id


async def test_enter_gives_the_terminal_to_sm_attach(seen):
    await seen.press("enter")
    assert seen.terminal.ran == [["attach", chosen(seen)]]


async def test_enter_on_an_ended_session_says_how_it_comes_back(seen):
    await seen.press("k", "y")
    await seen.until("exited")
    await seen.press("enter")
    await seen.until("has ended: r restores it")
    assert seen.terminal.ran == []


async def test_space_shows_the_pane_live_and_enter_there_attaches(seen):
    await seen.press("space")
    await seen.until("second")
    await seen.press("space")
    await seen.gone("second")
    await seen.press("space", "enter")
    assert seen.terminal.ran == [["attach", chosen(seen)]]


async def test_a_without_an_ask_says_who_asks(seen):
    await seen.press("a")
    await seen.until("no session asks anything")
    other = await seen.api.new("beta")
    async with asking(seen.api, other):
        await seen.until("? waiting")
        await seen.press("end", "a")
        await seen.until("asked is by: beta")


async def test_a_then_y_allows(seen):
    async with asking(seen.api, chosen(seen), permission_suggestions=[RULE]) as client:
        await seen.until("permission Bash: make") if seen.app.size.width > 100 else await seen.until("? waiting")
        await seen.press("a")
        await seen.until("command: make")
        await seen.until("always: from then on it uses Bash without asking")
        await seen.press("y")
        status, reply = await client.hook
    assert (status, reply["hookSpecificOutput"]["decision"]) == (200, {"behavior": "allow"})
    await seen.until("allowed: alpha, Bash")


async def test_a_then_big_y_allows_for_always(seen):
    async with asking(seen.api, chosen(seen), permission_suggestions=[RULE]) as client:
        await seen.until("? waiting")
        await seen.press("a", "Y")
        _, reply = await client.hook
    assert reply["hookSpecificOutput"]["decision"]["updatedPermissions"] == [RULE]


async def test_a_then_n_denies_with_a_reason(seen):
    async with asking(seen.api, chosen(seen)) as client:
        await seen.until("? waiting")
        await seen.press("a", "n")
        await seen.type("no, use make y")
        await seen.press("enter")
        _, reply = await client.hook
    decision = reply["hookSpecificOutput"]["decision"]
    assert (decision["behavior"], "no, use make y" in decision["message"]) == ("deny", True)


async def test_always_is_refused_where_the_client_offers_none(seen):
    async with asking(seen.api, chosen(seen)) as client:
        await seen.until("? waiting")
        await seen.press("a", "Y")
        await seen.until("cannot be allowed for always")
        assert not client.hook.done()


async def test_questions_are_answered_one_after_the_other_by_number_or_in_own_words(seen):
    async with asking(seen.api, chosen(seen), **QUESTION) as client:
        await seen.until("? waiting")
        await seen.press("a")
        await seen.until("question 1 of 2")
        assert "2. blue" in seen.text()
        await seen.press("3", "enter")
        await seen.until("options have the numbers 1 to 2")
        await seen.press("backspace", "2", "enter")
        await seen.until("And why?")
        await seen.type("1,2")
        await seen.press("enter")
        await client.hook
    view = (await seen.api.call("GET", f"/asks/{client.id}"))[1]
    assert (view["decision"], "blue" in view["answer"], "cost" in view["answer"]) == ("answer", True, True)


async def test_an_ask_that_is_over_is_not_answered(seen):
    async with asking(seen.api, chosen(seen)) as client:
        await seen.until("? waiting")
        await seen.press("a")
        await seen.until("command: make")
        await seen.api.call("POST", f"/asks/{client.id}", body={"decision": "deny", "text": "elsewhere"})
        await seen.until("it is over")
        await seen.press("y")
        assert (await client.hook)[1]["hookSpecificOutput"]["decision"]["behavior"] == "deny"


async def test_m_sends_a_message_with_its_lines_and_its_mode(seen):
    await seen.press("m")
    await seen.type("run q and k")
    await seen.press("ctrl+j")
    await seen.type("then m")
    await seen.press("tab", "enter")
    await seen.until("queued: message")
    [view] = (await seen.api.call("GET", f"/sessions/{chosen(seen)}/messages"))[1]
    assert (view["mode"], view["text"]) == ("important", "run q and k\nthen m")


async def test_an_empty_message_is_not_sent(seen):
    await seen.press("m", "enter")
    await seen.until("the message is empty")
    await seen.press("escape")
    assert (await seen.api.call("GET", f"/sessions/{chosen(seen)}/messages"))[1] == []


async def test_h_then_a_asks_the_agent(seen):
    await seen.press("h")
    await seen.until("ask its agent")
    await seen.press("a")
    await seen.until("is asked to hand off")
    [view] = (await seen.api.call("GET", f"/sessions/{chosen(seen)}/messages"))[1]
    assert view["text"].startswith("Your user asks you to hand off. Write your handoff doc NOW")


async def test_h_then_d_hands_off_without_a_model(seen):
    """The command that makes the document is a process of its own, which looks for the server itself."""
    session, place = chosen(seen), seen.api.home.root.parent
    transcript = place / "t.jsonl"
    said = {"role": "user", "content": "Build the limiter"}
    transcript.write_text(json.dumps({"type": "user", "message": said, "uuid": "u", "sessionId": "s"}) + "\n")
    start = seen.api.hook(
        "SessionStart", session_id=seen.api.conversation(session), transcript_path=str(transcript), source="startup"
    )
    await seen.api.call("POST", "/hooks/claude", seen.api.tokens[session], start, **PID)
    atomic_write(seen.api.home.token, USER.encode())
    with ServerLock.acquire(seen.api.home):
        announce(seen.api.home, f"http://127.0.0.1:{seen.port}", __version__)
        await seen.press("h", "d")
        await seen.until("scheduled: alpha hands off with HO-")
    [handoff] = (await seen.api.call("GET", "/handoffs"))[1]
    assert "Build the limiter" in (await seen.api.call("GET", f"/handoffs/{handoff['id']}"))[1]["document"]
    await seen.press("h")
    await seen.until("c cancel the one that is pending")
    await seen.press("c")
    await seen.until("handoff cancelled")


async def test_k_asks_first(seen):
    await seen.press("k")
    await seen.until("End alpha?")
    await seen.press("escape")
    assert not seen.app.chosen.ended
    await seen.press("k", "y")
    await seen.until("ended alpha")
    await seen.until(lambda: seen.app.chosen.ended)


async def test_k_then_c_ends_the_children_too(seen):
    child = await seen.api.new("beta", parent=chosen(seen))
    await seen.until("└ beta")
    await seen.press("k", "c")
    await seen.until("ended alpha, beta") if seen.app.size.width > 100 else None
    await seen.until(lambda: seen.row(child).ended)


async def test_r_restores_what_has_ended_and_nothing_else(seen):
    await seen.press("r")
    await seen.until("has not ended")
    await seen.press("k", "y")
    await seen.until(lambda: seen.app.chosen.ended)
    await seen.press("r")
    await seen.until("restored alpha")
    await seen.until(lambda: not seen.app.chosen.ended)


async def test_d_shows_documents_as_a_chain_with_their_difference(seen):
    session = chosen(seen)
    place = seen.api.home.root.parent
    for number, text in enumerate(("goal\nfirst step\nrest", "goal\nsecond step\nrest")):
        (place / f"doc{number}.md").write_text(text)
        body = {"requester_session_id": session, "file_path": str(place / f"doc{number}.md")}
        status, answer = await seen.api.call("POST", f"/sessions/{session}/handoff", body=body)
        assert status == 200, answer
        seen.api.clock.advance(60)
    await seen.press("d")
    await seen.until("second step")
    await seen.press("d")
    await seen.until("+second step")
    assert "-first step" in seen.text()
    await seen.press("down")
    await seen.until("it is the first one of the chain")
    await seen.press("d")
    await seen.until("first step")


async def test_slash_filters_and_escape_shows_all(seen):
    await seen.api.new("beta")
    await seen.until("beta")
    await seen.press("slash")
    await seen.type("bet")
    await seen.until("1 of 2: bet")
    assert [row.name for row in seen.app.main.list.shown] == ["beta"]
    await seen.press("enter", "escape")
    assert len(seen.app.main.list.shown) == 2


async def test_s_searches_and_a_hit_leads_to_its_session(seen):
    other = await seen.api.new("beta")
    shows(seen.api, other, "a token bucket\r\n\r\n" + "line\r\n\r\n" * 200)
    await tended(seen.api)
    await seen.until("beta")
    await seen.press("home", "s")
    await seen.type("zzz")
    await seen.press("enter")
    await seen.until("no hit")
    await seen.press(*["backspace"] * 3)
    await seen.type("bucket")
    await seen.press("enter")
    await seen.until("beta context 1 · terminal")
    await seen.press("enter")
    await seen.until(lambda: seen.app.screen is seen.app.main)
    assert seen.app.chosen.id == other


async def test_colon_runs_a_command_and_shows_what_it_prints(seen):
    await seen.press("colon")
    await seen.type("--version")
    await seen.press("enter")
    await seen.until("$ sm --version")
    await seen.until(lambda: seen.text().count("sm 0") >= 1 or (seen.text().count("\n") and " 0." in seen.text()))
    await seen.type("nope")
    await seen.press("enter")
    await seen.until("exit code 2")
    await seen.type("attach x")
    await seen.press("enter")
    assert seen.terminal.ran == [["attach", "x"]]
    await seen.press("escape")
    await seen.gone("$ sm --version")


async def test_u_shows_the_runs_of_the_directory(seen, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".issues").mkdir(parents=True)
    (project / ".issues" / "P2-FEAT-001-slug.md").write_text("# One\n")
    await git("init", "-q", project)
    monkeypatch.chdir(tmp_path)
    await seen.press("u")
    await seen.until("No .issues/ or TODO.md in")
    await seen.press("u")
    monkeypatch.chdir(project)
    await seen.press("u")
    await seen.until("no runs: sm auto begins one")
    await seen.press("u")
    await seen.gone("Runs of this directory")


async def git(*words):
    process = await asyncio.create_subprocess_exec("git", *words)
    assert await process.wait() == 0


def test_a_run_is_shown_with_how_far_its_issues_are():
    runs = [{"run": "r2", "state": "works", "issues": ["A", "B"]}, {"run": "r1", "state": "ended", "issues": ["A"]}]
    issue = {"issue": "A", "state": "works", "session": "ab12", "step": "check", "outcome": None}
    ended = {"issue": "B", "state": "ended", "session": "", "step": "", "outcome": {"result": "merged", "reason": ""}}
    assert list(run_lines(runs, {**runs[0], "issues": [issue, ended]})) == [
        "r2  works  2 issues",
        "  A  works  ab12  check",
        "  B  merged",
        "r1  ended  1 issue",
    ]


async def test_i_shows_context_rotation_messages_and_cost(seen):
    session = chosen(seen)
    await seen.api.call("POST", f"/sessions/{session}/messages", body={"text": "hello there"})
    await seen.press("i")
    await seen.until("CONTEXT")
    await seen.press("pagedown")
    await seen.until("hello there")
    assert "queued" in seen.text()
    await seen.press("end", "pagedown")
    await seen.until("this session: $0.00")
    await seen.press("i")
    await seen.gone("this session: $0.00")


async def test_a_rule_across_a_pane_stays_one_line_and_all_other_text_is_whole(seen):
    class Wide:
        async def history(self):
            return "─" * 250 + "\nlast " + "word " * 60

    seen.api.engine.ports.panes.pane = lambda _: Wide()
    await seen.press("space")
    await seen.until("last word")
    inside = [line for line in seen.text().split("\n") if line.startswith("│")]
    assert sum("───" in line for line in inside) == 1
    assert seen.words().count("word") == 60


async def test_question_mark_explains_every_key_and_mark(seen):
    await seen.press("question_mark")
    text = seen.words()
    for _ in range(12):
        await seen.press("down")
        text += seen.words()
    explained = [(key.shown, key.words) for key in KEYS] + [*LEGEND]
    assert [name for name, words in explained if words not in text] == []
    await seen.press("escape")
    await seen.gone("Keys")


async def test_the_keys_that_need_a_session_do_nothing_without_one(tmp_path, width):
    async with watching(tmp_path, width) as seen:
        for key in KEYS:
            if key.key != "q":
                await seen.press(key.key, "escape", "escape")
        assert seen.terminal.ran == []
        assert seen.app.is_running
