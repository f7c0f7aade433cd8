"""What a client is like, as far as the rules depend on it: its commands, its limits, and the names that it uses.

Each provider has one value of this; `advance` and the functions that write texts for an agent are given it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientTraits:
    clear_command: str
    """Typed as a prompt, it begins a new, empty conversation in the same process."""
    document_tools: str
    """The tools that read and write a file, as an agent is told of them: `A, B or C`."""
    patient_hooks: frozenset[str]
    """Hooks whose reply carries what must not be lost: the client waits longer for it."""
