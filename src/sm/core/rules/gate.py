"""What an agent past its critical level may still do: write its document and hand it off.

The provider knows what each tool of its client does; here is which file, which command and which skill serve the
handoff. What cannot be read for certain is refused, since an agent has another way: the editing tools and a plain
`sm handoff`. A refusal says so.
"""

from __future__ import annotations

import re
import shlex

from sm.core.model.client_traits import ClientTraits
from sm.core.model.context_warnings import handoff_file


def reason(session: str, traits: ClientTraits, *, with_tool: bool = False) -> str:
    """Return what the agent reads in place of a result; `with_tool` where a tool of its client takes the document."""
    file = handoff_file(session)
    by_tool = f"call {traits.handoff_tool} with the document, or " if with_tool else ""
    return (
        "sm: the context is critically full, so until you hand off only two things are let through. "
        f"1. Write your handoff doc to {file} ({traits.document_tools} that file): the goal, what is done, what is "
        "not, decisions and constraints, files changed, the exact next step. "
        f"2. Run `sm handoff {file}`, alone in its command, as your last action, and end the turn. "
        f"Both in one: {by_tool}`sm handoff - <<'EOF'`. The gate opens as soon as the handoff is scheduled."
    )


DOCUMENT = re.compile(r"(?:.*/)?\.sm/(?:handoff(?:-[0-9a-f]{8})?|continue-prompt)\.md", re.DOTALL)
"""The documents of a project: a session's own, the one older versions name, the continuation prompt."""
SKILLS = frozenset({"handoff", "sm:handoff"})

TOKEN = re.compile(
    r"""
    (?P<blank>      [ \t]+ | \\\n | \d?>&\d | (?:\d|&)?>>?[ \t]*/dev/null\b ) |
    (?P<end>        && | \|\| | ; | \n ) |
    (?P<into>       > ) |
    (?P<heredoc>    <<(?P<tabs>-?)[ \t]*(?:'(?P<single>\w+)'|"(?P<double>\w+)") ) |
    (?P<word>       (?: [^\s'"\\;&|<>()$`] | \\[^\n] | \$\w+ | '[^']*' | "(?:[^"\\$`]|\\.|\$\w+)*" )+ )
    """,
    re.VERBOSE | re.DOTALL,
)
"""What a command may be made of. Pipes, substitutions, subshells and unquoted here-documents are no token."""
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
SUBCOMMANDS = (["handoff"], ["status"], ["context"])
PREPARING = frozenset({("true",), (":",), ("mkdir", "-p", ".sm")})


def is_document(path: str) -> bool:
    return DOCUMENT.fullmatch(path) is not None and ".." not in path.split("/")


def serves_handoff(command: str) -> bool:
    """True if it runs `sm` or writes a document, and everything else in it only prepares that."""
    commands = _commands(command)
    if commands is None:
        return False
    return all(map(_serves, commands)) and any(words[0] in {"sm", "cat"} for words in commands)


def _commands(text: str) -> list[list[str]] | None:
    """Its simple commands as words, without variables set for them; None for anything else than TOKEN knows."""
    commands: list[list[str]] = [[]]
    waiting: list[tuple[bool, str]] = []
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            return None
        place = match.end()
        if match["heredoc"]:
            waiting.append((bool(match["tabs"]), match["single"] or match["double"]))
        elif match["end"]:
            commands.append([])
            if match["end"] == "\n":
                place = _behind(text, place, waiting)
                waiting = []
        elif match["into"] or match["word"]:
            commands[-1] += shlex.split(match[0])
    if waiting:
        return None
    return [words for words in map(_without_assignments, commands) if words]


def _behind(text: str, place: int, waiting: list[tuple[bool, str]]) -> int:
    """The place behind the here-documents whose text begins there; the end of the command if one has none."""
    for tabs, word in waiting:
        end = re.compile(rf"^{chr(9) + '*' if tabs else ''}{word}$\n?", re.MULTILINE).search(text, place)
        place = end.end() if end else len(text)
    return place


def _without_assignments(words: list[str]) -> list[str]:
    number = next((at for at, word in enumerate(words) if not ASSIGNMENT.fullmatch(word)), len(words))
    return words[number:]


def _serves(words: list[str]) -> bool:
    if words[0] == "cat":
        return len(words) == 3 and words[1] == ">" and is_document(words[2])  # noqa: PLR2004
    if ">" in words:
        return False
    return words[0] == "cd" or tuple(words) in PREPARING or (words[0] == "sm" and words[1:2] in SUBCOMMANDS)
