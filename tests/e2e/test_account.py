"""The document made without a model, on the real client: what it holds is what that client's transcript told."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.people import AWOKE, person_settings, submit
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

REQUEST = "Add a dry run to the importer. Never touch vendor/."
CHOICE = "Decision: a preview table rather than a log, because people want to sort it."
WORK = [
    Together(Say(CHOICE), Call("Write", file_path="importer.py", content="x = 1\n")),
    Call("Bash", command="sh -c 'echo error: row 7 is bad; exit 3'"),
    Call("Bash", command="sleep 300", description="Soak test", run_in_background=True),
    Call("Bash", command="sm handoff --auto"),
    Say("Handed off."),
]
SCRIPT = scenario(
    Turn("dry run", steps=WORK),
    Turn(AWOKE, steps=[Call("Bash", command="sm handoff --auto"), Say("Handed off again.")], times=1, name="second"),
    Turn(AWOKE, steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)


async def test_an_agent_hands_off_without_writing_a_document():
    async with Rig(SCRIPT, config="[handoff]\nwait_background = 0\n") as rig:
        person_settings(rig, permissions={"allow": ["Bash", "Write"]})
        session = await rig.new(REQUEST)
        first = await rig.model.wait_for(lambda request: AWOKE in request.user_text, within=40)
        for kept in (
            "=== HANDOFF LOADED (ID: HO-",
            "Type: auto",
            f'- "{REQUEST}"',
            '- "Never touch vendor/."',
            f"- {CHOICE}",
            "- `importer.py`: created",
            "`sh -c 'echo error: row 7 is bad; exit 3'` failed: error: row 7 is bad",
            "- Still running in the background: Soak test (`sleep 300`)",
        ):
            assert kept in first.all_text
        assert "Interrupted, not applied" not in first.all_text
        assert f"Read {rig.project}/.sm/handoff-auto-{session}.md and " in first.user_text  # C2: a name of its own

        second = await rig.model.wait_for(
            lambda request: AWOKE in request.user_text and "### From the Handoff Before" in request.all_text, within=40
        )
        assert '- User-Specified Constraints: "Never touch vendor/."' in second.all_text
        assert (await rig.view(session))["past_conversations"]


QUESTION = {
    "question": "Which format?",
    "header": "Format",
    "multiSelect": False,
    "options": [{"label": "CSV", "description": "plain"}, {"label": "JSON", "description": "nested"}],
}
PLAN = "# Offline mode\n\n1. Cache in IndexedDB\n2. Outbox table outbox_v1"


async def account_of(rig, session, words=""):
    """The document made of its transcript, once that has those words: the client writes later than it shows."""
    path = (await rig.view(session))["transcript"]

    def document():
        return rig.sm("handoff", "--auto", "--transcript", path).stdout

    await rig.until(lambda: words in document(), f"{words!r} in the document")
    return document()


@pytest.mark.soak
async def test_words_typed_with_a_yes_and_an_answered_question_are_in_it():
    work = [Call("Bash", command="touch x.txt"), Call("AskUserQuestion", questions=[QUESTION]), Say("Noted.")]
    async with Rig(scenario(Turn("run it", steps=work), otherwise=Say("ok"))) as rig:
        person_settings(rig, permissions={"defaultMode": "default"})
        session = await rig.new("run it")
        await rig.wait_screen(session, "Do you want to proceed?")
        await asyncio.sleep(0.5)  # a dialog is deaf for its first 0.1 s (2.1.328)
        rig.press(session, "Tab")
        rig.type(session, "but never touch y.txt")
        await rig.wait_screen(session, "but never touch y.txt")
        rig.press(session, "Enter")
        await rig.wait_screen(session, "Which format?")
        await asyncio.sleep(0.5)
        rig.press(session, "Down", "Enter")
        await rig.wait_screen(session, "Noted.")
        await rig.wait_status(session, "idle")
        text = await account_of(rig, session)
        assert '- "but never touch y.txt" (said when approving `touch x.txt`)' in text
        assert '- The user chose for "Which format?": JSON' in text


@pytest.mark.soak
async def test_a_plan_that_was_refused_and_then_approved_is_in_it_as_it_ended():
    first = Call("ExitPlanMode", plan="# Offline mode\n\n1. localStorage")
    script = scenario(
        Turn("plan it", steps=[first, Say("ok")], times=1),
        Turn("not localStorage", steps=[Call("ExitPlanMode", plan=PLAN), Say("Started.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        session = await rig.new("plan it", "--permission-mode", "plan")
        await rig.wait_screen(session, "Exit plan mode?")
        await asyncio.sleep(0.5)  # a dialog is deaf for its first 0.1 s (2.1.328)
        rig.press(session, "Down", "Enter")
        await rig.wait_status(session, "idle")
        await account_of(rig, session, "Refused by the user, and no other approved since:")
        await submit(rig, session, "not localStorage")
        await rig.wait_screen(session, "Exit plan mode?")
        await asyncio.sleep(0.5)
        rig.press(session, "Enter")
        await rig.wait_screen(session, "Started.")
        await rig.wait_status(session, "idle")
        approved = "Approved by the user:\n> # Offline mode\n> 1. Cache in IndexedDB\n> 2. Outbox table outbox_v1\n"
        text = await account_of(rig, session, approved)
        assert "Refused" not in text
