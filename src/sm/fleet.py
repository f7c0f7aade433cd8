"""What every list of sessions shows, on the screen and on the page: who needs the user, and what is known of each.

It reads the answers of the API (`wire.SessionView`, `AskView`, `SessionCostView`) as JSON has them, so that a reader
also understands a newer server. A row never says more than the answers: a value that is not known is None.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sm.core.model.usage_limit import LIMIT_NAMES
from sm.plain_text import plain

ENDED_STATUSES = frozenset({"exited", "crashed"})
"""Statuses of a session whose client has ended."""
NEEDS = (
    *(frozenset({status}) for status in ("waiting", "blocked", "crashed", "silent", "unknown", "limited", "idle")),
    frozenset({"starting", "working", "compacting", "rotating"}),
    ENDED_STATUSES,
)
"""Statuses by how much a session needs the user: an answer, a look, another task, nothing."""
RANKS = {status: rank for rank, statuses in reversed([*enumerate(NEEDS)]) for status in statuses}
"""The first that a status is in."""
LOST_FOR_S = 7 * 86_400
"""What was lost longer ago was not missed."""
MARKS = {
    "waiting": "?",
    "blocked": "!",
    "crashed": "✗",
    "silent": "⋯",
    "unknown": "~",
    "limited": "‖",
    "idle": "○",
    "starting": "◌",
    "working": "●",
    "compacting": "↻",
    "rotating": "↻",
    "exited": "·",
}
"""A state by its shape, for whoever sees no colours."""
NAMED_INPUTS = ("command", "file_path", "path", "url", "pattern", "query", "prompt")
"""The input of a tool that says most of what it is to do."""
MAX_WHY_CHARS = 300
UNKNOWN = "unknown"
"""In place of a value that is not known, as the tokens of a context."""


@dataclass(frozen=True, slots=True)
class Row:
    """A session as it is shown. Times are UTC seconds, percentages of the usable context.

    Its texts are in one line and have nothing in them that acts on a terminal; for HTML they still need escaping.
    """

    id: str
    name: str
    depth: int
    """Below how many other rows it is, as the child of a session."""
    need: int
    """How much it needs the user; 0 is the most."""
    needs_user: bool
    """It does nothing until the user has looked at it."""
    state: str
    mark: str
    why: str
    """Why it is in that state, as what its client asks; empty where the state says all."""
    since: float | None
    """When it came into that state."""
    seen: float | None
    """When the evidence of the state was last seen or heard."""
    evidence: str
    provider: str
    model: str | None
    driver: str
    percent: float | None
    tokens: int | None
    usable: int | None
    warning_percent: float | None
    critical_percent: float | None
    turns_left: int | None
    rotations: int | None
    queued: int
    limit: str
    """Of its account or its budget, in words."""
    usd: float | None
    said: str
    branch: str | None
    dir: str
    ended: bool
    attempt: str | None

    @property
    def level(self) -> str:
        """Which threshold its context has passed: `ok`, `warning` or `critical`."""
        if self.percent is None:
            return "ok"
        if self.critical_percent is not None and self.percent >= self.critical_percent:
            return "critical"
        return "warning" if self.warning_percent is not None and self.percent >= self.warning_percent else "ok"


KnownRows = dict[str, tuple[dict[str, Any], tuple[object, ...], Row]]
"""By session: of which answer its row was made, and of what else."""


def rows(
    sessions: Sequence[dict[str, Any]],
    asks: Sequence[dict[str, Any]],
    costs: Sequence[dict[str, Any]] = (),
    known: KnownRows | None = None,
) -> list[Row]:
    """Return the rows in the order to show: by need, children right after their parents.

    With `known`, which it keeps, a row is the one from before where the very same answer is given again.
    """
    asked: dict[str, list[dict[str, Any]]] = {}
    for ask in asks:
        if ask.get("state") == "open":
            asked.setdefault(ask["session"], []).append(ask)
    spent = {cost["id"]: cost["spent"].get("usd") for cost in costs}
    known = {} if known is None else known
    found = []
    for depth, session in in_tree(sessions):
        own = asked.get(session["id"], [])
        rest = (depth, own, spent.get(session["id"]))
        before = known.get(session["id"])
        if before is None or before[0] is not session or before[1] != rest:
            before = known[session["id"]] = session, rest, _row(session, depth, own, spent)
        found.append(before[2])
    for gone in known.keys() - {row.id for row in found}:
        del known[gone]
    return found


def title(shown: Sequence[Row]) -> str:
    """Return the counts in words, of all that has not ended in order."""
    living = [row for row in shown if row.state != "exited"]
    needs = sum(row.needs_user for row in living)
    rest = sum(row.state == "idle" and not row.needs_user for row in living)
    works = sum(row.need == RANKS["working"] for row in living)
    others = len(living) - needs - rest - works
    counts = (
        (needs, "needs you" if needs == 1 else "need you"),
        (works, "works" if works == 1 else "work"),
        (rest, "idle"),
        (others, "to look at"),
    )
    return " · ".join(f"{count} {words}" for count, words in counts if count) or "no session runs"


def need(session: dict[str, Any]) -> int:
    """Return how much the session needs the user; 0 is the most."""
    return RANKS.get(state(session), len(NEEDS))


def state(session: dict[str, Any]) -> str:
    """Return its status, or what it comes to for the user: one that is paused does nothing, one may be missed."""
    status = str(session["status"])
    if (session.get("loop_guard") or {}).get("paused") or (session.get("budget") or {}).get("level") == "paused":
        return "blocked"
    if status in ENDED_STATUSES and session.get("created"):  # another's session has no more than its status
        return "crashed" if is_lost(session) else "exited"
    return status


def needs_answer(session: dict[str, Any]) -> bool:
    """Whether it does nothing until the user has looked at it."""
    return need(session) <= RANKS["blocked"]


def is_lost(session: dict[str, Any]) -> bool:
    """Whether its client ended within a week without an order to, as with tmux or the machine."""
    return (session.get("lost_at") or 0.0) >= time.time() - LOST_FOR_S  # noqa: TID251  # the user's clock


def in_tree(sessions: Sequence[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Return each session with its depth, children right after their parent; without a shown parent it is 0.

    Those that need the user come first, and a parent as soon as its child does.
    """
    shown = {session["id"] for session in sessions}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for session in sessions:
        parent = session.get("parent")
        below.setdefault(parent if parent in shown else None, []).append(session)

    def families(parent: str | None, depth: int) -> Iterator[list[tuple[int, dict[str, Any]]]]:
        for session in below.get(parent, ()):
            yield [(depth, session), *ordered(session["id"], depth + 1)]

    def ordered(parent: str | None, depth: int) -> list[tuple[int, dict[str, Any]]]:
        found = sorted(families(parent, depth), key=lambda family: min(need(session) for _, session in family))
        return [member for family in found for member in family]

    return ordered(None, 0)


def _row(session: dict[str, Any], depth: int, asks: list[dict[str, Any]], spent: dict[str, float | None]) -> Row:
    context, shown = session.get("context") or {}, state(session)
    usable = context.get("usable")
    return Row(
        id=session["id"],
        name=plain(session["name"]),
        depth=depth,
        need=need(session),
        needs_user=needs_answer(session),
        state=shown,
        mark=MARKS.get(shown, "~"),
        why=_why(session, asks),
        since=session.get("since") or None,
        seen=session.get("seen") or None,
        evidence=plain(session.get("evidence") or ""),
        provider=session.get("provider") or "",
        model=_plain(context.get("model") or session.get("model")),
        driver=session.get("driver") or "",
        percent=context.get("percent"),
        tokens=context.get("projected") if context.get("projected") is not None else context.get("tokens"),
        usable=usable,
        warning_percent=_share(context.get("warning"), usable),
        critical_percent=_share(context.get("critical"), usable),
        turns_left=context.get("turns_left"),
        rotations=session.get("rotations"),
        queued=session.get("queued") or 0,
        limit=plain(_limit(session)),
        usd=spent.get(session["id"]),
        said=plain(session.get("said") or ""),
        branch=_plain(session.get("branch")),
        dir=plain(session.get("dir") or ""),
        ended=session["status"] in ENDED_STATUSES,
        attempt=session.get("attempt"),
    )


def _why(session: dict[str, Any], asks: list[dict[str, Any]]) -> str:
    words = ask_words(asks[0]) if asks else session.get("detail") or ""
    more = f" (and {len(asks) - 1} more)" if len(asks) > 1 else ""
    shown = plain(words)
    return f"{shown if len(shown) <= MAX_WHY_CHARS else f'{shown[:MAX_WHY_CHARS]}…'}{more}"


def ask_words(ask: dict[str, Any]) -> str:
    """Return what a client asks, in one line of any length: `permission Bash: rm -r build`."""
    given = ask.get("input") or {}
    questions = [question["text"] for question in ask.get("questions") or ()]
    subject = next((str(given[name]) for name in NAMED_INPUTS if given.get(name)), "")
    what = " / ".join(questions) if questions else subject
    who = f"{ask['agent']}: " if ask.get("agent") else ""
    head = f"{ask['kind']} {ask['tool']}" if ask["kind"] == "permission" else ask["kind"]
    return plain(f"{who}{head}: {what}" if what else f"{who}{head}")


def _limit(session: dict[str, Any]) -> str:
    if session.get("limit"):  # its detail may tell of something else, as of what it asks
        return LIMIT_NAMES.get(str(session["limit"].get("kind")), "usage limit")
    return str((session.get("budget") or {}).get("text") or "")


def _share(tokens: int | None, usable: int | None) -> float | None:
    return round(100 * tokens / usable, 1) if tokens and usable else None


def _plain(text: str | None) -> str | None:
    return plain(text) if text else None
