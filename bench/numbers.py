"""Times and their summary. Machines are noisy: medians, several rounds, and what is compared runs by turns."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, of one thing measured again and again."""

    values: tuple[float, ...]

    def at(self, share: float) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p90(self) -> float:
        return self.at(0.9)

    @property
    def p99(self) -> float:
        return self.at(0.99)

    @property
    def spread(self) -> float:
        """Half the 95 % interval of the median, from the quartiles (McGill's notches)."""
        return 1.57 * (self.at(0.75) - self.at(0.25)) / math.sqrt(len(self))

    def __len__(self) -> int:
        return len(self.values)


def ms(seconds: float) -> str:
    thousandths = seconds * 1000
    return f"{thousandths:.2f} ms" if thousandths < 10 else f"{thousandths:,.0f} ms"


def mib(size: float) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def by_turns(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Time each of `works` `rounds` times, one after the other in each round."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(timed(work))
    return {name: Times(tuple(values)) for name, values in found.items()}


def process(argv: list[str], env: Mapping[str, str], stdin: str = os.devnull) -> Callable[[], int]:
    """A whole process, from its start to its end; it must end with 0."""
    devnull = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    actions = [(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0), devnull]

    def run() -> int:
        pid = os.posix_spawn(argv[0], argv, dict(env), file_actions=actions)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            raise RuntimeError(f"{argv[0]} ended with {code}")
        return code

    return run
