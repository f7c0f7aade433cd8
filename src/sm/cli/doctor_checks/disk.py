"""Checks of the disk: room for SM_HOME, and a readable database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings

MIN_FREE_BYTES = 100 << 20
"""A day of sessions may take as much."""
FULL_BYTES = 1 << 20
MAX_CHECKED_BYTES = 500 << 20
"""A larger database is not checked as a whole, which would take too long."""

DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def room(where: Surroundings) -> Finding:
    place = nearest(where.home.root)
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if free < FULL_BYTES or (found.f_files and not found.f_favail):
        what = "no room" if free < FULL_BYTES else "no room for another file (no inodes)"
        return Finding(FAIL, f"{what} on the file system of {place}", "make room there, or set another SM_HOME")
    if free < MIN_FREE_BYTES:
        return Finding(WARN, f"{free >> 20} MiB free on the file system of {place}", "make room there")
    return Finding(OK, f"{free >> 20:,} MiB free")


def nearest(path: Path) -> Path:
    """Return the path, or the nearest parent that exists."""
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def database(where: Surroundings) -> Finding:
    path = where.home.database
    if not path.is_file():
        return Finding(OK, "will be created at the first start")
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            checked = path.stat().st_size <= MAX_CHECKED_BYTES
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if checked else "ok"
    except UnicodeDecodeError:  # sqlite3 raises it where its own message quotes damaged bytes
        said = "its schema cannot be read"
    except sqlite3.Error as problem:
        if problem.sqlite_errorcode & 0xFF not in DAMAGE_CODES:
            return Finding(FAIL, f"{path} cannot be read: {problem}", "see `home` and `disk`")
        said = str(problem)
    if said == "ok":
        return Finding(OK, "whole" if checked else f"opens; too large to be read through ({path})")
    from sm.store.database import recovery_hint  # noqa: PLC0415  # imports asyncio; for a damaged one only

    return Finding(FAIL, f"{path} is damaged: {said.splitlines()[-1]}", recovery_hint(path))
