"""Reads YAML as it is written: every value is text, with its place, and a key that is there twice is an error.

PyYAML's own types are left out: `no` is a word here, `012` is not ten, and a date stays as it is. Its nodes say where a
value begins and ends, so that one can be replaced and the rest stays byte for byte. PyYAML is loaded with the first
text: it costs 30 ms.
"""

from __future__ import annotations

from typing import Any

Node = Any
"""A node of PyYAML, which has no types of its own."""
NOTHING = frozenset({"", "~", "null", "none"})
WITH_ADVICE = {
    "mapping values are not allowed here": "a value with a colon in it needs quotes",
    "found character '\\t' that cannot start any token": "lines are indented with blanks, not with tabs",
}
"""What PyYAML says of the usual mistakes, in words that say what to do."""
MAX_CHARACTERS = 65_536
"""Of one text: PyYAML reads some 100,000 characters a second."""


class YamlError(ValueError):
    """Why a text cannot be used, with the line where that is known."""


def entries(text: str, first_line: int = 1) -> dict[str, Node]:
    """Return the nodes of a mapping by key, in their order; YamlError for any other text. Empty is an empty mapping."""
    if len(text) > MAX_CHARACTERS:
        raise YamlError(f"more than {MAX_CHARACTERS:,} characters of YAML")
    import yaml  # noqa: PLC0415  # see above

    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as problem:
        where = f"line {problem.problem_mark.line + first_line}: " if problem.problem_mark else ""
        why = problem.problem or problem.context
        raise YamlError(f"{where}{WITH_ADVICE.get(why, why)}") from problem
    except RecursionError as problem:
        raise YamlError("nested too deeply") from problem
    except (yaml.YAMLError, ValueError, OverflowError) as problem:  # a character that YAML does not allow
        raise YamlError(str(problem).splitlines()[0]) from problem
    if node is None:
        return {}
    return members(node, "it", first_line)


def members(node: Node, name: str, first_line: int = 1) -> dict[str, Node]:
    """Return the nodes of a mapping that is a value itself."""
    if node.id != "mapping":
        raise YamlError(f"{name} is not a list of `key: value` lines")
    found: dict[str, Node] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise YamlError(f"line {key.start_mark.line + first_line}: a key is not plain text")
        if key.value in found:
            raise YamlError(f"line {key.start_mark.line + first_line}: {key.value} is there twice")
        found[key.value] = value
    return found


def word(node: Node, name: str) -> str:
    """Return the text of a scalar, empty for null; YamlError for a list or a mapping."""
    if node.id != "scalar":
        raise YamlError(f"{name} is not plain text")
    text: str = node.value.strip()
    return "" if text.lower() in NOTHING and node.style is None else text


def words(node: Node, name: str) -> tuple[str, ...]:
    """Return the texts of a list, or of a scalar with commas."""
    if node.id == "scalar":
        return tuple(part for text in word(node, name).split(",") if (part := text.strip()))
    if node.id != "sequence":
        raise YamlError(f"{name} is not a list")
    return tuple(found for item in node.value if (found := word(item, name)))
