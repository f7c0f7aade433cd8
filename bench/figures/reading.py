"""Reading the context of a 400 MB transcript whose last line has 12 MB, against a fixed tail of 100 KB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.numbers import Times, mib, ms, timed
from bench.table import Row
from sm.providers.claude.transcript import TranscriptReader

MAKER = Path(__file__).parents[2] / "tests" / "cases" / "make_big.py"
RIGHT = 123_456
COLD, NEXT, MEMORY = 0.020, 0.0002, 30 << 20
MEASURE = """
import resource, sys
from pathlib import Path
from sm.providers.claude.transcript import TranscriptReader
reader = TranscriptReader(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reader.read(); reader.read()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


async def rows(*, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.jsonl"
        megabytes = "40" if quick else "400"
        subprocess.run([sys.executable, str(MAKER), str(path), megabytes, "12"], check=True)
        return list(_rows(path, 3 if quick else 15, megabytes))


def _rows(path: Path, rounds: int, megabytes: str) -> tuple[Row, ...]:
    cold, following, naive = [], [], []
    for _ in range(rounds):
        reader = TranscriptReader(path)
        cold.append(timed(reader.read))
        following.append(timed(reader.read))
        naive.append(timed(lambda: naive_tail(path)))
    assert reader.read().tokens == RIGHT
    found = "nothing" if naive_tail(path) is None else "something"
    beside = f"fixed 100 KB tail: {ms(Times(tuple(naive)).median)}, and it finds {found}"
    output = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, check=True).stdout
    memory = int(output)
    first, later = Times(tuple(cold)).median, Times(tuple(following)).median
    what = f"context of a {megabytes} MB transcript, 12 MB last line"
    return (
        Row(f"{what}: cold", "≤ 20 ms", ms(first), beside, first <= COLD),
        Row(f"{what}: next reading", "≤ 0.2 ms", f"{later * 1000:.3f} ms", beside, later <= NEXT),
        Row(
            f"{what}: memory above idle", "≤ 30 MiB", mib(memory), f"file {mib(path.stat().st_size)}", memory <= MEMORY
        ),
    )


def naive_tail(path: Path) -> int | None:
    """What earlier systems did: the last 100,000 bytes, a line at a time."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 100_000))
        file.readline()
        found = None
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record.get("type") == "assistant":
                found = sum(value for value in record["message"]["usage"].values() if isinstance(value, int))
    return found
