"""How long the archive keeps terminal logs and snapshots, and which go first where they take too much room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sm.core.model.history import Artefact, Retention, SessionHistory

PRUNED_KINDS = frozenset({"log", "snapshot"})
"""The kinds that pruning removes: a transcript is the client's, and documents are small."""


def expired(history: SessionHistory, retention: Retention, now: float) -> bool:
    return history.ended and not history.waits and bool(retention.keep) and history.last_activity < now - retention.keep


def to_prune(
    artefacts: Iterable[Artefact], histories: Iterable[SessionHistory], retention: Retention, now: float
) -> list[Artefact]:
    """Return what to remove, by age and then by size; never what a living session or an open handoff needs."""
    known = {history.session: history for history in histories}
    gone: list[Artefact] = []
    left: list[Artefact] = []
    for artefact in artefacts:
        if artefact.kind in PRUNED_KINDS:
            (gone if _too_old(artefact, known.get(artefact.session), retention, now) else left).append(artefact)
    too_much = sum(artefact.size for artefact in left) - retention.total if retention.total else 0
    for unit in _by_age(left, known):
        if too_much <= 0:
            break
        gone += unit
        too_much -= sum(artefact.size for artefact in unit)
    return gone


def _too_old(artefact: Artefact, history: SessionHistory | None, retention: Retention, now: float) -> bool:
    if history is None:  # of a session that the database does not know
        return bool(retention.keep) and artefact.at < now - retention.keep
    return expired(history, retention, now)


def _by_age(artefacts: list[Artefact], known: Mapping[str, SessionHistory]) -> list[list[Artefact]]:
    """Group files that are removed together, those of the sessions that ended first, then the oldest of the living.

    A log comes last of its session, together with the segment before it, by which its positions are known.
    """
    units: dict[object, list[Artefact]] = {}
    ranks: dict[object, tuple[bool, float, bool, float]] = {}
    for artefact in artefacts:
        history = known.get(artefact.session)
        if _needed(artefact, history):
            continue
        key = (artefact.session, "log") if artefact.current else artefact.path
        units.setdefault(key, []).append(artefact)
        living = history is not None and not history.ended
        ended = 0.0 if living else artefact.at if history is None else history.last_activity
        ranks[key] = (living, ended, artefact.current, artefact.at)
    return [units[key] for key in sorted(units, key=lambda key: ranks[key])]


def _needed(artefact: Artefact, history: SessionHistory | None) -> bool:
    if history is None:
        return False
    if history.waits:
        return True
    return not history.ended and (artefact.current or artefact.path == history.snapshot)
