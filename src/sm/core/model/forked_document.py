"""The document that a fork of the agent's model writes where the agent itself has not handed off.

A fork answers one prompt over the agent's whole context and calls no tool. Its text is trusted as far as any agent's
document, and the facts that code has found in the transcript follow below it.
"""

from __future__ import annotations

FORK_TIMEOUT_S = 90.0
"""Seconds for an answer of some pages; a rotation waits for it no longer than for a client that is busy."""
MAX_FORK_CHARACTERS = 40_000
"""Characters of an answer that are kept; the prompt asks for a quarter of that."""
FORK_PROMPT = """\
[sm handoff] Your context is full and is about to be replaced: the next one is empty, and begins with the document \
that you write now. It is all that you will know.

Answer with that document alone, in Markdown, in at most 1,500 words, at once and without any tool: none is available. \
Write for a reader who knows nothing of this conversation:

1. The goal, in the user's own words where they matter.
2. The user's rules and constraints, and the decisions made, each with its reason.
3. What is done, and how that was checked.
4. What is not done, what failed, and why.
5. Files changed or to be changed, with paths; commands that build, test and run.
6. The exact next step.

State facts only, and say where you are not sure. Repeat no passwords, keys or tokens. sm adds a record of commands, \
files and commits below your text."""
HEAD = "(The agent had not handed off. A copy of its model wrote this from the whole context.)"
FACTS = """\
---

# Recorded by sm

Found by code in the transcript and the repository, after the text above was written. Where the two differ, this is
right."""


def forked_document(answer: str, facts: str) -> str:
    """Return the answer of a fork, and below it the document made by code."""
    return f"{HEAD}\n\n{answer.strip()}\n\n{FACTS}\n\n{facts}"
