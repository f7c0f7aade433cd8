"""Decodes a JSON object whose members may be odd: an odd one counts as missing, the others arrive.

The typed decoder refuses the whole object for one member of another kind, half a surrogate pair, a control character
or deep nesting. A client of tomorrow may send any of these, and the event is worth more than the member.
"""

from __future__ import annotations

import json
import math
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import UnionType
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind", bound=msgspec.Struct)
Value = TypeVar("Value")
MAX_DEPTH = 10_000
"""Levels of nesting in a member that is only skipped: CPython 3.11 stops at 1,000, the C stack holds these."""
UNIONS = (typing.Union, UnionType)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


def lenient(kind: type[Kind], payload: bytes) -> Kind:
    """Decode a struct whose members all have defaults; ValueError if `payload` is no JSON object."""
    try:
        found: Kind = _decoder(kind).decode(payload)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return _struct(kind, payload)
    return found


@cache
def _decoder(kind: type[Kind]) -> msgspec.json.Decoder[Kind]:
    return msgspec.json.Decoder(kind, strict=False)


def text_of(raw: bytes) -> str:
    """The JSON string in `raw`; empty for anything else."""
    return _or(raw, str, "")


def members_of(raw: bytes) -> dict[str, object]:
    """The JSON object in `raw`; empty for anything else."""
    return _or(raw, dict[str, object], {})


def _or(raw: bytes, kind: type[Value], missing: Value) -> Value:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError):
        return missing


def _struct(kind: type[Kind], payload: bytes) -> Kind:
    members = _members(payload)
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        raw = members.get(field.encode_name)
        if raw is not None:
            for value in _value(field.type, bytes(raw)):
                found[field.name] = value
    return kind(**found)


def _members(payload: bytes) -> dict[str, msgspec.Raw]:
    with _deep():
        try:
            return _MEMBERS.decode(payload)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return _MEMBERS.decode(_mended(payload))


@contextmanager
def _deep() -> Iterator[None]:
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(MAX_DEPTH)
    try:
        yield
    except RecursionError as problem:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from problem
    finally:
        sys.setrecursionlimit(usual)


def _mended(payload: bytes) -> bytes:
    """Return the payload without what JSON does not allow: lone surrogates, control characters, NaN, a byte order mark.

    A number that no double holds becomes null.
    """
    text = payload.decode("utf-8-sig", "replace")
    read = json.loads(text, strict=False, parse_constant=lambda _: None, parse_int=_whole, parse_float=_finite)
    return json.dumps(read, ensure_ascii=False).encode("utf-8", "replace")


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) < 300 else None  # noqa: PLR2004  # a double ends at 1.8e308


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _value(kind: Any, raw: bytes) -> Iterator[object]:  # noqa: ANN401  # a type as `structs.fields` gives it
    """The value in `raw`; nothing if it is odd. Of a struct and of a list of structs, what is sound in it."""
    if kind is msgspec.Raw:
        yield msgspec.Raw(raw)
        return
    try:
        yield msgspec.json.decode(raw, type=kind, strict=False)
    except (ValueError, RecursionError):
        for part in typing.get_args(kind) if typing.get_origin(kind) in UNIONS else (kind,):
            yield from _salvaged(part, raw)


def _salvaged(kind: Any, raw: bytes) -> Iterator[object]:  # noqa: ANN401  # as above
    if raw.startswith(b"{") and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield _struct(kind, raw)
    elif raw.startswith(b"[") and typing.get_origin(kind) is list:
        (element,) = typing.get_args(kind)
        with _deep():
            elements = _ELEMENTS.decode(raw)
        yield [value for raw in elements for value in _value(element, bytes(raw))]
