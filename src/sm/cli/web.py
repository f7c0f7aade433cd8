"""`sm web`: the link that lets a browser in, opened or shown as a QR code; and the browsers that are in."""

from __future__ import annotations

import io
import os
import sys
import time
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import ago, coloured, emit_json, is_terminal, say, show, without_utf8
from sm.cli.options import json_option, no_start
from sm.cli.tables import Column, display_width, table, terminal_width
from sm.client import inside_session, quoted
from sm.core.errors import error
from sm.plain_text import plain

WHITE_ON_BLACK = "97;40"
"""Whatever the terminal's own colours are: some cameras read no inverted code."""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
"""Variables of which one is set where a program can show a window, outside macOS."""


@click.group(invoke_without_command=True)
@click.option("--qr", is_flag=True, help="Show the link as a QR code, for a phone.")
@click.option("--read-only", is_flag=True, help="Let the browser look and change nothing.")
@click.option("--name", default="", help="What the browser is called in sm web devices.")
@click.option("--no-open", is_flag=True, help="Print the link; open nothing.")
@no_start
@json_option
@click.pass_context
def web(context: click.Context, *, qr: bool, read_only: bool, name: str, no_open: bool, as_json: bool) -> None:
    """Open sm's page in a browser, by a link that lets one browser in, once, within five minutes.

    The browser stays logged in until it is revoked (sm web devices), or was not used for 30 days. Under ssh, and where
    no browser is found, the link is printed. A phone needs a proxy of yours and its name in server.hosts: sm help web.
    """
    if inside_session() is not None:
        raise error("inside_session", "A session may let no browser in", "run it in a shell of yours")
    if context.invoked_subcommand is not None:
        return
    if qr and not as_json:
        check_library()
    client = user_client()
    link = client.call("POST", "/web/links", {"name": name, "read_only": read_only})
    local = f"http://{_local_host(link['host'])}:{client.address.rpartition(':')[2]}{link['path']}"
    elsewhere = [f"https://{host}{link['path']}" for host in link["hosts"]]
    if as_json:
        expiry = {"expires": link["expires"], "read_only": link["read_only"]}
        emit_json({"url": local, "elsewhere": elsewhere, **expiry})
    elif qr:
        _show_code(elsewhere[0] if elsewhere else local, is_local=not elsewhere)
    else:
        _open(local, elsewhere, no_open=no_open)


@web.command()
@click.option("--revoke", metavar="ID", help="Log this browser out at once.")
@no_start
@json_option
def devices(revoke: str | None, *, as_json: bool) -> None:
    """List the browsers that are logged in, or log one out."""
    client = user_client()
    if revoke is None:
        found = client.call("GET", "/web/devices")
        emit_json(found) if as_json else _show_devices(found)
        return
    if not revoke or "/" in revoke:
        raise error("not_found", f"No such device: {revoke}", "sm web devices lists them")
    gone = client.call("DELETE", f"/web/devices/{quoted(revoke)}")
    emit_json(gone) if as_json else say(f"logged out: {plain(gone['name'])} ({gone['id']})")


def _show_devices(found: list[dict[str, Any]]) -> None:
    if not found:
        say("no browser is logged in; sm web lets one in")
        return
    now = time.time()  # noqa: TID251  # the user's clock
    columns = [
        Column("NAME", [plain(device["name"]) for device in found]),
        Column("ID", [device["id"] for device in found]),
        Column("RIGHTS", ["read-only" if device["read_only"] else "all" for device in found], rank=1),
        Column("NOTIFIED", ["yes" if device.get("notified") else "no" for device in found], rank=2),
        Column("SEEN", [ago(now - device["seen"]) for device in found]),
        Column("SINCE", [ago(now - device["created"]) for device in found], rank=3),
    ]
    show(table(columns, terminal_width()))


def _local_host(own: str) -> str:
    """Return the server's own name on loopback, or 127.0.0.1 where this system's browser may not know such names."""
    import socket  # noqa: PLC0415  # for this command alone

    if sys.platform != "darwin":
        return own  # Chromium and Firefox know every name below .localhost themselves; Safari asks the system
    try:
        socket.getaddrinfo(own, None)
    except OSError:
        return "127.0.0.1"
    return own


def _open(local: str, elsewhere: list[str], *, no_open: bool) -> None:
    for url in (local, *elsewhere):
        show(url)
    opened = not no_open and _can_open() and _opened(local)
    words = "opened in your browser; " if opened else "open it in a browser: "
    say(f"{words}it lets one browser in, once, within five minutes")


def _can_open() -> bool:
    """Whether a browser can show itself to whoever runs this: neither under ssh nor without a display."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY") or not is_terminal(sys.stdout):
        return False
    return sys.platform == "darwin" or any(os.environ.get(name) for name in DISPLAYS)


def _opened(url: str) -> bool:
    import webbrowser  # noqa: PLC0415  # for this command alone

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


def _show_code(url: str, *, is_local: bool) -> None:
    for line in qr_lines(url):
        show(line)
    show(url)
    if is_local:
        say("a phone cannot open this address: it needs a proxy of yours, with its name in server.hosts (sm help web)")
    say("it lets one browser in, once, within five minutes")


def qr_lines(url: str) -> list[str]:
    """Return the code as lines for this terminal; without lines where it is too narrow."""
    import segno  # noqa: PLC0415  # an extra

    output, full_size = io.StringIO(), without_utf8(sys.stdout)
    segno.make(url, error="l", micro=False).terminal(output, border=2, compact=not full_size)
    lines = output.getvalue().splitlines()
    if full_size:
        return lines
    if max(map(display_width, lines)) > terminal_width():
        say(f"the QR code needs {max(map(display_width, lines))} columns")
        return []
    return [coloured(line, WHITE_ON_BLACK) for line in lines]


def check_library() -> None:
    try:
        import segno  # noqa: F401, PLC0415  # an extra
    except ImportError:
        hint = "pip install 'agent-sm[web]', or sm web --no-open prints the link"
        raise error("no_qr", "The library for QR codes is not installed", hint) from None
