"""The table in README.md of this folder names each scenario for every driver that Codex cannot have, and why."""

import importlib
from pathlib import Path

from tests.e2e.conftest import BOTH

TABLE = "## Scenarios that Codex cannot have"


def reasons(target):
    marks = getattr(target, "pytestmark", [])
    return [mark.args[0] for mark in marks if mark.name == "claude_only"]


def marked():
    """The rows that the markers make: module, test in words, reason; "all" for a whole module."""
    for path in sorted((Path(__file__).parent / "e2e").glob("test_*.py")):
        module = importlib.import_module(f"tests.e2e.{path.stem}")
        yield from ((path.name, "all", reason) for reason in reasons(module))
        for name, function in vars(module).items():
            if name.startswith("test_") and getattr(function, "__module__", "") == module.__name__:
                yield from ((path.name, name[5:].replace("_", " "), reason) for reason in reasons(function))


def listed():
    text = Path(__file__).with_name("README.md").read_text().partition(TABLE)[2].partition("\n## ")[0]
    for line in text.splitlines():
        if line.startswith("| `"):
            module, test, reason = (cell.strip() for cell in line.strip("|").split("|"))
            yield module.strip("`"), test, reason


def test_the_table_has_a_row_for_each_marker_and_no_other():
    assert list(listed()) == list(marked())


def test_only_scenarios_of_every_driver_are_marked():
    assert {module.removesuffix(".py") for module, _, _ in marked()} <= BOTH
