"""What a client is like, as far as the rules depend on it: its commands, its limits, and the names that it uses.

Each provider has one value of this; `advance` and the functions that write texts for an agent are given it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientTraits:
    clear_command: str
    """Typed as a prompt, it begins a new, empty conversation in the same process."""
    exit_command: str
    """Typed as a prompt, it ends the client."""
    command_record: str | None
    """How the transcript shows that a command was taken; `{}` is replaced by the command. None for a client that
    answers each: then nothing else need show it."""
    exit_words: frozenset[str]
    """Prompts that end the client, in lower case, with blanks around them or not."""
    special_prefixes: tuple[str, ...]
    """First characters that make a prompt something else, as a command of the client or of a shell."""
    continuations: tuple[str, ...]
    """How a prompt begins with which the client continues by itself what a usage limit has interrupted."""
    own_prompt_prefix: str
    """How a prompt begins that the client itself has made, as to report a task that has ended."""
    typed_characters: int
    typed_lines: int
    """A prompt longer than one of these two is folded into a paste, which the client tells its agent to distrust."""
    reply_characters: int
    """Characters of a hook's reply that the agent reads whole."""
    continued_turns: int
    """Turns in a row that a reply to the hook at their end keeps going; the client ends the next one."""
    refusal_margin: int
    """Tokens below the window from which the next request may be refused: then only a compaction helps."""
    marks: re.Pattern[str]
    """Where a text would pass for words of the client: a character behind which a backslash keeps it from that."""
    paste: re.Pattern[str]
    """What the client makes of a prompt that it took for a paste; the first group is what was typed."""
    startup_question: str
    """What the user reads while the client asks something before its first prompt."""
    plugin_unanswered: str
    """What the user reads where the plugin in a client has not answered: why that may be."""
    handoff_tool: str
    """The tool of the plugin in the client that takes a handoff's document."""
    document_tools: str
    """The tools that read and write a file, as an agent reads of them: `A, B or C`."""
    patient_hooks: frozenset[str]
    """Hooks whose reply carries what must not be lost: the client waits longer for it."""

    def made_by_client(self, prompt: str) -> bool:
        """Whether a submitted prompt is the client's own, and not its user's."""
        return self.as_typed(prompt).lstrip().startswith((self.own_prompt_prefix, *self.continuations))

    def as_typed(self, prompt: str) -> str:
        """Return a submitted prompt as it was typed."""
        return self.paste.sub(r"\1", prompt)
