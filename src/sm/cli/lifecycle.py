"""Ends sessions, and brings ended ones back.

Names are looked up before anything is done: one that means no session, or two, leaves all as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.descriptions import interrupted_words
from sm.cli.format import emit_json, fail, say
from sm.cli.new import sendable_environment
from sm.cli.options import json_option, no_start, sessions_argument
from sm.cli.sessions import check_terminal
from sm.client import Client, session_path
from sm.core.errors import Refused, SmError, error
from sm.fleet import ENDED_STATUSES, is_lost
from sm.plain_text import plain

STARTS_AT_ONCE = 3


@dataclass(slots=True)
class Results:
    """Of one command for several sessions."""

    done: list[dict[str, Any]] = field(default_factory=list)
    refused: list[tuple[dict[str, Any], Refused]] = field(default_factory=list)

    def add(self, session: dict[str, Any], act: Callable[[], dict[str, Any]]) -> None:
        try:
            self.done.append(act())
        except SmError as problem:
            self.refused.append((session, problem.refused))

    def report(self, member: str, *, as_json: bool) -> int:
        """Print them under this member, or what was refused in words; return the exit code."""
        if as_json:
            problems = [
                {"id": session["id"], "name": session["name"], "error": why.message, "code": why.code, "hint": why.hint}
                for session, why in self.refused
            ]
            emit_json({member: self.done, "refused": problems})
        else:
            for _, why in self.refused:
                fail(why, as_json=False)
        return int(bool(self.refused))


def named_sessions(client: Client, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the sessions that the names mean, each once; SmError if one of them means none."""
    found = [client.call("GET", session_path(name)) for name in names]
    return list({session["id"]: session for session in found}.values())


@click.command()
@sessions_argument()
@click.option("--children", is_flag=True, help="End their children too, and the children of these.")
@no_start
@json_option
def kill(sessions: tuple[str, ...], *, children: bool, as_json: bool) -> int:
    """End the clients of sessions and all processes they started, without confirmation. Documents and logs stay.

    Children keep running unless --children is given. An agent can end its own children only.
    """
    client = user_client()
    suffix = "?children=1" if children else ""
    if len(sessions) == 1:
        found = client.call("DELETE", session_path(sessions[0], suffix))
        emit_json(found) if as_json else _say_ended(found)
        return 0
    results = Results()
    for session in named_sessions(client, sessions):
        if session["id"] not in {gone["id"] for view in results.done for gone in view["ended"]}:
            path = session_path(session["id"], suffix)
            results.add(session, partial(client.call, "DELETE", path))
    if not as_json:
        for view in results.done:
            _say_ended(view)
    return results.report("killed", as_json=as_json)


def _say_ended(found: dict[str, Any]) -> None:
    for ended in found["ended"]:
        say(f"ended {plain(ended['name'])} ({ended['id']})")


@click.command()
@sessions_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Every session that was lost within a week, as by a reboot.")
@click.option("--attach", "attach_after", is_flag=True, help="Attach to it afterwards.")
@click.option("--force", is_flag=True, help="Restore even after 5 failed starts within 300 seconds.")
@no_start
@json_option
def restore(sessions: tuple[str, ...], *, everything: bool, attach_after: bool, force: bool, as_json: bool) -> int:
    """Restart ended sessions with their last conversation, or with the document of an unfinished handoff.

    --all restarts those whose client ended in its pane though you did not end it: tmux or the machine stopped, or the
    client crashed. Sessions that you killed or left, and those of sm run, stay ended.

    Refused while another client has that conversation open, and after 5 starts within 300 seconds that ended without
    a turn. An agent can restore its own children only.
    """
    if everything == bool(sessions) or (attach_after and len(sessions) != 1):
        rule = "--attach takes one SESSION" if attach_after else "Name sessions, or use --all"
        raise error("usage", rule, "sm restore --help")
    if attach_after:
        check_terminal("sm restore --attach", "without --attach it needs none")
    client = user_client()
    body = {"env": sendable_environment(), **({"force": True} if force else {})}
    if len(sessions) == 1:
        _restore_one(client, sessions[0], body, attach_after=attach_after, as_json=as_json)
        return 0
    meant = lost_sessions(client) if everything else _all_or_living(named_sessions(client, sessions))
    if not (meant or as_json):
        say("no session was lost\nhint: sm restore NAME restarts one that you ended")
    return _restore_several(client, meant, body, as_json=as_json)


def _all_or_living(meant: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sessions, or only the living of them, which the server refuses: all are restored or none."""
    return [session for session in meant if session["status"] not in ENDED_STATUSES] or meant


def _restore_one(client: Client, session: str, body: dict[str, Any], *, attach_after: bool, as_json: bool) -> None:
    from sm.cli.attach import attach_to, wait_for_start  # noqa: PLC0415  # 15 modules, for a terminal only

    found = client.call("POST", session_path(session, "/restore"), body)
    found = found if attach_after else wait_for_start(client, found)
    emit_json(found) if as_json else _say_restored(found)
    if attach_after:
        attach_to(client, found["id"])


def _say_restored(found: dict[str, Any]) -> None:
    mode = found["mode"]
    shown = f", in permission mode {plain(mode)}{_meaning(mode)}" if mode else ""
    say(f"restored {plain(found['name'])} ({found['id']}){shown}")
    if found["interrupted"]:
        say(f"{plain(found['name'])}: {interrupted_words(found)}")


def _meaning(mode: str) -> str:
    from sm.providers.claude.asks import MODES  # noqa: PLC0415  # for a restored session only

    return f": it {MODES[mode]}" if mode in MODES else ""


def _restore_several(client: Client, meant: list[dict[str, Any]], body: dict[str, Any], *, as_json: bool) -> int:
    """Restart a few at a time: a client's start takes two seconds of a processor."""
    from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415  # for several only

    from sm.cli.attach import wait_for_start  # noqa: PLC0415  # as above

    def restart(session: dict[str, Any]) -> dict[str, Any]:
        return wait_for_start(client, client.call("POST", session_path(session["id"], "/restore"), body))

    def restored(start: Future[dict[str, Any]]) -> dict[str, Any]:
        found = start.result()
        if not as_json:
            _say_restored(found)
        return found

    results = Results()
    with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
        starts = [(session, pool.submit(restart, session)) for session in meant]
        try:
            for session, start in starts:
                results.add(session, partial(restored, start))
        except BaseException:  # as Ctrl-C: what is not begun is not
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results.report("restored", as_json=as_json)


def lost_sessions(client: Client) -> list[dict[str, Any]]:
    """Return the sessions that `--all` means, as the caller may see them: an agent its children."""
    return [session for session in client.call("GET", "/sessions") if is_lost(session)]
