"""What clients ask their users, from anywhere: list it, allow, deny, answer."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import ago, coloured, emit_json, say, show
from sm.cli.messages import given_text
from sm.cli.options import json_option, no_start
from sm.client import ask_path
from sm.core.errors import error
from sm.core.ids import as_argument
from sm.plain_text import plain

MAX_LINES = 12
"""Of one member of the input in the list; `sm asks ID` shows all of it."""
ask_argument = click.argument("ask", metavar="ID")


@click.command()
@click.argument("ask", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="Also those that are over, and what the answer was.")
@no_start
@json_option
def asks(ask: str | None, *, everything: bool, as_json: bool) -> None:
    """List what agents wait for you to answer: permissions, questions and plans; with ID, all of one.

    Its dialog stays open in the session's terminal too; the first answer counts. The first 4 characters of an ID
    are enough; here, so is the name of a session that has only one open ask.
    """
    client = user_client()
    if ask is not None:
        found = client.call("GET", ask_path(ask))
        emit_json(found) if as_json else show("\n".join(_lines(found, None)))
        return
    views = client.call("GET", "/asks?all=1" if everything else "/asks")
    if as_json:
        emit_json(views)
    elif views:
        show("\n\n".join("\n".join(_lines(view, MAX_LINES)) for view in views))
    else:
        say("no open asks")


@click.command()
@ask_argument
@click.option("--always", is_flag=True, help="Allow the same from now on, as `sm asks` shows it.")
@no_start
@json_option
def approve(ask: str, *, always: bool, as_json: bool) -> None:
    """Allow what a client asks permission for, or approve a plan. `sm asks` shows the ID."""
    _answer(ask, {"decision": "allow", "always": always}, as_json=as_json)


@click.command()
@ask_argument
@click.argument("reason", nargs=-1, metavar="[REASON...]")
@no_start
@json_option
def deny(ask: str, reason: tuple[str, ...], *, as_json: bool) -> None:
    """Refuse it; the agent reads REASON and continues its turn. A plan goes back to be changed."""
    text = given_text(reason, "reason", f"sm deny {shlex.quote(ask)}") if reason else ""
    _answer(ask, {"decision": "deny", "text": text}, as_json=as_json)


@click.command()
@ask_argument
@click.argument("text", nargs=-1, metavar="[TEXT...]")
@click.option(
    "--choice",
    "choices",
    multiple=True,
    metavar="N",
    help="The number of an option, once for each question in order; 1,3 where several may be chosen.",
)
@no_start
@json_option
def answer(ask: str, text: tuple[str, ...], choices: tuple[str, ...], *, as_json: bool) -> None:
    """Answer an agent's question with TEXT or with the option N. `-` reads TEXT from standard input.

    Several questions take one argument each, in order: sm answer ID "the first" "the second".
    """
    if text and choices:
        raise error(
            "usage", "TEXT and --choice were both given", "give one of them: TEXT alone answers in your own words"
        )
    if not (text or choices):
        raise error("usage", "TEXT or --choice N is needed", f"sm asks {shlex.quote(ask)} shows the question")
    answers = [_numbers(choice) for choice in choices] if choices else _own_words(ask, text)
    _answer(ask, {"decision": "answer", "answers": answers}, as_json=as_json)


def _own_words(ask: str, words: tuple[str, ...]) -> list[str]:
    """Return one answer for each question; the words of one question's answer need no quotes."""
    usage = f"sm answer {shlex.quote(ask)}"
    text = given_text(words, "answer", usage)
    if len(words) == 1 or len(user_client().call("GET", ask_path(ask))["questions"]) < 2:  # noqa: PLR2004
        return [text]
    return [given_text((word,), "answer", usage) for word in words]


def _numbers(choice: str) -> list[int]:
    parts = [part.strip() for part in choice.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):  # noqa: PLR2004
        raise error("usage", f"Invalid choice {choice!r}", "the number of an option, or several with commas: 1,3")
    numbers = [int(part) for part in parts]
    if len({*numbers}) < len(numbers):
        raise error(
            "usage", f"Choice {choice} has a number twice", "for several questions give --choice for each, in order"
        )
    return numbers


def _answer(ask: str, body: dict[str, object], *, as_json: bool) -> None:
    found = user_client().call("POST", ask_path(ask), body)
    if as_json:
        emit_json(found)
    else:
        show(f"{found['id']} {_outcome(found)} ({plain(found['name'])}, {plain(found['tool'])})")


def _outcome(view: dict[str, Any]) -> str:
    if view["state"] != "answered":
        return str(view["state"])
    words = {"allow": "allowed", "deny": "denied"}.get(view["decision"], "answered")
    lasting = "; ".join(map(plain, view["always"])) or "for always"
    return f"{words}; and from now on it {lasting}" if view["for_always"] else words


def _lines(view: dict[str, Any], limit: int | None) -> Iterator[str]:
    since = ago(max(0.0, time.time() - view["asked"]))  # noqa: TID251  # the user's clock
    subagent = " (a subagent)" if view["agent"] else ""
    head = f"{view['id']}  {plain(view['name'])}{subagent}  {view['kind']}  {plain(view['tool'])}  {since} ago"
    yield coloured(head, "1")
    if view["state"] != "open":
        yield f"  {_outcome(view)}{_why(view)}"
    elif view["reason"]:
        yield f"  {plain(view['reason'])}"
    yield from (f"  {line}" for line in _asked(view, limit))


def _why(view: dict[str, Any]) -> str:
    by = f" by session {view['by']}" if view["by"] else ""
    words = plain(view["answer"] or view["reason"])
    there = f"; answer it there: sm attach {as_argument(view['name'], view['session'])}"
    return f"{by}{f': {words}' if words else ''}{there if view['state'] == 'expired' else ''}"


def _asked(view: dict[str, Any], limit: int | None) -> Iterator[str]:
    """Yield what it says: the questions with their options, or what the tool was given."""
    for question in view["questions"]:
        yield from _block("", question["text"], None)
        for number, option in enumerate(question["options"], start=1):
            description = f" - {plain(option['description'])}" if option["description"] else ""
            yield f"  {number}. {plain(option['label'])}{description}"
        if question["several"]:
            yield "  (more than one may be chosen: --choice 1,3)"
    if not view["questions"]:
        for name, value in view["input"].items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from _block(f"{plain(name)}: ", text, limit)
    for words in view["always"] if view["state"] == "open" else ():
        yield f"with --always it also {plain(words)}"


def _block(label: str, text: str, limit: int | None) -> Iterator[str]:
    """Yield the lines of a text; a character that would move the cursor is shown as `?`."""
    lines = text.split("\n")
    shown = lines if limit is None else lines[:limit]
    yield label + plain(shown[0])
    yield from (f"  {plain(line)}" for line in shown[1:])
    if len(shown) < len(lines):
        yield f"  … {len(lines) - len(shown)} more lines: sm asks ID shows them"
