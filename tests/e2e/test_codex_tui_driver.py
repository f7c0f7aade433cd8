"""The driver by keys and what is told of its client, on the real Codex in a pane."""

import time

import pytest

from sm.core.events import Activity
from sm.providers.codex.tui import threads
from sm.providers.codex.tui.driver import DRAFT
from sm.providers.codex.tui.input_box import COVERED
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.codex_tui import CODEX, CodexTui, never

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not CODEX.exists(), reason="the pinned client is not installed"),
]

ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "it must"}
SCRIPT = scenario(
    Turn("run (?P<what>[^;]+);", steps=[Call("exec_command", cmd="{{what}}"), Say("Ran it.")]),
    Turn("ask (?P<what>[^;]+);", steps=[Call("exec_command", cmd="{{what}}", **ESCALATED), Say("Asked.")]),
    otherwise=Say("ok"),
)


@pytest.fixture
async def tui():
    async with CodexTui(SCRIPT) as found:
        await found.start()
        await found.is_in_state(Activity.IDLE)
        yield found


DRAFTS = {
    "no draft": "",
    "a draft": "my draft with $HOME and @file",
    "a wrapped draft": "word " * 60 + "end",
}


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS.keys())
@pytest.mark.often("a draft")
async def test_context_after_context_begins_from_a_prompt_and_a_draft_stays(tui, draft):
    await tui.prompted("first")
    await tui.type(draft)
    conversations = {tui.state().conversation}
    for number in range(20):
        await tui.cleared()
        await tui.prompted(f"Read it, number {number}.")
        conversations.add(tui.state().conversation)
        assert tui.heard[-1].session_id == tui.state().conversation
    assert len(conversations) == number + 2
    assert tui.prompts == ["first", *(f"Read it, number {count}." for count in range(number + 1))]
    assert {start.source for start in tui.events("SessionStart")[1:]} == {"clear"}
    box = await tui.until(tui.box, "the box")
    assert box.holds(draft)


TEXTS = [
    "!ls",
    "/tmp",
    "/new things",
    "look at $HOME",
    "$PPID",
    "@README",
    "see @file",
    "#note",
    "?",
    "one\ntwo\n\nfour",
    "- a\n- b\n" + "    indented\n" * 3 + "end",
    "\N{GRINNING FACE} gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n \N{CJK UNIFIED IDEOGRAPH-6F22}\N{EURO SIGN}",
    "e\N{COMBINING ACUTE ACCENT} \N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN} flag",
    "x" * 1_001,
    "\n".join(f"line {number}" for number in range(90)),
    "word " * 180 + "end",
    "\n".join(f"{number}: " + "text " * 10 for number in range(110))[:6_000],
]


async def test_each_text_arrives_as_it_is(tui):
    for text in TEXTS:
        await tui.prompted(text)
        assert tui.prompts[-1] == text.strip()
    assert (await tui.box()).empty


async def test_a_draft_of_several_lines_is_waited_for_and_left_as_it_is(tui):
    draft = "one\ntwo\nthree"
    await tui.type(draft)
    assert not await tui.ready("/clear", within=4)
    assert tui.held[-1] == DRAFT
    assert (await tui.box()).text == draft
    await tui.panes.press(tui.id, "C-u", times=10)
    assert await tui.ready("/clear")


@pytest.mark.soak
async def test_a_turn_that_runs_is_waited_for(tui):
    assert await tui.ready()
    await tui.driver.prompt("run sleep 4;", never)
    await tui.is_in_state(Activity.BUSY)
    assert not await tui.ready("/clear", within=1.5)
    assert tui.held[-1] == "the client is busy"
    assert await tui.driver.clear(never) == "the client is busy"
    await tui.cleared()
    assert [stop.turn_id for stop in tui.events("Stop")] != []


@pytest.mark.soak
async def test_a_prompt_joins_the_turn_that_runs(tui):
    await tui.prompted("first")  # while a client starts, a second prompt waits for the first one's turn
    assert await tui.ready()
    await tui.driver.prompt("run sleep 4;", never)
    await tui.is_in_state(Activity.BUSY)
    assert await tui.ready(busy=True, patience=0.0)
    assert await tui.driver.prompt("and look at $HOME", never, now=True) is None
    await tui.until(lambda: len(tui.events("Stop")) == 2, "the end of the turn")
    assert tui.prompts == ["first", "run sleep 4;", "and look at $HOME"]
    first, second = tui.events("UserPromptSubmit")[1:]
    assert first.turn_id == second.turn_id


async def test_no_key_goes_into_a_dialog(tui):
    assert await tui.ready()
    await tui.driver.prompt("ask echo done >&2;", never)
    await tui.shows("Would you like to run the following command?")
    state = tui.state()
    assert (state.activity, state.detail) == (Activity.WAITING, "permission for Bash")
    for act in (tui.driver.clear(never), tui.driver.prompt("x", never), tui.driver.prompt("x", never, now=True)):
        assert await act == "a dialog is open: permission for Bash"
    assert not await tui.ready("/clear", within=1.5)
    assert await tui.driver.withdraw() is None
    await tui.shows("Would you like to run the following command?")
    await tui.panes.press(tui.id, "Enter")
    await tui.cleared()
    assert [used.tool_name for used in tui.events("PostToolUse")] == ["Bash"]


async def test_no_key_goes_into_a_dialog_that_only_the_screen_shows(tui):
    await tui.prompted("first")  # the client opens no picker while it starts
    await tui.type("/model")
    await tui.panes.press(tui.id, "Enter")
    await tui.shows("Select Model")
    assert tui.state().activity is Activity.IDLE
    assert not await tui.ready("/clear", within=1.5)
    assert tui.held[-1] == COVERED
    assert await tui.driver.clear(never) == COVERED
    await tui.panes.press(tui.id, "Escape")
    await tui.cleared()


@pytest.mark.soak
async def test_a_command_that_was_allowed_is_work_and_no_dialog(tui):
    assert await tui.ready()
    await tui.driver.prompt("ask sleep 5;", never)
    await tui.shows("Would you like to run the following command?")
    await tui.is_in_state(Activity.WAITING)
    await tui.panes.press(tui.id, "Enter")
    await tui.is_in_state(Activity.BUSY)
    assert not tui.events("PostToolUse")
    await tui.is_in_state(Activity.IDLE)


async def test_an_interrupted_turn_is_over(tui):
    assert await tui.ready()
    await tui.driver.prompt("run sleep 30;", never)
    await tui.until(lambda: tui.state().activity is Activity.BUSY, "work")
    await tui.shows("esc to interrupt")
    await tui.panes.press(tui.id, "Escape")
    await tui.is_in_state(Activity.IDLE)
    assert tui.events("Stop") == []
    await tui.cleared()


async def test_what_gives_way_leaves_nothing_behind_and_a_draft_in_its_place(tui):
    await tui.type("my draft")
    assert await tui.ready()
    looks = iter([False])
    assert await tui.driver.prompt("look", lambda: next(looks, True)) == "gave way"
    box = await tui.box()
    assert box.holds("my draft")
    assert tui.prompts == []


async def test_a_folder_is_trusted_by_its_user_alone():
    async with CodexTui(SCRIPT, trusted=False, repository=True) as tui:
        await tui.start()
        await tui.shows("Trust this folder?")
        assert tui.state() is None
        assert not await tui.ready("/clear", within=1.5)
        assert await tui.driver.clear(never)
        await tui.shows("Trust this folder?")
        assert "trust_level" not in (tui.config / "config.toml").read_text()
        await tui.panes.press(tui.id, "Enter")
        await tui.is_in_state(Activity.IDLE)
        await tui.prompted("hello")


async def test_in_a_repository_a_new_context_is_as_plain():
    async with CodexTui(SCRIPT, repository=True) as tui:
        await tui.start(prompt="!echo begin")
        await tui.until(lambda: tui.events("Stop"), "the end of the first turn")
        assert tui.prompts == [" !echo begin"]
        await tui.cleared()
        await tui.prompted("hello")


async def test_a_thread_is_continued_and_only_one_process_has_it():
    async with CodexTui(SCRIPT) as tui:
        await tui.start(prompt="hello")
        await tui.until(lambda: tui.events("Stop"), "the end of the first turn")
        thread = tui.state().conversation
        found = threads.running(tui.config, thread)
        assert found.pid == threads.client_process(tui.config, tui.pid)
        assert found.terminal.startswith("/dev/pts/")
        await tui.panes.kill(tui.id)
        await tui.until(lambda: threads.running(tui.config, thread) is None, "the end of the client")
        await tui.start(resume=thread, prompt="go on")
        await tui.until(lambda: len(tui.events("Stop")) == 2, "the end of the next turn")
        assert tui.state().conversation == thread
        assert [start.source for start in tui.events("SessionStart")] == ["startup", "resume"]


async def test_a_turn_that_its_client_left_unfinished_is_over_in_the_next():
    async with CodexTui(SCRIPT) as tui:
        await tui.start(prompt="run sleep 30;")
        await tui.is_in_state(Activity.BUSY)
        thread = tui.state().conversation
        await tui.panes.kill(tui.id)
        await tui.until(lambda: threads.running(tui.config, thread) is None, "the end of the client")
        await tui.start(resume=thread)
        await tui.is_in_state(Activity.IDLE)
        assert tui.state().conversation == thread
        await tui.prompted("hello")


async def test_a_look_is_cheap(tui):
    await tui.prompted("hello")
    began = time.perf_counter()
    for _ in range(200):
        tui.state()
    assert (time.perf_counter() - began) / 200 < 0.002
