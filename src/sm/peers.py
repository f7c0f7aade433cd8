"""Finds the process at the other end of a connection on this machine: by /proc, so on Linux only.

A token is inherited by every process that an agent starts, also by those that outlive it and its client. A request that
changes a session is therefore accepted only from a process below the session's own client.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sm.processes import PROC, descendants, descends_from, holds_socket

TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED_STATE = "01"
UNIX = "unix"
"""Replaces the host in the address of a peer on a unix socket; its port is the peer's pid then."""
CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    """The other end of a connection to the server."""

    host: str
    port: int
    """Its pid where the host is `UNIX`."""
    own_port: int = 0
    """Of the server's end."""


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
    if peer.host == UNIX:
        return descends_from(peer.port, ancestor)
    end = _end(peer)
    inode = end.inode
    if inode is None:
        return False if end.is_connected else None  # it has closed its end, and could be anybody
    if claimed is not None and holds_socket(claimed, inode):
        return descends_from(claimed, ancestor)
    return any(holds_socket(pid, inode) for pid in (ancestor, *descendants(ancestor)))


def is_below_one(ancestors: Sequence[int], peer: Peer) -> bool:
    """Whether the peer is one of these processes, or below one; False where the system does not show it."""
    if peer.host == UNIX:
        return PROC.joinpath("self").exists() and any(descends_from(peer.port, ancestor) for ancestor in ancestors)
    inode = _end(peer).inode
    below = (pid for ancestor in ancestors for pid in (ancestor, *descendants(ancestor)))
    return inode is not None and any(holds_socket(pid, inode) for pid in below)


def is_at(pid: int, peer: Peer) -> bool:
    """Whether the peer is that very process, not one below it; False where the system does not show it."""
    if peer.host == UNIX:
        return peer.port == pid
    inode = _end(peer).inode
    return inode is not None and holds_socket(pid, inode)


def user_of(peer: Peer) -> int | None:
    """Return the id of the user whose process is at the other end of a port; None where the system does not show it."""
    return None if peer.host == UNIX else _end(peer).user


class _End(NamedTuple):
    inode: str | None = None
    """Of the peer's socket."""
    user: int | None = None
    is_connected: bool = False
    """The server's own end is there."""


def _end(peer: Peer) -> _End:
    """Find the peer's end of the connection.

    Both ports count: the system gives the same port to several sockets of one machine that are connected elsewhere.
    """
    theirs, ours = (f"0100007F:{port:04X}" for port in (peer.port, peer.own_port))
    is_connected = False
    for table in TCP_TABLES:
        try:
            rows = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            local, remote, state, user, inode = fields[1], fields[2], fields[3], fields[7], fields[9]
            if inode == "0":
                continue
            if state == ESTABLISHED_STATE and local.endswith(theirs) and remote.endswith(ours):
                return _End(inode, int(user), is_connected=True)
            is_connected = is_connected or (local.endswith(ours) and remote.endswith(theirs))
    return _End(is_connected=is_connected)
