"""What Claude Code's permission modes allow, and the mode that allows no more than another client has (2.1.328)."""

from __future__ import annotations

from collections.abc import Sequence

from sm.core.model.rights import STRICTEST, Freedom, Rights
from sm.providers.claude.launch import MODE, RESTRICTING

RIGHTS = {
    "plan": Rights(Freedom.READING, asks=True),
    "default": Rights(Freedom.READING, asks=True),
    "dontAsk": Rights(Freedom.READING),
    "acceptEdits": Rights(Freedom.WORKING, asks=True),
    "auto": Rights(Freedom.WORKING, asks=True),
    "bypassPermissions": Rights(Freedom.EVERYTHING),
}
"""In `auto` a model decides about each command."""
MODES = {
    Rights(Freedom.READING, asks=True): "default",
    Rights(Freedom.READING): "dontAsk",
    Rights(Freedom.WORKING, asks=True): "acceptEdits",
    Rights(Freedom.WORKING): "acceptEdits",
    Rights(Freedom.EVERYTHING, asks=True): "acceptEdits",
    Rights(Freedom.EVERYTHING): "bypassPermissions",
}
OF_PROJECT = ("--setting-sources", "user", "--strict-mcp-config")
"""Keeps out what a project's files would allow or run: a client of another kind may write those without asking."""
HAVE_COUNTERPART = frozenset({"--setting-sources", "--strict-mcp-config"})
"""Every client that is started for one of another kind has no settings of its project."""


def of_mode(mode: str) -> Rights:
    return RIGHTS.get(mode, STRICTEST)


def arguments(rights: Rights) -> tuple[str, ...]:
    """Return what starts a client with no more than these."""
    own = () if rights.level is Freedom.EVERYTHING else OF_PROJECT
    return *own, MODE, MODES[rights]


def restrictions(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the arguments that no other kind of client can be given."""
    names = (argument.split("=", 1)[0] for argument in given if argument.startswith("-"))
    return tuple(name for name in names if name in RESTRICTING - HAVE_COUNTERPART)
