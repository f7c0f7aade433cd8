"""Finds the process at the other end of a connection on this machine: by /proc, so on Linux only.

A token is inherited by every process that an agent starts, also by those that outlive it and its client. A request that
changes a session is therefore accepted only from a process below the session's own client.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from sm.processes import descendants, descends_from, holds_socket

TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED_STATE = "01"
MORE_LOOKS, LOOK_INTERVAL_S = 3, 0.005
UNIX = "unix"
"""Replaces the host in the address of a peer on a unix socket; its port is the peer's pid then."""
CREDENTIALS = struct.Struct("3i")
Peer = tuple[str, int]
"""Host and port, or `UNIX` and a pid."""


def pid_of(connection: socket.socket) -> int | None:
    """Return the pid of the process of this user that has connected to a unix socket; None where nothing tells it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, CREDENTIALS.size))
    return pid if pid and user == os.getuid() else None


def is_below(ancestor: int, peer: Peer, claimed: int | None) -> bool | None:
    """Whether the peer is `ancestor` or a process below it; None where the system does not show it.

    `claimed` is the pid that the peer states: it saves a search through every process, and counts only if that process
    holds the other end of the connection.
    """
    host, port = peer
    if host == UNIX:
        return descends_from(port, ancestor)
    inode, is_ours = _found(port)
    if inode is None:
        return False if is_ours else None  # it has closed its end, and could be anybody
    if claimed is not None and holds_socket(claimed, inode):
        return descends_from(claimed, ancestor)
    return any(holds_socket(pid, inode) for pid in (ancestor, *descendants(ancestor)))


def is_at(pid: int, peer: Peer) -> bool:
    """Whether the peer is that very process, not one below it; False where the system does not show it."""
    host, port = peer
    if host == UNIX:
        return port == pid
    inode, _ = _found(port)
    return inode is not None and holds_socket(pid, inode)


def _found(port: int) -> tuple[str | None, bool]:
    """Look more than once: a table that changes while it is read may lack a row."""
    found = _ends(port)
    for _ in range(MORE_LOOKS):
        if found[0] is not None:
            break
        time.sleep(LOOK_INTERVAL_S)
        found = _ends(port)
    return found


def _ends(port: int) -> tuple[str | None, bool]:
    """Return the inode of the socket at that port of the loopback interface, and whether any is connected to it."""
    wanted, is_ours = f"0100007F:{port:04X}", False
    for table in TCP_TABLES:
        try:
            rows = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[1].endswith(wanted) and fields[3] == ESTABLISHED_STATE and fields[9] != "0":
                return fields[9], True
            is_ours = is_ours or (fields[2].endswith(wanted) and fields[9] != "0")
    return None, is_ours
