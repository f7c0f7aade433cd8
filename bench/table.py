"""The rows of the table, on the terminal and in RESULTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("what", "bar", "measured", "same run, for comparison", "holds")


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    bar: str
    measured: str
    baseline: str
    holds: bool | None
    """None where there is no bar."""

    @property
    def cells(self) -> tuple[str, ...]:
        verdict = {True: "yes", False: "**no**", None: "–"}[self.holds]
        return (self.what, self.bar, self.measured, self.baseline, verdict)


def markdown(rows: Sequence[Row]) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def plain(row: Row) -> str:
    """For a terminal: one fact a line, however narrow it is."""
    names = ("bar", "measured", "beside", "holds")
    facts = "\n".join(f"  {name:<9} {cell}" for name, cell in zip(names, row.cells[1:], strict=True))
    return f"{row.what}\n{facts}"
