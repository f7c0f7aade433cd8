"""Commands about past contexts: `sm log`, `sm search`, `sm archive`."""

from __future__ import annotations

import codecs
import errno
import http.client
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import coloured, emit_json, say, show, write
from sm.cli.options import json_option, lines_option, no_start, session_argument
from sm.cli.tables import Column, table, terminal_width
from sm.client import Client, UnavailableError, answered, quoted, session_path
from sm.plain_text import plain

STREAM_TIMEOUT_S = 300.0
CHUNK_BYTES = 1 << 16
HIT_COLOUR = "1;33"
MIN_LINE_COLUMNS = 40
MIN_PATH_COLUMNS = 28
OTHER_COLUMNS = 55
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
UNIT_STEP = 1024


@click.command()
@session_argument()
@click.option("--context", "number", type=click.IntRange(1), help="Print one context only, counted from 1.")
@lines_option(None)
@click.option("--raw", is_flag=True, help="Print the raw bytes of the terminal, secrets included.")
@no_start
@json_option
def log(session: str, number: int | None, lines: int | None, *, raw: bool, as_json: bool) -> None:
    """Print what a session's terminal has shown since its start, as plain text, without secrets."""
    if raw and (as_json or lines):
        raise click.UsageError("--raw takes neither --json nor --lines")
    given = {"context": number, "lines": lines, "raw": 1 if raw else None}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
    chunks = streamed(user_client(), session_path(session, f"/log?{query}"))
    if raw:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    texts = codecs.iterdecode(chunks, "utf-8", "replace")
    if as_json:
        emit_json({"text": "".join(texts)})
        return
    empty = True
    for text in texts:
        write(sys.stdout, text)
        empty = empty and not text
    if empty:  # the terminal of sm run is not recorded; its transcript exists
        say("nothing was recorded\nhint: the terminal of sm run is not recorded; sm archive list names its transcripts")


def streamed(client: Client, path: str) -> Iterator[bytes]:
    """Return the chunks of an answer as they arrive."""
    connection = http.client.HTTPConnection(client.address.partition("://")[2], timeout=STREAM_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {client.token}"})
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            answered(client.address, answer.status, answer.read())
        while chunk := answer.read1(CHUNK_BYTES):
            yield chunk
    except (OSError, http.client.HTTPException) as problem:
        raise UnavailableError(str(problem)) from problem
    finally:
        connection.close()


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--session", help="Search this session only.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of hits.")
@no_start
@json_option
def search(words: tuple[str, ...], session: str | None, limit: int, *, as_json: bool) -> None:
    """Search the terminals, transcripts and handoff documents of all sessions and contexts for WORDS, newest first.

    A hit contains all words; "several words" in quotes are a phrase, begin* matches any word that starts so.
    """
    query = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    path = f"/search?limit={limit}&q={quoted(query)}"
    hits = user_client().call("GET", path + (f"&session={quoted(session)}" if session else ""))
    if as_json:
        emit_json(hits)
        return
    for hit in hits:
        show(hit_lines(hit, terminal_width()))
    if not hits:
        say("nothing found\nhint: the last few seconds may not be in the index yet; try again")


def hit_lines(hit: dict[str, Any], width: int) -> str:
    context = f"context {hit['context']}, " if hit["context"] else ""
    head = f"{local_time(hit['at'])} {plain(hit['name'] or hit['session'])}: {context}{hit['kind']}"
    return f"{coloured(head, '90')}\n  {marked(hit['line'], hit['marks'], max(MIN_LINE_COLUMNS, width - 2))}"


def marked(line: str, marks: list[list[int]], width: int) -> str:
    """Return the line around its first hit, each hit coloured or, without colours, between asterisks."""
    first = marks[0][0] if marks else 0
    begin = 0 if len(line) <= width else max(0, min(first - width // 3, len(line) - width))
    end = min(len(line), begin + width)
    parts, at = [], begin
    for start, stop in marks:
        if begin <= start < end:
            parts += [plain(line[at:start]), _hit(plain(line[start : min(stop, end)]))]
            at = min(stop, end)
    return "".join([*parts, plain(line[at:end])])


def _hit(text: str) -> str:
    shown = coloured(text, HIT_COLOUR)
    return shown if shown != text else f"**{text}**"


def local_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


@click.group("archive")
def archive() -> None:
    """List and delete what is kept of past contexts."""


@archive.command("list")
@session_argument()
@no_start
@json_option
def list_artefacts(session: str, *, as_json: bool) -> None:
    """Show the files of a session's contexts: logs, snapshots, transcripts, handoff documents."""
    found = user_client().call("GET", session_path(session, "/archive"))
    if as_json:
        emit_json(found)
    elif found:
        show(table(artefact_columns(found), terminal_width()))
    else:
        say("no files are kept of this session")


@archive.command()
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@no_start
@json_option
def prune(*, dry_run: bool, as_json: bool) -> None:
    """Delete logs and snapshots beyond archive.keep_days and archive.max_total.

    The server does this once a day. Files that a running session or an open handoff needs are kept.
    """
    found = user_client().call("POST", "/archive/prune", {"dry_run": dry_run})
    if as_json:
        emit_json(found)
        return
    files = found["files"]
    if files:
        show(table(artefact_columns(files), terminal_width()))
    verb = "would be deleted" if dry_run else "removed"
    say(f"{len(files)} files, {size_of(sum(file['size'] for file in files))} {verb}")


def artefact_columns(found: list[dict[str, Any]]) -> list[Column]:
    room = max(MIN_PATH_COLUMNS, terminal_width() - OTHER_COLUMNS)
    return [
        Column("KIND", [file["kind"] for file in found]),
        Column("CONTEXT", [contexts_of(file["contexts"]) for file in found], rank=1),
        Column("SIZE", [size_of(file["size"]) for file in found]),
        Column("WRITTEN", [local_time(file["at"]) for file in found], rank=2),
        Column("PATH", [short_path(plain(file["path"]), room) for file in found]),
    ]


def short_path(path: str, room: int) -> str:
    """Return the path's end where all of it does not fit: its last parts distinguish files."""
    return path if len(path) <= room else f"…{path[1 - room :]}"


def contexts_of(numbers: list[int]) -> str:
    if not numbers:
        return "-"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def size_of(size: float) -> str:
    unit = 0
    while size >= UNIT_STEP and unit + 1 < len(UNITS):
        size, unit = size / UNIT_STEP, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 or size >= 10 else f"{size:.1f} {UNITS[unit]}"  # noqa: PLR2004
