"""All paths below SM_HOME, and how a file is written there: whole or not at all, readable by its owner alone.

No other module builds a path below SM_HOME. An id becomes part of a path only through `checked_id`. Agents' commands
load this module, so it has no slow imports (platformdirs would add 60 modules; its rules are two lines).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import SmError, error
from sm.files import read_regular

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
TOKEN_BYTES = 32
MAX_TOKEN_FILE_BYTES = 1024
"""Of its file."""
MIN_TOKEN_CHARS = 12
"""Ours have 43; a shorter one could be guessed."""
TMUX_SOCKET = "tmux.sock"
"""File name: the directory depends on the length of SM_HOME, see `tmux.names.socket_path`."""
HOOK_SOCKET = "hooks.sock"
"""Likewise."""

PLUGIN_COPY = "mod-"
"""How the name of its directory begins."""

_TOKEN = re.compile(r"[\w.~+/=-]+", re.ASCII)
"""What may follow `Bearer`."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def checked_id(text: str) -> str:
    """Return an id that may be part of a path; SmError for any other text."""
    if _ID.fullmatch(text) is None or ".." in text:
        shown = text if len(text) <= 40 else f"{text[:40]}…"  # noqa: PLR2004  # enough to recognise it
        raise error("bad_id", f"Not an id: {shown!r}", "an id has 1 to 64 letters, digits and _ . -, and no two dots")
    return text


@dataclass(frozen=True, slots=True)
class SmHome:
    """The paths below one SM_HOME."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "sm.db"

    @property
    def token(self) -> Path:
        """The user's bearer token."""
        return self.root / "token"

    @property
    def push_key(self) -> Path:
        """The private key by which push services of browsers know this server."""
        return self.root / "push-key.pem"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    @property
    def search(self) -> Path:
        """The full-text index; if lost, it is filled again."""
        return self.root / "search.db"

    @property
    def handoffs(self) -> Path:
        return self.root / "handoffs"

    @property
    def messages(self) -> Path:
        """Bodies of messages that are too long to be typed."""
        return self.root / "messages"

    @property
    def server_output(self) -> Path:
        """Output of a server started in the background that is not in its log."""
        return self.root / "server.out"

    @property
    def settings(self) -> Path:
        """The settings that clients are launched with."""
        return self.root / "settings"

    @property
    def bin(self) -> Path:
        """First on the PATH of a session; holds the `sm` link."""
        return self.root / "bin"

    @property
    def trusted(self) -> Path:
        """Fingerprints of the project files that may set everything."""
        return self.root / "trusted"

    def setup_record(self, settings: str) -> Path:
        """What `sm setup` found in a settings file of the client, by that file's path."""
        import hashlib  # noqa: PLC0415  # for `sm setup` alone

        name = hashlib.sha256(os.fsencode(settings)).hexdigest()[:16]
        return self.root / "setup" / f"{name}.json"

    @property
    def good_configuration(self) -> Path:
        """The last valid user configuration; a server starts with it while the user's own is invalid."""
        return self.root / "config.good.toml"

    def plugin_copy(self, version: str) -> Path:
        """The plugin that clients of that version of `sm` are started with; they write into it, by the user's umask."""
        return self.root / f"{PLUGIN_COPY}{version}"

    @property
    def runs(self) -> Path:
        """How far unattended runs are, a database for each project, and their reports."""
        return self.root / "runs"

    @property
    def server_record(self) -> Path:
        return self.root / "server.json"

    @property
    def server_lock(self) -> Path:
        return self.root / "server.lock"

    @property
    def server_log(self) -> Path:
        return self.root / "server.log"

    def log(self, session: str) -> Path:
        return self.logs / f"{checked_id(session)}.log"

    def snapshot(self, session: str, stamp: str) -> Path:
        """The snapshot of a session; the stamp is `YYYYMMDD-HHMMSS`, UTC."""
        return self.archive / checked_id(f"{checked_id(session)}-{stamp}") / "dump.txt"

    def handoff(self, channel: str, handoff: str) -> Path:
        return self.handoffs / checked_id(channel) / f"{checked_id(handoff)}.md"

    def manifest(self, channel: str) -> Path:
        return self.handoffs / checked_id(channel) / "manifest.json"

    def launch_settings(self, session: str) -> Path:
        return self.settings / f"{checked_id(session)}.json"


def locate_home(environ: Mapping[str, str]) -> SmHome:
    """Return SM_HOME without creating it."""
    configured = environ.get("SM_HOME")
    return SmHome(_state_directory(environ) / "sm" if configured is None else absolute(configured, "SM_HOME"))


def open_home(environ: Mapping[str, str]) -> SmHome:
    """Return SM_HOME, created and closed to other users; SmError if it cannot be used."""
    home = locate_home(environ)
    try:
        make_private(home.root)
        found = home.root.stat()
    except OSError as problem:
        why = "it is not a directory" if isinstance(problem, FileExistsError) else problem.strerror
        raise error("home_unusable", f"Cannot use {home.root}: {why}", _OTHER_HOME) from problem
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        what = "belongs to another user" if stat.S_ISDIR(found.st_mode) else "is not a directory"
        raise error("home_unusable", f"Cannot use {home.root}: it {what}", _OTHER_HOME)
    if stat.S_IMODE(found.st_mode) & 0o077:
        home.root.chmod(PRIVATE_DIRECTORY)
    return home


_OTHER_HOME = "set SM_HOME to a directory of yours"


def absolute(text: str, variable: str) -> Path:
    """Return the path in an environment variable; SmError for a relative one, which depends on the directory."""
    if not text.startswith("/") or "\0" in text:
        problem = "is empty" if not text else f"is not an absolute path: {text!r}"
        raise error("bad_path", f"{variable} {problem}", f"unset {variable}, or set it to a path that begins with /")
    return Path(os.path.normpath(text))


def user_directory(environ: Mapping[str, str]) -> Path:
    return absolute(environ["HOME"], "HOME") if environ.get("HOME") else Path.home()


def _state_directory(environ: Mapping[str, str]) -> Path:
    # The XDG specification ignores a relative path.
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return absolute(environ["XDG_STATE_HOME"], "XDG_STATE_HOME")
    below = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return user_directory(environ) / below


def make_private(directory: Path) -> None:
    """Create the directory and its missing parents, each 0700 (`mkdir(parents=True)` leaves parents to the umask)."""
    if directory.is_dir():
        return
    make_private(directory.parent)
    directory.mkdir(PRIVATE_DIRECTORY, exist_ok=True)


def atomic_write(path: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """Write a file atomically and durably; on failure SmError, the old file unchanged, no temporary file left."""
    temporary = path.with_name(f".tmp-{os.urandom(8).hex()}")
    try:
        make_private(path.parent)
        _write_new(temporary, data, mode)
        temporary.replace(path)
        _sync_directory(path.parent)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(problem, OSError):
            raise write_failed(path, problem) from problem
        raise


def _write_new(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor, no path
        file.write(data)
        file.flush()
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _sync_directory(directory: Path) -> None:
    """Make the rename itself survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_failed(path: Path, problem: OSError) -> SmError:
    message = f"Cannot write {path}: {problem.strerror} (file system {_mount_point(path)})"
    return error("write_failed", message, "make room there or correct its permissions, then try again")


def _mount_point(path: Path) -> Path:
    return next(home for home in (path, *path.absolute().parents) if home.is_mount())


def read_token(home: SmHome) -> str | None:
    """Return the user's token; None if it does not exist yet. SmError if others could have read it."""
    try:
        content, found = read_regular(home.token, MAX_TOKEN_FILE_BYTES)
        text = content.decode("ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "not ASCII text"
        raise error("bad_token", f"Cannot read {home.token}: {why}", _NEW_TOKEN) from problem
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise error("bad_token", f"Others can read or replace {home.token}", _NEW_TOKEN)
    if not text:
        raise error("bad_token", f"{home.token} is empty", _NEW_TOKEN)
    if _TOKEN.fullmatch(text) is None:
        raise error("bad_token", f"{home.token} holds a line break, a blank or another character", _NEW_TOKEN)
    if len(text) < MIN_TOKEN_CHARS:
        raise error("bad_token", f"{home.token} holds fewer than {MIN_TOKEN_CHARS} characters", _NEW_TOKEN)
    return text


_NEW_TOKEN = "remove it, then sm server restart creates a new one"  # noqa: S105  # says what to do


def ensure_token(home: SmHome) -> str:
    """Return the user's token, created if missing."""
    known = read_token(home)
    if known is not None:
        return known
    import secrets  # noqa: PLC0415  # 20 modules that only the server's first start needs

    create_private(home.token, secrets.token_urlsafe(TOKEN_BYTES).encode())
    return read_token(home) or ensure_token(home)


def create_private(path: Path, data: bytes) -> None:
    """Write a file that is its user's alone, unless it exists; a reader sees all of it or no file."""
    temporary = path.with_name(f".tmp-{os.urandom(8).hex()}")
    try:
        _write_new(temporary, data, PRIVATE_FILE)
        os.link(temporary, path)  # fails where another process was faster
    except FileExistsError:
        pass
    except OSError as problem:
        raise write_failed(path, problem) from problem
    finally:
        temporary.unlink(missing_ok=True)


def plugin_directory() -> Path:
    """Return the plugin's directory: in the package where it is installed, above `src` in a checkout."""
    package = Path(__file__).parent
    found = next((folder for folder in (package / "plugin", package.parents[1] / "plugin") if folder.is_dir()), None)
    if found is None:
        raise error("file_not_found", "The plugin is not part of this installation", "install sm again")
    return found
