"""What an agent learns about `sm` at the start of a session."""

from __future__ import annotations

from sm.core.model.context_warnings import handoff_file


def primer(session: str, tool: str = "") -> str:
    """Return it for a session, with the tool that takes a document where its client has one."""
    return PRIMER.format(file=handoff_file(session), tool=TOOL.format(tool) if tool else "")


TOOL = "The tool {} does the same with the document as its argument, and needs no file. "


PRIMER = """\
You run inside a session of `sm`, which keeps your work across contexts.
- `sm handoff FILE`: when your context fills up, write a handoff document ({file}: goal, what is done, \
what is not, decisions and constraints, files changed, the exact next step), call this as the last action of your turn \
and end the turn. sm then clears the context and wakes you with the document, as the same session. \
{tool}`sm handoff -` reads the document from standard input, `sm handoff --auto` makes one from the transcript if you \
have no room left.
- `sm handoff --status` shows its progress, `--cancel` cancels it.
- `sm context` shows how full your context is, `sm status` who you are; `sm status TEXT` reports what you do to others.
- `sm send TARGET TEXT` messages another session (an id, a name, `parent`, `children`) for the end of its turn, \
`--important` for its next tool call. `sm inbox` lists your queued messages, `sm message ID` shows whether \
one was delivered.
- `sm spawn PROMPT` starts a child; you get a message when it stops. `sm children` lists them, `sm kill CHILD` and \
`sm clear CHILD PROMPT` end one or give it another task; after `sm wait TARGET DELAY` you get a message \
when TARGET is idle.
- `sm remind DELAY TEXT` reminds you later. `sm done TEXT` reports the task as complete to your parent.
- What begins with `[Input from: NAME (id) via sm send]` was sent by that session, not by the user. Notices that begin \
with `[sm` come from sm."""
