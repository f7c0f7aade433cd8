"""A copy with changes is what `dataclasses.replace` makes, for every value of the core."""

import dataclasses
import importlib
import pkgutil

import pytest

import sm.core
from sm.core.model.context import Monitor
from sm.core.values import replace
from tests.core.playbook import idle_session


def values():
    for found in pkgutil.walk_packages(sm.core.__path__, "sm.core."):
        for kind in vars(importlib.import_module(found.name)).values():
            own = isinstance(kind, type) and kind.__module__ == found.name
            if own and dataclasses.is_dataclass(kind) and dataclasses.fields(kind):
                yield kind


def copied(kind):
    names = [field.name for field in dataclasses.fields(kind)]
    value = kind(**{name: f"old {name}" for name in names})
    same = replace(value) == value and replace(value) is not value
    return same and all(
        replace(value, **{name: "new"}) == dataclasses.replace(value, **{name: "new"}) for name in names
    )


def test_a_copy_is_what_the_class_itself_would_make():
    kinds = [*values()]
    assert len(kinds) > 150
    assert [kind.__name__ for kind in kinds if not copied(kind)] == []


def test_the_value_itself_stays():
    before = idle_session()
    after = replace(before, name="other", conversation=None)
    assert (after.name, after.conversation) == ("other", None)
    assert before == idle_session()
    assert hash(replace(Monitor(), told=1.0)) == hash(Monitor(told=1.0))


def test_a_field_that_there_is_not_is_refused():
    with pytest.raises(KeyError):
        replace(Monitor(), tolled=1.0)
