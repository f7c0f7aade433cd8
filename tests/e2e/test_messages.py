"""Messages between sessions on the real client: each arrives once, by its channel, and its receipt says so."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from sm.providers.claude.traits import CLAUDE
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.conftest import BY_KEYS
from tests.e2e.people import GOES_ON, HANDED_OFF, SLOW, WROTE, Person, box_shows, box_text, client_is, dialog
from tests.e2e.rig import REAL_CLIENT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

WORK = Turn("work on it", steps=[Call("Bash", command="sleep 3"), Call("Bash", command="sleep 2"), Say("Done.")])
ALLOWED = "[primer]\nenabled = false\n"
BY_DRIVER = {("mod", "tool"): "plugin", ("codex", "tool"): "plugin", ("codex", "stop"): "paste"}
"""Where a driver has a channel of its own: what waits for the turn's end is the next prompt of Codex."""
MODES = ("sequential", "important", "urgent", "steer")


def agents(*turns):
    return scenario(WORK, *turns, otherwise=Say("ok"))


async def idle(rig, session):
    await rig.wait_status(session, "idle")


async def sent(rig, session, text, **options):
    return str((await rig.ask("POST", f"/sessions/{session}/messages", {"text": text, **options}))["id"])


async def receipt(rig, message):
    return dict(await rig.ask("GET", f"/messages/{message}"))


async def confirmed(rig, message, channel=None):
    async def look():
        while (found := await receipt(rig, message))["state"] not in {"confirmed", "unconfirmed", "failed", "expired"}:
            await asyncio.sleep(0.05)
        return found

    found = await asyncio.wait_for(look(), 40)
    assert (found["state"], found["channel"]) == ("confirmed", channel or found["channel"])
    assert found["queued"] <= found["delivered"] <= found["confirmed"]
    return found


def arrivals(rig, words):
    """How often the model has been told these words, over the whole of each conversation's last request."""
    last = {request.session: request for request in rig.model.main_requests}
    return sum(request.all_text.count(words) for request in last.values())


NOTE = re.compile(r"note \d\d-\d\d\d")


def last_request(rig):
    return max(rig.model.main_requests, key=lambda request: len(request.messages))


def told_notes(rig):
    return len(NOTE.findall(last_request(rig).all_text)) if rig.model.main_requests else 0


def working(rig, *arguments):
    return rig.new("work on it", "--allowedTools", "Bash(sleep:*)", *arguments, name="b")


@pytest.mark.parametrize(
    ("mode", "channel"),
    [("sequential", "stop"), ("important", "tool"), ("urgent", "urgent"), ("steer", "tool")],
)
@pytest.mark.often("sequential-stop", "important-tool", "urgent-urgent")
async def test_a_message_to_an_agent_that_works_arrives_once_by_the_channel_of_its_mode(mode, channel, driver):
    async with Rig(agents()) as rig:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        await asyncio.sleep(0.5)
        message = await sent(rig, session, "look at the tests", mode=mode)
        await confirmed(rig, message, BY_DRIVER.get((driver, channel), channel))
        await idle(rig, session)
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.parametrize("mode", ["sequential", "important", "urgent"])
@pytest.mark.often("sequential")
async def test_a_message_to_an_idle_agent_is_typed_as_its_next_prompt(mode):
    async with Rig(agents()) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        await client_is(rig, "idle")
        await idle(rig, session)
        message = await sent(rig, session, "look at the tests", mode=mode)
        await confirmed(rig, message, "paste")
        request = await rig.model.wait_for(lambda request: "look at the tests" in request.user_text)
        assert request.user_text.strip() == "look at the tests"


@pytest.mark.soak
async def test_messages_that_wait_go_along_with_the_one_that_is_typed():
    async with Rig(agents()) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        sender = await rig.new("hello", name="worker")
        words = [f"part {number} of what I found" for number in range(12)]
        messages = await asyncio.gather(*(rig.say(sender, session, text) for text in words))
        channels = [(await confirmed(rig, message))["channel"] for message in messages]
        assert channels.count("paste") >= 1
        await idle(rig, session)
        assert [arrivals(rig, text) for text in words] == [1] * 12


@pytest.mark.parametrize("mode", ["sequential", "important", "urgent"])
@pytest.mark.often("sequential")
async def test_a_message_that_comes_during_a_rotation_waits_for_the_new_context(mode):
    script = scenario(Turn("hand off", steps=[WROTE, HANDED_OFF, SLOW]), GOES_ON, otherwise=Say("ok"))
    async with Rig(script) as rig:
        session = await rig.new("please hand off", name="b")
        await rig.wait_phase(session, "pending")
        message = await sent(rig, session, "look at the tests", mode=mode)
        await rig.wait_phase(session, "done")
        await confirmed(rig, message)
        request = await rig.model.wait_for(lambda request: "look at the tests" in request.all_text)
        assert "please hand off" not in request.all_text
        await idle(rig, session)
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.not_in_terminal("its dialog opens only once sm has let go of its hook: see `test_codex_terminal.py`")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.often("steer")
async def test_a_message_that_comes_while_a_dialog_stands_answers_nothing_and_comes_after_it(mode, driver):
    made = Call("Bash", command="touch made", dangerouslyDisableSandbox=True)
    asks = Turn("make it", steps=[made, Say("Made.")])
    async with Rig(agents(asks)) as rig:
        session = await rig.new("make it", name="b")
        await rig.wait_status(session, "waiting")
        await rig.wait_screen(session, dialog())
        message = await sent(rig, session, "look at the tests", mode=mode)
        await asyncio.sleep(2)
        assert dialog() in rig.screen(session)
        assert not (rig.project / "made").exists()
        told = driver != "keys" and mode in {"important", "steer"}  # it waits in the client for the next request
        assert (await receipt(rig, message))["state"] == ("delivered" if told else "queued")
        rig.press(session, "Enter")
        await confirmed(rig, message)
        await idle(rig, session)
        assert (rig.project / "made").exists()
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.not_in_terminal("a draft of several lines cannot be set aside there, and is waited for")
@pytest.mark.parametrize("mode", ["sequential", "urgent"])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "working"])
@pytest.mark.soak
async def test_a_draft_is_as_it_was_after_a_message(mode, busy):
    draft = "and then look\nat the seams"
    async with Rig(agents()) as rig:
        session = await (working(rig) if busy else rig.new("hello", name="b"))
        await rig.model.wait_for(lambda _: True)
        if not busy:
            await rig.wait_event(session, "TurnEnded")
        await asyncio.sleep(1)
        rig.tmux("set-buffer", "-b", "person", "--", draft)
        rig.tmux("paste-buffer", "-p", "-d", "-b", "person", "-t", rig.pane(session))
        await box_shows(rig, session, draft)
        message = await sent(rig, session, "look at the tests", mode=mode)
        await confirmed(rig, message)
        await idle(rig, session)
        await box_shows(rig, session, draft)
        assert arrivals(rig, "look at the tests") == 1
        assert not any("at the seams" in request.all_text for request in rig.model.requests)


@BY_KEYS
@pytest.mark.soak
async def test_a_person_who_goes_on_typing_holds_a_message_no_longer_than_they_may():
    async with Rig(agents(), config="[user_input]\nmax_hold = 4\n") as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        with Person(rig, session) as person:
            person.type("x")
            await box_shows(rig, session, "x")
            message = await sent(rig, session, "look at the tests")
            for _ in range(10):  # 3 s
                person.type("x")
                await asyncio.sleep(0.3)
                assert (await receipt(rig, message))["state"] == "queued"
            while (await receipt(rig, message))["state"] == "queued":
                person.type("x")
                await asyncio.sleep(0.3)
        await confirmed(rig, message, "paste")
        await rig.until(lambda: set(box_text(rig, session) or "") == {"x"}, "the draft in the box")
        request = await rig.model.wait_for(lambda request: "look at the tests" in request.user_text)
        assert request.user_text.strip() == "look at the tests"


@pytest.mark.soak
async def test_a_pane_that_was_scrolled_back_takes_a_message():
    async with Rig(agents()) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        rig.tmux("copy-mode", "-t", rig.pane(session))
        await confirmed(rig, await sent(rig, session, "look at the tests"), "paste")


async def test_a_long_message_is_a_file_that_the_agent_reads_without_asking_anybody():
    body = "first line\n" + "x" * 199_000 + "\nthe last words"
    reads = Turn(
        r"Read the message in (?P<file>\S+) and act on it",
        steps=[Call("Read", file_path="{{file}}", limit=1), Say("ok")],
    )
    async with Rig(agents(reads)) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        message = await sent(rig, session, body)
        await confirmed(rig, message, "paste")
        await rig.model.wait_for(lambda request: any("first line" in result.text for result in request.tool_results))
        assert not await rig.events(session, "PermissionAsked")
        assert (rig.home.messages / session / f"{message}.md").read_text() == body


async def test_a_command_of_a_person_is_typed_as_it_is():
    async with Rig(agents()) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        message = await sent(rig, session, "/clear", command=True)
        # In a terminal the lock of its new thread shows it, and its hook comes with the next prompt.
        await rig.wait_event(session, "ConversationStarted", origin="witness" if rig.terminal else "clear")
        await confirmed(rig, message, "command")


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3])
@pytest.mark.soak
async def test_a_server_killed_while_a_message_is_handed_over_delivers_it_once(seconds):
    async with Rig(agents()) as rig:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        message = await sent(rig, session, "look at the tests")
        while (await receipt(rig, message))["state"] == "queued":
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        await rig.kill_server()
        await rig.start_server()
        await confirmed(rig, message)
        await idle(rig, session)
        await asyncio.sleep(2)
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.claude_only("the app-server sends no hooks")
@pytest.mark.soak
async def test_two_stop_hooks_at_once_carry_a_message_once():
    async with Rig(agents()) as rig:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        message = await sent(rig, session, "look at the tests")
        stop = {"session_id": (await rig.view(session))["conversation"], "hook_event_name": "Stop"}
        answers = await asyncio.gather(*(rig.ask_as(session, "POST", "/hooks/claude", stop) for _ in range(2)))
        assert sum("look at the tests" in str(answer) for answer in answers) == 1
        await confirmed(
            rig, message
        )  # those replies reached nobody: the transcript does not show it, so it comes again
        await idle(rig, session)
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.claude_only("the scripted client stands in for Claude Code")
@pytest.mark.soak
async def test_sixteen_senders_of_a_hundred_messages_each_lose_none_and_keep_their_order():
    limits = "[limits]\nsends_per_minute = 1000\nqueued = 5000\n"
    async with Rig(scenario(otherwise=Say("ok")), config=limits) as rig:
        rig.use_scripted_agent()
        session = await rig.new(name="target")
        senders = [await rig.new(name=f"sender-{number}") for number in range(16)]
        await rig.wait_event(session, "ConversationStarted")

        async def send(number, sender):
            ask = await rig.asking_as(sender)
            for count in range(100):
                await ask("POST", "/messages", {"to": "target", "text": f"note {number:02}-{count:03}"})

        await asyncio.gather(*(send(number, sender) for number, sender in enumerate(senders)))
        await rig.until(lambda: told_notes(rig) >= 1600, "everything told", patience=90)
        await idle(rig, session)
        notes = NOTE.findall(last_request(rig).all_text)
        assert len(notes) == len(set(notes)) == 1600
        assert all(
            sorted(own) == own
            for own in ([note for note in notes if note.startswith(f"note {number:02}")] for number in range(16))
        )


ENDING_WORDS = ("exit", "quit", ":q", ":q!", ":wq", ":wq!", "  exit ")


@pytest.mark.parametrize("word", ENDING_WORDS)
@pytest.mark.claude_only("no word ends Codex by its app-server")
@pytest.mark.soak
async def test_a_word_that_the_client_takes_for_its_end_reaches_the_agent_as_a_word(word):
    """C3: as the first prompt and as a message, with the client still there afterwards."""
    async with Rig(agents()) as rig:
        session = await rig.new(word, name="b")
        first = await rig.model.wait_for(lambda request: "Read the message in" in request.user_text)
        assert first.user_text.strip().endswith("and act on it.")
        await rig.wait_event(session, "TurnEnded")
        message = await sent(rig, session, word)
        await confirmed(rig, message, "paste")
        assert (rig.home.messages / session / f"{message}.md").read_text().strip() == word.strip()
        await idle(rig, session)
        assert not await rig.events(session, "ClientExited")


@pytest.mark.claude_only("no word ends Codex by its app-server")
async def test_the_clients_own_list_of_words_that_end_it_is_ours():
    """C3: read from the pinned client, so that a newer one with another word is noticed."""
    program = await asyncio.to_thread(REAL_CLIENT.resolve().read_bytes)
    lists = {frozenset(json.loads(found)) for found in re.findall(rb'\["exit"(?:,"[^"]{1,8}")+\]', program)}
    assert CLAUDE.exit_words in lists


@pytest.mark.soak
async def test_a_message_that_waits_is_taken_back():
    """C3: `sm message ID --cancel`; what was delivered is not."""
    async with Rig(agents()) as rig:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        message, kept = await sent(rig, session, "forget this"), await sent(rig, session, "look at the tests")
        done = await asyncio.to_thread(rig.sm, "message", message, "--cancel")
        assert done.stdout.startswith(f"{message} failed: cancelled before it was delivered\n")
        await confirmed(rig, kept)
        await idle(rig, session)
        assert (arrivals(rig, "forget this"), arrivals(rig, "look at the tests")) == (0, 1)
        late = await asyncio.to_thread(rig.sm, "message", kept, "--cancel")
        assert (late.returncode, late.stderr.splitlines()[0]) == (1, f"Error: Message {kept} is already confirmed")


@pytest.mark.soak
async def test_a_message_whose_client_is_killed_as_it_takes_it_is_confirmed_only_once_it_was_told():
    """C9: killed right at UserPromptSubmit; after the restore it has been told exactly once."""
    async with Rig(scenario(Turn("look at the tests", steps=[Say("Looked.", delay=3.0)]), otherwise=Say("ok"))) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        await idle(rig, session)
        message = await sent(rig, session, "look at the tests")
        await rig.recorded(
            "kind = 'PromptSubmitted' AND number > (SELECT max(number) FROM events WHERE kind = 'TurnEnded')"
        )
        await rig.kill_client(session)
        await rig.wait_status(session, "crashed")
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        found = await confirmed(rig, message)
        await idle(rig, session)
        transcript = Path((await rig.view(session))["transcript"]).read_text()
        users = '"role":"user"' if rig.codex else '"type":"user"'
        prompts = [json.loads(line) for line in transcript.splitlines() if users in line]
        told = [record for record in prompts if "look at the tests" in json.dumps(record)]
        assert (found["state"], len(told)) == ("confirmed", 1)
