"""Checks of the machine: other users, proxies, and which process has the server's port."""

from __future__ import annotations

import os
import pwd
import socket
import sys
from collections.abc import Iterable

from sm import __version__
from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings, short_list
from sm.client import Client, UnavailableError, inside_session, session_client
from sm.core.errors import SmError
from sm.lock import held_by, last_server, running_server
from sm.paths import read_token

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
EXEMPT = frozenset({"*", "127.0.0.1", "127.0.0.0/8", "127.0.0.0"})
FIRST_USER_ID = 501 if sys.platform == "darwin" else 1000
NOBODY_ID = 65_534
NO_LOGIN_SHELLS = ("nologin", "false", "sync", "shutdown", "halt")


def proxies(where: Surroundings) -> Finding:
    named = [name for name in where.environ if name.lower() in PROXY_VARIABLES and where.environ[name]]
    if not named:
        return Finding(OK, "none")
    exempt = where.environ.get("no_proxy") or where.environ.get("NO_PROXY") or ""
    if EXEMPT & {entry.strip() for entry in exempt.split(",")}:
        return Finding(OK, f"{short_list(named)} exempts 127.0.0.1")
    hint = "add 127.0.0.1,localhost to NO_PROXY. Sessions get it from sm, other programs do not"
    return Finding(WARN, f"{short_list(named)} does not exempt 127.0.0.1", hint)


def users(where: Surroundings) -> Finding:
    others = login_users(pwd.getpwall(), os.getuid())
    if not others:
        return Finding(OK, "no other login users")
    if where.settings is not None and where.settings.hooks.transport == "command":
        return Finding(OK, f"{short_list(others)} may log in too; hooks use a socket that they cannot reach")
    hint = 'set hooks.transport = "command": after a crash another user could take the port and collect what hooks send'
    return Finding(WARN, f"others may log in: {short_list(others)}", hint)


def login_users(entries: Iterable[pwd.struct_passwd], own: int) -> list[str]:
    return [
        entry.pw_name
        for entry in entries
        if FIRST_USER_ID <= entry.pw_uid < NOBODY_ID
        and entry.pw_uid != own
        and not entry.pw_shell.endswith(NO_LOGIN_SHELLS)
    ]


def server(where: Surroundings) -> Finding:
    if inside_session() is not None:
        return _answer_of(session_client())
    record = running_server(where.home)
    if record is not None:
        token = read_token(where.home)
        if token is None:
            return Finding(FAIL, f"{where.home.token} is missing", "sm server restart creates a new one")
        return _answer_of(Client(record.url, token))
    pid = held_by(where.home)
    if pid is not None:
        words = f"a server (pid {pid}) uses this SM_HOME and has not announced an address"
        return Finding(FAIL, words, "try again; if that does not help: sm server restart")
    return _port_free(where)


def _answer_of(client: Client) -> Finding:
    try:
        health = client.call("GET", "/health", timeout=3.0)
    except UnavailableError as problem:
        return Finding(
            FAIL, f"the server at {client.address} does not answer: {problem.refused.hint}", "sm server restart"
        )
    except SmError as problem:
        return Finding(FAIL, f"{client.address}: {problem.refused.message}", "sm server restart")
    if health["version"] != __version__:
        words = f"the server runs version {health['version']}, this is {__version__}"
        return Finding(WARN, words, "sm server restart; agents keep running")
    if health.get("problems"):
        return Finding(WARN, "; ".join(health["problems"]), "correct this; the server follows by itself")
    return Finding(OK, f"runs at {client.address} (pid {health['pid']}, {health['sessions']} sessions)")


def _port_free(where: Surroundings) -> Finding:
    """Check that the port of the next start is free: the configured one, or the last one while sessions use it."""
    from sm.sockets import holder_of  # noqa: PLC0415  # only where a port is taken
    from sm.store.sessions import any_alive  # noqa: PLC0415  # likewise

    before = last_server(where.home)
    port = where.settings.server.port if where.settings else 0
    if not port and before is not None and any_alive(where.home.database):
        port = before.port
    if port and _taken(port):
        hint = "end that process: running sessions send their hooks to this port"
        return Finding(FAIL, f"port {port} of the server is taken by {holder_of(port)}", hint)
    return Finding(OK, "not running; the next command that needs it starts it")


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
