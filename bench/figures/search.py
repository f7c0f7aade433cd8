"""Searching a gigabyte of terminal logs, and what a hook costs while the index is being filled."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.fleet import SIZE, Fleet, fleet
from bench.load import Outcome, offer
from bench.numbers import Times, mib, ms, timed
from bench.table import Row
from sm.archive.redaction.redact import no_own_tokens
from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer
from sm.archive.search.query import best_line, terms_of
from sm.archive.terminal.segments import segments_of
from sm.core.model.history import Context, SessionHistory

BAR = 0.2
P50, P99 = 0.001, 0.005
RATE = 200
SESSIONS = 100
VOCABULARY = 40_000
QUERIES = {
    "a word in every passage": "the",
    "two common words": "the limiter",
    "a phrase": '"refills lazily"',
    "a path": "src/limiter/bucket_7.py",
    "a rare identifier": "needle_in_the_haystack",
    "a prefix": "refil*",
    "a word that is nowhere": "nowhereatall",
}
COMMON = ("the", "limiter", "refills", "lazily", "of", "a", "test", "bucket", "returns", "tokens")


async def rows(*, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        found = await asyncio.to_thread(_searching, Path(folder), (8 if quick else 1024) << 20, 3 if quick else 15)
    async with fleet(10 if quick else SIZE) as members:
        return [*found, *await asyncio.to_thread(_hooks, members, 2.0 if quick else 10.0)]


def _searching(folder: Path, size: int, rounds: int) -> list[Row]:
    index = SearchIndex(folder / "search.db")
    began = time.perf_counter()
    for number in range(SESSIONS):
        _fill(index, folder, number, size // SESSIONS)
    spent = time.perf_counter() - began
    times = {name: _times(index, query, rounds) for name, query in QUERIES.items()}
    index.close()
    slowest = max(times, key=lambda name: times[name].median)
    beside = ", ".join(f"{name} {ms(time.median)}" for name, time in times.items())
    what = f"search in {mib(size)} of terminal logs"
    measured = f"{ms(times[slowest].median)} ({slowest})"
    filled = f"{size / spent / (1 << 20):.1f} MiB/s, index {mib(index.size())}"
    return [
        Row(f"{what}: slowest query", "< 200 ms", measured, beside, times[slowest].median < BAR),
        Row(f"{what}: filling the index without rests", "–", filled, f"{SESSIONS} sessions", None),
    ]


def _fill(index: SearchIndex, folder: Path, number: int, size: int) -> None:
    session = f"{number:08x}"
    log = folder / f"{session}.log"
    with log.open("wb") as file:
        for screen in screens(number, size):
            file.write(screen)
    contexts = (Context(1, "c", None, 1_000.0 * number, 0),)
    history = SessionHistory(session, "claude", ended=True, last_activity=2_000.0, contexts=contexts)
    pieces = segments_of(log)
    Indexer(index, {}, no_own_tokens, lambda: True).index_session(history, log, pieces, pieces[-1].end)
    log.unlink()


def _times(index: SearchIndex, query: str, rounds: int) -> Times:
    terms = terms_of(query)

    def search() -> None:
        for found in index.search(terms, None, 20):
            best_line(found.text, terms)

    return Times(tuple(timed(search) for _ in range(rounds)))


def screens(seed: int, size: int) -> Iterator[bytes]:
    """What a client paints: words with their columns, and a line below them that moves. About a fifth of it is text."""
    source = random.Random(seed)
    rare = [f"{source.choice(COMMON)}_{source.randrange(VOCABULARY):x}" for _ in range(2_000)]
    done = 0
    while done < size:
        lines = []
        for _ in range(20):
            words = source.choices(COMMON, k=8) + source.choices(rare, k=4)
            lines.append("".join(f"\x1b[{8 * column + 3}G{word}" for column, word in enumerate(words)))
        lines.append(
            f"\x1b[38;5;246m⎿\x1b[39m src/limiter/bucket_{source.randrange(100)}.py {source.getrandbits(128):032x}"
        )
        if source.random() < 0.001:
            lines.append("needle_in_the_haystack")
        frames = "".join(f"\r\x1b[38;5;174m{frame}\x1b[39m\x1b[3GWorking… ({done}s)\x1b[K" for frame in "·✢✳✶✻✽" * 12)
        data = ("\r\r\n".join(lines) + f"\r\r\n{frames}\r\x1b[K").encode()
        done += len(data)
        yield data


def _hooks(found: Fleet, seconds: float) -> list[Row]:
    """The same load with nothing else to do, and while a backlog of logs is taken in."""
    quiet = offer(found.url, found.members, RATE, seconds)
    for number, member in enumerate(found.members):
        with found.rig.home.log(member.id).open("ab") as file:
            for screen in screens(number, 4 << 20):
                file.write(screen)
    time.sleep(3)  # the archive looks every two seconds, and takes in what was there at the look before
    busy = offer(found.url, found.members, RATE, seconds)
    what = f"one PostToolUse hook while the index is filled, {len(found.members)} sessions, {RATE}/s"
    beside = f"nothing to index: {_of(quiet)}"
    times = busy.times
    return [
        Row(f"{what}: p50", "≤ 1 ms", ms(times.median), beside, times.median <= P50),
        Row(f"{what}: p99", "≤ 5 ms", ms(times.p99), beside, times.p99 <= P99),
    ]


def _of(outcome: Outcome) -> str:
    return f"{ms(outcome.times.median)} / {ms(outcome.times.p99)}"
