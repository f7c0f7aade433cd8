"""What an agent reads about its context, and what to do about it. Wordings follow the contract."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from sm.core.model.client_traits import ClientTraits

HANDOFF_FILE = ".sm/handoff.md"
"""Where the user, or an agent that an older version has started, keeps a document: several sessions share it."""
PROMPT_FILE = ".sm/continue-prompt.md"


@dataclass(frozen=True, slots=True)
class Advice:
    """What an agent reads about a full context. Where the user started the client, only they can clear it."""

    consider: str
    now: str
    how: str


def handoff_file(session: str) -> str:
    """Return where a session's document belongs, in its directory: two sessions of one directory have two."""
    return f".sm/handoff-{session[:8]}.md"


def auto_file(session: str) -> str:
    return f".sm/handoff-auto-{session[:8]}.md"


CONTENT = "the goal, what is done, what is not, decisions and constraints, files changed, the exact next step."


def advice_of(file: str, tool: str = "") -> Advice:
    """Return the advice for a session's own agent; `tool` takes the document itself, where the client has it."""
    place = f"Give it to the tool {tool}, or write it to {file}" if tool else f"Write it to {file}"
    return Advice(
        "Consider writing a handoff doc and running `sm handoff <path>`.",
        "Write your handoff doc NOW and run `sm handoff <path>`.",
        f"{place}: {CONTENT}",
    )


ADVICE = advice_of(HANDOFF_FILE)


def advice_for_user(traits: ClientTraits) -> Advice:
    """Return the advice for an agent whose context only the user clears."""
    return Advice(
        "Consider writing a continuation prompt with the skill sm:handoff.",
        "Write a continuation prompt NOW with the skill sm:handoff.",
        f"It goes to {PROMPT_FILE}; after {traits.clear_command}, /sm:resume continues from it.",
    )


def advice_by_tool(traits: ClientTraits) -> Advice:
    """Return the advice for an agent in the user's own client, which has the plugin's tool and no command."""
    return Advice(
        f"Consider handing off with the tool {traits.handoff_tool}.",
        f"Call the tool {traits.handoff_tool} NOW.",
        f"Give it {CONTENT}",
    )


def warning_notice(tokens: int | None, percent: float | None, advice: Advice = ADVICE) -> str:
    share = "" if percent is None else f" (~{percent:.0f}%)"
    return f"[sm context] Context at {tokens:,} tokens{share}. {advice.consider}\n{advice.how}"


def critical_notice(advice: Advice = ADVICE) -> str:
    return f"[sm context] Context critically high. {advice.now} Compaction is imminent.\n{advice.how}"


def fallback_notice(tool_calls: int, advice: Advice = ADVICE) -> str:
    calls = f"{tool_calls:,} tool calls in this context, and its size cannot be read."
    return f"[sm context] {calls} {advice.consider}\n{advice.how}"


def too_late_notice(name: str, before: int | None, after: int | None) -> str:
    """Return what a parent reads when its child was compacted before it handed off."""
    sizes = f"{_tokens(before)} → {_tokens(after)}"
    return f"[sm context] Handoff too late: the client compacted the context of {name} ({sizes})."


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,} tokens"
