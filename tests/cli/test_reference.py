"""Documentation that cannot rot: what the code has, has its text, and the committed reference is up to date."""

import ast
import inspect
import runpy
from pathlib import Path

import pytest

from sm.api.errors import CODES
from sm.cli.exits import CODES as EXITS
from sm.core import effects, events
from sm.settings import KEYS, reference
from sm.web.routes import EVERY_ROUTE as ROUTES

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/sm").rglob("*.py"))
MAKERS = {"error", "Refused"}
"""What takes an error's code as its first argument."""


def codes_of(call):
    return [argument.value for argument in call.args[:1] if isinstance(argument, ast.Constant)]


def codes_in(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and codes_of(node):
            yield from codes_of(node)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_config_error":
            yield node.args[2].value if len(node.args) > 2 else "bad_config"


def classes(module, base):
    return [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, base)]


def own_docstring(cls):
    """None where a dataclass has made one up from its fields."""
    text = inspect.getdoc(cls) or ""
    return None if text.startswith(f"{cls.__name__}(") else text


def test_the_committed_reference_is_what_the_code_says():
    assert (ROOT / "docs/reference.md").read_text() == runpy.run_path(str(ROOT / "scripts/reference.py"))["render"]()


@pytest.mark.parametrize(
    "cls", [*classes(events, events.Event), *classes(effects, effects.Effect)], ids=lambda cls: cls.__name__
)
def test_each_event_and_effect_says_what_it_is(cls):
    assert own_docstring(cls)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{sorted(route.methods)} {route.path}")
def test_each_route_says_what_it_does(route):
    assert inspect.getdoc(route.endpoint)


def test_each_setting_has_its_text():
    texts = {(table, name): text for table, name, _, text in reference()}
    assert set(texts) == {(key.table, key.name) for key in KEYS.values()}
    assert all(texts.values())


def test_each_error_code_is_in_the_table_with_a_sentence_and_none_is_there_for_nothing():
    used = {code for path in SOURCES for code in codes_in(path)}
    derived = {"no_route", "bad_method"}
    assert used | derived == set(CODES)
    assert all(text.endswith(".") for _, text in CODES.values())
    assert set(EXITS) <= set(CODES)
