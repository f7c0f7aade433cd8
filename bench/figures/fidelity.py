"""How much a document made without a model keeps, what it must not say, and how long it takes.

Measured on invented days; where SM_FIDELITY names a directory with a generate.py and a score.py, on theirs as well, and
where it holds days/ with facts, on those. A rule or a choice that is none counts against the share of its section.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.days import Day, Tally, day, days, saved
from bench.figures.reading import MAKER
from bench.numbers import Times, ms, timed
from bench.table import Row
from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.core.model.handoff import document_limit
from sm.providers.claude.traits import CLAUDE
from sm.providers.claude.transcript_events import transcript_events

LIMIT = document_limit(CLAUDE)
RECALL = 0.98
PRECISE = 0.80
LONG, LONGEST = 1.0, 2.0
JUDGES = ("precision.py", "own_score.py")
SEEDS = ("1", "2", "3", "4", "5", "6")


async def rows(*, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [*_rows(Path(folder), quick=quick)]


def _rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    made = days(range(9 if quick else 90))
    documents, tail = Tally(), Tally()
    for conversation in made:
        path = saved(conversation, folder)
        documents.count(conversation, document(path))
        tail.count(conversation, path.read_text(encoding="utf-8", errors="replace")[-LIMIT:])
    yield from _kept(f"{len(made)} invented days", documents, f"last {LIMIT:,} characters: {tail.recall:.3f}")
    given = os.environ.get("SM_FIDELITY")
    if given:
        yield from _given(Path(given), folder, quick=quick)
    megabytes = 6 if quick else 60
    yield _time(f"a day of {megabytes} MB", _long_day(megabytes, folder), LONG, quick=quick)
    megabytes = 40 if quick else 400
    path = folder / "big.jsonl"
    subprocess.run([sys.executable, str(MAKER), str(path), str(megabytes), "12"], check=True)
    yield _time(f"a transcript of {megabytes} MB, 12 MB last line", path, LONGEST, quick=quick)


def document(path: Path) -> str:
    return auto_handoff(transcript_events(path), None, LIMIT)


def _kept(what: str, tally: Tally, beside: str) -> Iterator[Row]:
    name = f"document without a model, {what}"
    yield Row(f"{name}: facts kept", f"≥ {RECALL:.2f}", f"{tally.recall:.3f} ({tally})", beside, tally.recall >= RECALL)
    broken = f"{len(tally.broken)}" + "".join(f"; {kind}" for kind, _ in tally.broken[:3])
    yield Row(f"{name}: what must not be said", "0", broken, beside, not tally.broken)
    fits = tally.characters <= LIMIT
    right, said = tally.said_right
    share = f"{right}/{said}"
    yield Row(f"{name}: rules and choices that are some", f"≥ {PRECISE:.2f}", share, beside, right >= PRECISE * said)
    yield Row(f"{name}: longest", f"≤ {LIMIT:,} characters", f"{tally.characters:,}", beside, fits)


def _given(place: Path, folder: Path, *, quick: bool) -> Iterator[Row]:
    generated = folder / "given"
    seeds = [argument for seed in SEEDS[: 1 if quick else None] for argument in ("--seed", seed)]
    scale = "0.05" if quick else "1"
    made = [sys.executable, str(place / "generate.py"), *seeds, "--scale", scale, "--out", str(generated)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    yield _scored(place, generated, folder / "generated documents", "transcripts of SM_FIDELITY")
    if (place / "days" / "set").is_dir():
        yield _scored(place, place / "days" / "set", folder / "documents of days", "days of SM_FIDELITY")


def _scored(place: Path, facts: Path, documents: Path, what: str) -> Row:
    documents.mkdir()
    for path in facts.glob("*.jsonl"):
        (documents / f"{path.stem}.md").write_text(document(path), encoding="utf-8")
    scored = [sys.executable, str(place / "score.py"), "--all", str(documents), str(facts), "--json"]
    summary = json.loads(subprocess.run(scored, check=True, capture_output=True).stdout)["summary"]
    recall, broken = summary["recall"], sum(summary["violations"].values())
    groups = ", ".join(f"{name} {kept}/{total}" for name, (kept, total) in summary["groups"].items() if total)
    shares = "; ".join(filter(None, (_lines_of(place / "days" / name, place, documents, facts) for name in JUDGES)))
    measured = f"{recall:.3f} ({groups}); {broken} violations; {summary['chars']:,} characters on average; {shares}"
    beside = f"{summary['documents']} transcripts"
    name = f"document without a model, {what}: facts kept"
    return Row(name, f"≥ {RECALL:.2f}, 0 violations", measured, beside, recall >= RECALL and not broken)


def _lines_of(judge: Path, place: Path, documents: Path, facts: Path) -> str:
    """What a judge of sections says in its first lines; "" where there is none, or where the facts are not its kind."""
    env = {**os.environ, "SCORE": str(place)}
    command = [sys.executable, str(judge), str(documents), str(facts)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    said = [line for line in ran.stdout.splitlines() if not line.startswith("  ")] if ran.returncode == 0 else []
    return ", ".join(line.partition("characters; ")[2] or line for line in said[:2])


def _long_day(megabytes: int, folder: Path) -> Path:
    made: Day = day(0, megabytes * 1_000_000)
    return saved(made, folder)


def _time(what: str, path: Path, bar: float, *, quick: bool) -> Row:
    took = Times(tuple(timed(lambda: document(path)) for _ in range(3 if quick else 7))).median
    size = f"{path.stat().st_size / 1e6:,.0f} MB read through: {ms(timed(path.read_bytes))}"
    return Row(f"document without a model, {what}", f"≤ {bar:.0f} s", ms(took), size, took <= bar)
