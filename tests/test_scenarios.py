"""The table in README.md of this folder names each scenario for every driver that Codex cannot have, and why."""

import importlib
from pathlib import Path

import pytest

from tests.e2e.conftest import BOTH

TABLES = {
    "claude_only": "## Scenarios that Codex cannot have",
    "not_in_terminal": "## Scenarios that Codex in its terminal cannot have",
}


def reasons(target, marker):
    marks = getattr(target, "pytestmark", [])
    return [mark.args[0] for mark in marks if mark.name == marker]


def marked(marker):
    """The rows that the markers make: module, test in words, reason; "all" for a whole module."""
    for path in sorted((Path(__file__).parent / "e2e").glob("test_*.py")):
        module = importlib.import_module(f"tests.e2e.{path.stem}")
        yield from ((path.name, "all", reason) for reason in reasons(module, marker))
        for name, function in vars(module).items():
            if name.startswith("test_") and getattr(function, "__module__", "") == module.__name__:
                yield from ((path.name, name[5:].replace("_", " "), reason) for reason in reasons(function, marker))


def listed(marker):
    text = Path(__file__).with_name("README.md").read_text().partition(f"{TABLES[marker]}\n")[2].partition("\n## ")[0]
    for line in text.splitlines():
        if line.startswith("| `"):
            module, test, reason = (cell.strip() for cell in line.strip("|").split("|"))
            yield module.strip("`"), test, reason


@pytest.mark.parametrize("marker", TABLES)
def test_the_table_has_a_row_for_each_marker_and_no_other(marker):
    assert list(listed(marker)) == list(marked(marker))


@pytest.mark.parametrize("marker", TABLES)
def test_only_scenarios_of_every_driver_are_marked(marker):
    assert {module.removesuffix(".py") for module, _, _ in marked(marker)} <= BOTH
