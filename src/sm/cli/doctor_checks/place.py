"""Checks of SM_HOME: its owner, its files, the clock against their times; and of the configuration."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from sm import settings
from sm.cli.doctor_checks.disk import nearest
from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings, short_list
from sm.core.errors import SmError
from sm.paths import HOOK_SOCKET, PLUGIN_COPY, TMUX_SOCKET, SmHome
from sm.tmux.names import MAX_SOCKET_PATH, SocketPathError, socket_path

MAX_ENTRIES = 20_000
"""Files that are checked: an archive of years must not delay the doctor."""
EARLIEST_TIME = 1_767_225_600.0
"""2026-01-01, before the first version of `sm`."""
MAX_AHEAD_S = 120.0


def permissions(where: Surroundings) -> Finding:
    return _files(where.home) or _access(where.home.root)


def _files(home: SmHome) -> Finding | None:
    if not home.root.exists():
        return _to_be_made(home.root)
    if not home.root.is_dir():
        return Finding(FAIL, f"{home.root} is not a directory", OTHER_HOME)
    odd = [str(path) for path in files_of(home) if path.is_dir()]
    return Finding(FAIL, f"a directory in the place of a file: {short_list(odd)}", "move it away") if odd else None


def _access(root: Path) -> Finding:
    foreign = [str(path) for path, found in entries(root) if found.st_uid != os.getuid()]
    if foreign:
        return Finding(FAIL, f"not yours: {short_list(foreign)}", f"chown -R $USER {root}")
    open_ones = [str(path) for path, found in entries(root) if _open_to_others(found) and not _of_plugin(path, root)]
    if open_ones:
        return Finding(FAIL, f"others may get at {short_list(open_ones)}", f"chmod -R go= {root}")
    if not os.access(root, os.W_OK | os.X_OK):
        return Finding(FAIL, f"{root} cannot be written", f"chmod u+rwx {root}")
    return Finding(OK, f"{root} is private (mode 0700)")


OTHER_HOME = "set SM_HOME to a directory of yours"


def _to_be_made(root: Path) -> Finding:
    above = nearest(root)
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Finding(OK, f"{root} will be created at the first start")
    why = "cannot be written" if above.is_dir() else "is not a directory"
    return Finding(FAIL, f"{root} cannot be made: {above} {why}", OTHER_HOME)


def files_of(home: SmHome) -> tuple[Path, ...]:
    """Return the paths of files and sockets at the top of SM_HOME."""
    sockets = (home.root / TMUX_SOCKET, home.root / HOOK_SOCKET)
    return (home.database, home.token, home.server_record, home.server_lock, home.server_log, home.trusted, *sockets)


def _open_to_others(found: os.stat_result) -> bool:
    """Whether others may read a file or directory; a socket's own mode does not matter inside a closed directory."""
    ours = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return ours and bool(stat.S_IMODE(found.st_mode) & 0o077)


def _of_plugin(path: Path, root: Path) -> bool:
    """Whether a client may have written it into its copy of the plugin, in which nothing is secret."""
    return path != root and path.relative_to(root).parts[0].startswith(PLUGIN_COPY)


def entries(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    yield root, root.stat()
    seen = 0
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            seen += 1
            if seen > MAX_ENTRIES:
                return
            path = Path(directory, name)
            try:
                yield path, path.lstat()
            except FileNotFoundError:
                continue  # a running server's temporary file


def clock(where: Surroundings) -> Finding:
    now = time.time()  # noqa: TID251  # the clock itself is checked
    if now < EARLIEST_TIME:
        return Finding(FAIL, f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}", "set the clock (NTP)")
    root = where.home.root
    late = [str(path) for path, found in entries(root) if found.st_mtime > now + MAX_AHEAD_S] if root.exists() else []
    if late:
        hint = "set the clock (NTP): it was ahead or is behind, and handoffs expire by it"
        return Finding(WARN, f"written in the future: {short_list(late)}", hint)
    return Finding(OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def configuration(where: Surroundings) -> Finding:
    try:
        settings.load(where.directory, where.environ)
    except SmError as problem:
        return Finding(FAIL, problem.refused.message, problem.refused.hint)
    files = [settings.config_file(where.environ), settings.project_file(where.directory)]
    found = [str(path) for path in files if path is not None and path.exists()]
    return Finding(OK, f"valid: {short_list(found)}" if found else "valid (defaults; no file)")


def sockets(where: Surroundings) -> Finding:
    path = where.home.root / TMUX_SOCKET
    length = len(os.fsencode(path))
    if length <= MAX_SOCKET_PATH:
        return Finding(OK, f"a path of {length} bytes, at most {MAX_SOCKET_PATH} are allowed")
    try:
        instead = socket_path(where.home.root, TMUX_SOCKET)
    except SocketPathError as problem:
        return Finding(FAIL, str(problem), "choose a shorter SM_HOME or TMPDIR")
    return Finding(WARN, f"SM_HOME is too long for a socket; {instead} is used", "keep TMPDIR the same for every sm")
