"""A sprint: a named choice of issues in `.sprints/NAME.yaml`, as a list or as a filter.

    description: what it is for
    issues: [BUG-001, FEAT-002]     # or:
    filter: {type: [BUG], priority: [0, 1], label: [api], skip: [BUG-009], max_issues: 5}
    on_failure: stop                # or continue

A key that means nothing here is an error: what somebody has written is not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sm.core.errors import error
from sm.runner.issues.edit import read_text
from sm.runner.issues.filters import IssueFilter
from sm.runner.issues.issue import priority_of, type_of
from sm.runner.issues.yaml_nodes import Node, YamlError, entries, members, word, words

DIRECTORY = ".sprints"
SUFFIXES = (".yaml", ".yml")
_NAME = re.compile(r"\w[\w.-]{0,99}")
_KEYS = ("name", "description", "created", "issues", "filter", "on_failure")
_FILTER_KEYS = ("type", "priority", "label", "skip", "max_issues")
MAX_ISSUES = 10_000


@dataclass(frozen=True, slots=True)
class Sprint:
    name: str
    chosen: IssueFilter
    on_failure: Literal["stop", "continue"] = "continue"
    description: str = ""


def sprint(project: Path, name: str) -> Sprint:
    """Read the sprint of that name; SmError that says what is wrong with it."""
    if _NAME.fullmatch(name) is None:
        raise error("bad_sprint", f"Not a name for a sprint: {name!r}", "letters, digits and _ . -")
    directory = project.resolve() / DIRECTORY
    path = next((path for suffix in SUFFIXES if (path := directory / f"{name}{suffix}").is_file()), None)
    if path is None:
        known = ", ".join(sprint_names(project)) or f"write {DIRECTORY}/{name}.yaml"
        raise error("bad_sprint", f"No such sprint: {DIRECTORY}/{name}.yaml", known)
    try:
        return _parsed(name, entries(read_text(path)))
    except OSError as problem:
        raise error("bad_sprint", f"{DIRECTORY}/{path.name}: {problem.strerror}", "correct the file") from problem
    except ValueError as problem:
        raise error("bad_sprint", f"{DIRECTORY}/{path.name}: {problem}", "correct the file") from problem


def sprint_names(project: Path) -> list[str]:
    directory = project / DIRECTORY
    return sorted({path.stem for path in directory.glob("*") if path.suffix in SUFFIXES})


def _parsed(name: str, values: Mapping[str, Node]) -> Sprint:
    _refuse_others(values, _KEYS, "")
    if ("issues" in values) == ("filter" in values):
        raise YamlError("exactly one of `issues` and `filter` is needed")
    chosen = _listed(values["issues"]) if "issues" in values else _filter(members(values["filter"], "filter"))
    given = word(values["on_failure"], "on_failure") if "on_failure" in values else "continue"
    if given not in {"stop", "continue"}:
        raise YamlError(f"on_failure {given!r}: accepted are stop and continue")
    described = word(values["description"], "description") if "description" in values else ""
    return Sprint(name, chosen, "stop" if given == "stop" else "continue", described)


def _listed(node: Node) -> IssueFilter:
    only = words(node, "issues")
    if not only:
        raise YamlError("`issues` is empty")
    return IssueFilter(only=only)


def _filter(values: Mapping[str, Node]) -> IssueFilter:
    _refuse_others(values, _FILTER_KEYS, "filter.")
    found = {key: words(values[key], f"filter.{key}") for key in _FILTER_KEYS[:-1] if key in values}
    most = word(values["max_issues"], "filter.max_issues") if "max_issues" in values else ""
    if most and not (most.isascii() and most.isdigit() and len(most) <= len(str(MAX_ISSUES)) and int(most)):
        raise YamlError(f"filter.max_issues {most!r}: accepted is a whole number from 1")
    return IssueFilter(
        types=tuple(map(type_of, found.get("type", ()))),
        priorities=tuple(map(priority_of, found.get("priority", ()))),
        labels=found.get("label", ()),
        skip=found.get("skip", ()),
        max_issues=int(most) if most else None,
    )


def _refuse_others(values: Iterable[str], known: tuple[str, ...], before: str) -> None:
    other = next((key for key in values if key not in known), None)
    if other is not None:
        raise YamlError(f"unknown key {before}{other}: accepted are {', '.join(known)}")
