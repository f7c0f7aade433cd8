"""Opens the server's sockets: a loopback port that stays the same, and a unix socket in SM_HOME.

A running session knows the address from its launch, so a start uses the last port again or names its holder.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from sm.core.errors import error
from sm.lock import last_server
from sm.paths import HOOK_SOCKET, SmHome
from sm.processes import holds_socket
from sm.settings import Settings
from sm.store.sessions import any_alive
from sm.tmux.names import socket_path


@dataclass(frozen=True, slots=True)
class Sockets:
    loopback: socket.socket
    private: socket.socket
    """A unix socket in SM_HOME, for hooks that must not depend on a port."""
    private_path: Path

    @property
    def url(self) -> str:
        host, port = self.loopback.getsockname()[:2]
        return f"http://{host}:{port}"


def open_sockets(home: SmHome, settings: Settings) -> Sockets:
    """Listen where this SM_HOME listened before: running clients know the address from their launch."""
    before = last_server(home)
    loopback = _loopback(settings.server.port, before.port if before else 0, home.database)
    private_path = socket_path(home.root, HOOK_SOCKET)
    private_path.unlink(missing_ok=True)
    private = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    private.bind(str(private_path))
    return Sockets(loopback, private, private_path)


def _loopback(configured: int, last: int, database: Path) -> socket.socket:
    """Bind the configured port, else the last one, which running sessions know. Without either, a free one."""
    try:
        return _bound(configured or last or _free_port())
    except OSError as problem:
        if not configured and not any_alive(database):
            return _bound(_free_port())
        port = configured or last
        why = "or set another server.port" if configured else "living sessions send their hooks there"
        message = f"Port {port} is taken by {holder_of(port)}: {problem.strerror}"
        raise error("port_taken", message, f"end that process ({why})") from problem


def _bound(port: int) -> socket.socket:
    # With the protocol named asyncio sets TCP_NODELAY on connections: an answer would else wait 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener


def _free_port() -> int:
    """Return a free port. Bound by its number it stays ours while closed, unlike one that the system chose."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def holder_of(port: int) -> str:
    """Return the process that listens on a loopback port, by /proc: its pid and name."""
    inode = _listening_inode(port)
    if inode is None:
        return "another process"
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and holds_socket(int(process.name), inode):
            return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return "a process of another user"


def _listening_inode(port: int) -> str | None:
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return None
    wanted = f":{port:04X}"
    return next((row[9] for row in map(str.split, lines) if row[1].endswith(wanted) and row[3] == "0A"), None)
