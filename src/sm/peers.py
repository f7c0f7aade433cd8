"""Which process is at the other end of a connection on this machine: by /proc, so on Linux only.

A token is inherited by whatever an agent starts, also by what outlives it and its client. What changes a session is
therefore taken only from a process below the session's own client.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from sm.processes import descendants, descends_from

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = "01"
UNIX = "unix"
"""In place of a host in the address of a peer on a unix socket; its port is the peer's pid then."""
CREDENTIALS = struct.Struct("3i")


def pid_of(connection: socket.socket) -> int | None:
    """The process that has connected to a unix socket, as the system tells; None where it does not."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid: int = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, CREDENTIALS.size))[0]
    return pid or None


def is_below(ancestor: int, peer: tuple[str, int], claimed: int | None) -> bool | None:
    """Whether the peer is `ancestor` or a process below it; None where the system does not tell.

    `claimed` is what the peer says its pid is: it spares looking at every process, and is believed only if that
    process holds the other end of the connection.
    """
    host, port = peer
    if host == UNIX:
        return descends_from(port, ancestor)
    inode = _inode(port)
    if inode is None:
        return None
    if claimed is not None and _holds(claimed, inode):
        return descends_from(claimed, ancestor)
    return any(_holds(pid, inode) for pid in (ancestor, *descendants(ancestor)))


def _inode(port: int) -> str | None:
    """Of the socket at that port of the loopback interface."""
    wanted = f"0100007F:{port:04X}"
    for table in TABLES:
        try:
            rows = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[1].endswith(wanted) and fields[3] == ESTABLISHED and fields[9] != "0":
                return fields[9]
    return None


def _holds(pid: int, inode: str) -> bool:
    wanted = f"socket:[{inode}]"
    try:
        return any(str(entry.readlink()) == wanted for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
