"""What an agent may still do once its context is critically full and the gate is on."""

from dataclasses import replace

import pytest

from sm.core import events as ev
from sm.core.effects import AddContext, DenyTool, LeavePane, RecordHandoff
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.rules.gate import is_document, reason, serves_handoff
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, Playbook, event, idle_session

DOCUMENT = "<<'EOF'\n# Handoff\nrun `rm -rf x` and $(date)\nsm && rm\nEOF\n"


@pytest.mark.parametrize(
    "command",
    [
        "sm handoff .sm/handoff.md",
        "sm handoff .sm/handoff.md --reason 'context is full; really'",
        'sm handoff "/home/dev/a b/.sm/handoff.md"',
        "cd /home/dev/proj && sm handoff .sm/handoff.md",
        "FOO=1 BAR='a b' sm handoff .sm/handoff.md",
        "true; sm status",
        "sm context\nsm handoff x.md",
        "sm handoff .sm/handoff.md 2>&1",
        "sm handoff .sm/handoff.md >/dev/null",
        "sm handoff \\\n  .sm/handoff.md",
        "sm handoff $PWD/.sm/handoff.md",
        "sm handoff - <<'EOF'\nthe shell takes the rest for it",
        f"sm handoff - {DOCUMENT}",
        f"cat > .sm/handoff.md {DOCUMENT}",
        f"mkdir -p .sm && cat {DOCUMENT.replace('EOF', 'END', 1).replace('EOF', 'END')}".replace(
            "cat", "cat > .sm/handoff.md", 1
        ),
        f"mkdir -p .sm && cat > .sm/handoff.md {DOCUMENT}sm handoff .sm/handoff.md",
        'sm handoff - <<-"DOC"\n\tgoal\n\tDOC',
    ],
)
def test_commands_that_serve_the_handoff(command):
    assert serves_handoff(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make test",
        "true",
        "cd /tmp",
        "sm handoff x.md && make test",
        "make test; sm handoff x.md",
        "sm handoff x.md & make test",
        "sm handoff x.md | sh",
        "sm handoff $(make test)",
        "sm handoff `make test`",
        'sm handoff "$(make test)"',
        "sm handoff <(make test)",
        "(sm handoff x.md)",
        "{ sm handoff x.md; }",
        "if true; then sm handoff x.md; fi",
        "sm",
        "sm spawn 'go on'",
        "smash handoff x.md",
        "sm-handoff x.md",
        "echo sm handoff",
        "cat .sm/handoff.md",
        "cat > src/main.py <<'EOF'\nx\nEOF\n",
        "sm handoff x.md > src/main.py",
        "sm handoff - <<EOF\n$(make test)\nEOF\n",
        "sm handoff - <<'EOF'\nx\nEOF\nmake test",
        "sm status \"<<'EOF'\"\nmake test\nEOF",
        "sm status '\nmake test",
        "sm status # it's ok",
        "PATH=/evil make",
    ],
)
def test_commands_that_do_anything_else(command):
    assert not serves_handoff(command)


@pytest.mark.parametrize(
    "path", [".sm/handoff.md", ".sm/handoff-0a1b2c3d.md", "/home/dev/p/.sm/handoff.md", "/p/.sm/continue-prompt.md"]
)
def test_the_documents(path):
    assert is_document(path)


@pytest.mark.parametrize(
    "path",
    ["", "handoff.md", ".sm/config.toml", "x.sm/handoff.md", "/p/.sm/../.sm/handoff.md", ".sm/handoff-config.md"],
)
def test_other_files(path):
    assert not is_document(path)


def test_the_reason_names_the_way_out_which_is_let_through():
    """C2: the file is the session's own."""
    assert "sm handoff .sm/handoff-0a1b2c3d.md`" in reason("0a1b2c3d", CLAUDE)
    assert serves_handoff("sm handoff .sm/handoff-0a1b2c3d.md")


# --- when it is closed ---------------------------------------------------------------------------------------------

DENIED = DenyTool(reason("a" * 8, CLAUDE))
MAKE = event(ev.ToolAsked, tool="Bash", permitted=False)
HANDS_OFF = event(ev.ToolAsked, tool="Bash", permitted=True)


def working(tokens, **policy):
    session = replace(idle_session(), policy=Policy(gate=True, **policy))
    reading = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, window=200_000)
    read = event(ev.ContextRead, epoch=0, reading=reading, usable=167_000)
    return (Playbook(session) >> event(ev.PromptSubmitted, text="x") >> read).skip(AddContext)


def test_below_critical_everything_goes():
    (working(120_000) >> MAKE).end()


def test_past_critical_only_what_serves_the_handoff():
    (working(150_000) >> MAKE << DENIED >> HANDS_OFF).end()


def test_a_pending_handoff_lifts_it_and_a_cancelled_one_closes_it_again():
    play = (working(150_000) >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(RecordHandoff)
    play = (play >> MAKE >> event(ev.HandoffCancelled)).skip(RecordHandoff, LeavePane)
    (play >> MAKE << DENIED).end()


def test_a_new_conversation_begins_with_an_open_gate():
    play = working(150_000) >> event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR)
    (play >> event(ev.ToolAsked, conversation="c1", tool="Bash", permitted=False)).end()


def test_without_the_setting_it_never_closes():
    play = working(150_000) >> event(ev.PolicyChanged, policy=Policy())
    (play >> MAKE).end()


def test_with_the_monitor_off_it_never_closes():
    (working(150_000, enabled=False) >> MAKE).end()


def test_a_document_on_standard_input_that_never_begins_serves_no_handoff():
    assert not serves_handoff("sm handoff - <<'EOF'")
