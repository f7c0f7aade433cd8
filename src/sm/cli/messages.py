"""Commands about messages between sessions: send, list the queued ones, show one's state."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from sm.cli.connection import agent_or_user, user_client
from sm.cli.format import ago, emit_json, encodable, fail, show
from sm.cli.options import Seconds, json_option, no_start
from sm.client import message_path, session_path
from sm.core.errors import Refused, error
from sm.plain_text import plain

MAX_STDIN_BYTES = 1 << 20
"""Of standard input; the server's own limit is smaller and has an error of its own."""


Command = Callable[..., Any]


def _mode(name: str, words: str) -> Callable[[Command], Command]:
    return click.option(f"--{name}", "mode", flag_value=name, help=words)


@click.command()
@click.argument("target", metavar="TARGET")
@click.argument("text", nargs=-1, metavar="TEXT...")
@click.option(
    "--sequential", "mode", flag_value="sequential", default=True, help="Deliver at the end of its turn (default)."
)
@_mode("important", "Deliver at the next tool call of its turn.")
@_mode("urgent", "Deliver now: interrupts the reply; a running command continues in the background.")
@_mode("steer", "Deliver at the next tool call; fail if the agent is not working.")
@click.option("--notify-on-stop", is_flag=True, help="Send this session a message when the target stops.")
@click.option(
    "--wait",
    type=Seconds(1, 86_400 * 30),
    metavar="SECONDS",
    help="Send this session a message SECONDS after delivery.",
)
@click.option(
    "--expires",
    type=Seconds(0, 86_400 * 365, min_open=True),
    metavar="SECONDS",
    help="Discard if not delivered within SECONDS.",
)
@click.option(
    "--command", is_flag=True, help="TEXT is a command of the client, such as /compact; agents: own children only."
)
@no_start
@json_option
def send(target: str, text: tuple[str, ...], *, as_json: bool, **options: Any) -> int:  # noqa: ANN401
    """Send TEXT to other sessions; `-` reads it from standard input.

    TARGET is an id, a name, several of them with commas between, `parent` or `children`. Prints the message's id and
    state; `sm message ID` shows whether it was delivered. Write `--` before TEXT that begins with a dash.
    """
    body = {"to": target, "text": given_text(text, "message", "sm send TARGET"), **options}
    return send_message(body, as_json=as_json)


def send_message(body: dict[str, Any], *, as_json: bool) -> int:
    """Send it and print the state of each message; return the exit code."""
    sent = user_client().call("POST", "/messages", body)
    if as_json:
        emit_json(sent)
        return int(any("error" in answer for answer in sent))
    return show_sent(sent)


def show_sent(sent: list[dict[str, Any]]) -> int:
    """Print the state of each message; return the exit code."""
    code = 0
    for answer in sent:
        if "error" in answer:
            refused = Refused(str(answer["code"]), f"{plain(answer['name'])}: {answer['error']}", str(answer["hint"]))
            code = max(code, fail(refused, as_json=False))
        else:
            show(f"{answer['id']} {answer['state']}" + (f" {plain(answer['name'])}" if len(sent) > 1 else ""))
    return code


def given_text(words: tuple[str, ...], what: str, usage: str) -> str:
    """Return the text given to a command: its words, or standard input for `-`."""
    text = _from_stdin(what, usage) if words == ("-",) else " ".join(words)
    if not text.strip():
        raise error("usage", f"The {what} is empty", f"{usage} TEXT, or `-` to read it from standard input")
    if not encodable(text):
        raise error("usage", f"The {what} is not UTF-8", "write it in UTF-8")
    return text


def _from_stdin(what: str, usage: str) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise error("usage", f"`{usage} -` reads the text from standard input", f"{usage} - <<'EOF' … EOF")
    content = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(content) > MAX_STDIN_BYTES:
        raise error(
            "too_large", f"The {what} on standard input is larger than {MAX_STDIN_BYTES:,} bytes", "send a file"
        )
    return content.decode("utf-8", "replace")


@click.command()
@click.argument("message", metavar="ID")
@click.option("--cancel", is_flag=True, help="Cancel the message while it is queued (its sender, or the user).")
@no_start
@json_option
def message(message: str, *, cancel: bool, as_json: bool) -> None:
    """Show the state of a message: queued, delivered, confirmed, unconfirmed, expired or failed, and why."""
    view = user_client().call("DELETE" if cancel else "GET", message_path(message))
    if as_json:
        emit_json(view)
    else:
        show(receipt(view))


def receipt(view: dict[str, Any]) -> str:
    channel = f" by {view['channel']}" if view["channel"] else ""
    reason = f": {view['reason']}" if view["reason"] else ""
    since = ago(max(0.0, time.time() - view["changed"]))  # noqa: TID251  # the user's clock
    who = f"{plain(view['from'] or 'sm')} to {plain(view['to'])}"
    size = f"{view['size']:,} byte{'' if view['size'] == 1 else 's'}"
    return f"{view['id']} {view['state']}{channel}{reason}\n{who}, {view['mode']}, {size}, {since} ago"


@click.command()
@click.argument("session", required=False)
@click.option("--dead", is_flag=True, help="Show undelivered messages, sent and received, with the reason.")
@no_start
@json_option
def inbox(session: str | None, *, dead: bool, as_json: bool) -> None:
    """List the messages queued for this session, or for SESSION, and why each waits."""
    client, own = agent_or_user(session)
    found = client.call("GET", session_path(own, "/messages?dead=1" if dead else "/messages"))
    if as_json:
        emit_json(found)
        return
    none = "No undelivered messages" if dead else "No queued messages"
    show("\n".join(map(_dead_line if dead else _queued_line, found)) if found else none)


def _queued_line(view: dict[str, Any]) -> str:
    return f"{_line(view)}\n  {plain(view['reason'])}" if view["reason"] else _line(view)


def _dead_line(view: dict[str, Any]) -> str:
    return f"{_line(view)}\n  to {view['target']}: {plain(view['reason'])}"


def _line(view: dict[str, Any]) -> str:
    age = ago(max(0.0, time.time() - view["queued"]))  # noqa: TID251  # the user's clock
    first = plain(view["text"].strip().split("\n", 1)[0])[:60]
    return f"{view['id']} {view['state']} {view['mode']} {age} {plain(view['from'] or 'sm')}: {first}"
