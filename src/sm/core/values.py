"""Frozen values, copied with some of their fields changed."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import replace
else:

    def replace(value: object, /, **changes: object) -> object:
        """Do what `dataclasses.replace` does, in half its time, for a dataclass with slots and no `__post_init__`.

        A hook copies a dozen values; the class's own `__init__` would check and set each field by its name.
        """
        setters, read = _slots(type(value))
        copy = object.__new__(type(value))
        for put, given in zip(setters.values(), read(value), strict=False):
            put(copy, given)
        for name, given in changes.items():
            setters[name](copy, given)
        return copy


__all__ = ["replace"]


@cache
def _slots(kind: type) -> tuple[dict[str, Callable[[object, object], None]], Callable[[object], tuple[object, ...]]]:
    """Return what sets each field of a new value, and what reads them all."""
    names = [field.name for field in fields(kind)]
    return {name: getattr(kind, name).__set__ for name in names}, attrgetter(*names, names[0])  # of one name: no tuple
