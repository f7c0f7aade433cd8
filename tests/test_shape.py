"""The shape of the code: short functions, modules of one idea, values that cannot change."""

import ast
import dataclasses
import importlib
import pkgutil
from pathlib import Path

import pytest

import sm.core

SOURCE = Path(sm.__file__).parent
MODULE_LINES = 300
FUNCTION_LINES = 60
LONGER = {
    "settings.py": "one table of keys with a sentence each, and what reads them",
    "earlier_tools.py": "one table: a line for each name of three earlier tools",
    "archive/terminal/emulator.py": "a terminal, with a table of its control functions",
    "archive/search/indexer.py": "each kind of text that is indexed, and how to take in what is new of it",
    "archive/handoffs/documents.py": "every file that a handoff has",
    "digest/document.py": "one function for each part of one document",
    "core/rules/session/advance.py": "the one entry for every event, with its parts in their order",
    "core/rules/rotation.py": "every rule about rotation lives here",
    "core/events.py": "the closed set of events",
    "core/effects.py": "the closed set of effects",
    "core/ports/provider.py": "all that is asked of one kind of client, a protocol for each part",
    "wire.py": "the answers of the API, a struct for each",
    "bootstrap.py": "joins every part, one after the other",
    "providers/claude/keys/driver.py": "every look at one input box and every key into it",
    "providers/claude/launch.py": "everything a client is started with: settings, hooks, environment, arguments",
    "providers/codex/app/schema.py": "generated: each type of a protocol that is used",
    "providers/jsonl.py": "the byte-level reading that two providers share",
    "testing/agent/client.py": "a stand-in for a whole client",
    "testing/agent/turns.py": "a stand-in for a whole client",
    "paths.py": "every path below SM_HOME, and how a file is written there",
    "store/database.py": "one file of SQLite, from opening and migrating it to what its faults mean",
    "tmux/client.py": "one connection, with what it does when it is lost",
}


def modules():
    return {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}


@pytest.mark.parametrize("name", sorted(modules()))
def test_a_module_is_short_or_says_why_not(name):
    lines = len(modules()[name].read_text().splitlines())
    assert lines <= MODULE_LINES or name in LONGER


def test_no_reason_is_given_for_what_is_short():
    assert all(len(modules()[name].read_text().splitlines()) > MODULE_LINES for name in LONGER)


def test_no_function_is_long():
    long = []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                long += [f"{name}:{node.name} ({lines})"] if lines > FUNCTION_LINES else []
    assert long == []


def core_dataclasses():
    for module in pkgutil.iter_modules(sm.core.__path__, "sm.core."):
        found = importlib.import_module(module.name)
        yield from (kind for kind in vars(found).values() if dataclasses.is_dataclass(kind) and isinstance(kind, type))


@pytest.mark.parametrize("kind", sorted(set(core_dataclasses()), key=str), ids=lambda kind: kind.__name__)
def test_every_value_of_the_core_is_frozen_and_slotted(kind):
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)
