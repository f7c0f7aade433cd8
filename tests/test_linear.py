"""C23: every regular expression of the package takes linear time, whatever the text.

Expressions are found in two ways: all calls of `re` in the source, and all compiled ones in the values of modules. One
that can be found in neither way fails the test. Each runs over texts of one filler, the usual ones and those made of
the expression itself; four times the text may take about four times as long. Only where a text takes long at all the
times are compared, so that no quick machine is needed and none is too slow.
"""

import ast
import dataclasses
import functools
import importlib
import pkgutil
import re
import re._constants as op
import re._parser
import time
from itertools import islice
from pathlib import Path

import pytest

import sm

ANCHORED = {"match", "fullmatch"}
"""They try one place of a text."""
PACKAGE = Path(sm.__file__).parent
SOURCES = {
    ".".join(("sm", *path.relative_to(PACKAGE).with_suffix("").parts)): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
}
FUNCTIONS = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}
MADE = {
    "sm.archive.redaction.patterns": {"secret_pattern"},
    "sm.archive.redaction.vendor_patterns": {"_prefixed"},
    "sm.digest.keywords": {"cue"},
}
"""Functions that only make what module values hold."""
WRITTEN_BY_TESTS = {"sm.testing.scenario": {"_found"}, "sm.testing.agent.hooks": {"_matches"}}
"""Expressions of a scenario, and a matcher in the client's settings."""
MADE_OF_WORDS = {
    "sm.archive.search.query": {"best_line": [r"a[\W_]*b", r"search[\W_]*index[\W_]*words", r"x"]},
    "sm.core.model.handoff": {"head_field": [r"^<!-- SESSION: (.*) -->$"]},
    "sm.core.rules.gate": {"_behind": [r"^EOF$\n?", r"^\t*EOF$\n?"]},
}
"""Expressions made of a word that somebody gives: what they look like then."""

HANDED_ON = {"STRING", "SCALAR", "DOCUMENT", "ITEM"}
"""Expressions that a function gets, which tries them at one place."""

SIZE = 1_000
TIMES = 4
QUIET = 0.0015
"""Seconds of work that is not worth a comparison."""
CLEAR = 0.5
"""Seconds of a text that no noise explains."""
MAX_GROWTH = 9
"""Times as long for four times the text: linear is 4, quadratic 16."""
TRIES = 4
FILLERS = (
    *(
        "x",
        "A",
        "1",
        "a1",
        "aB",
        "é",
        "字",
        " ",
        "\t",
        "\n",
        "\r\n",
        " \n",
        "\n\n",
        "x ",
        "x\n",
        ". ",
        "x. ",
        ".",
        ",",
        ";",
    ),
    *(
        ":",
        "'",
        '"',
        "`",
        "```",
        "(",
        ")",
        "()",
        "[",
        "]",
        "<",
        ">",
        "<a>",
        "{",
        "}",
        "-",
        "_",
        "=",
        "+",
        "/",
        "\\",
        "|",
    ),
    *("&", "*", "#", "@", "$", "%", "!", "?", "~", "^", "\0", "\x1b", "\x1b[", "\x1b[1;", "\x1b]", "\ud800", "- x\n"),
    *(
        "a-",
        "a.b",
        "a=1 ",
        "│",
        "─",
        "⎿",
        "http://",
        "://a",
        "0x",
        "a:b@",
        '\\"',
        "$(",
        "<<EOF\n",
        "sm ",
        "[sm",
        "Error: ",
    ),
)
ENDS = ("", "!", "\n")
MAX_OWN_FILLERS = 60
"""Fillers that are made of one expression."""


def modules():
    yield sm
    for found in pkgutil.walk_packages(sm.__path__, "sm."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def calls(module):
    """Each call of a function of `re` with the name of the function around it."""
    around = [("", ast.parse(Path(module.__file__).read_text()))]
    while around:
        name, node = around.pop()
        inner = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else name
        if isinstance(node, ast.Call) and is_of_re(node.func):
            yield inner, node
        around += [(inner, child) for child in ast.iter_child_nodes(node)]


def is_of_re(function):
    named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    return named and function.value.id == "re" and function.attr in FUNCTIONS


def written(module, function, call):
    """What a call's expression is: its own text where it stands in the source, or samples of it."""
    for table in (MADE, WRITTEN_BY_TESTS):
        if function in table.get(module.__name__, ()):
            return []
    samples = MADE_OF_WORDS.get(module.__name__, {}).get(function)
    if samples is not None:
        return [(re.compile(sample, re.MULTILINE), False) for sample in samples]
    anchored = call.func.attr in ANCHORED
    first, flags = call.args[0], call.args[-1] if call.func.attr == "compile" and len(call.args) > 1 else None
    try:
        value, flag = evaluated(first, module), evaluated(flags, module) if flags is not None else 0
    except NameError as problem:
        where = f"{module.__name__}.{function}:{call.lineno}"
        raise AssertionError(f"{where}: an expression this test cannot see; see MADE and MADE_OF_WORDS") from problem
    return [(re.compile(value, flag), anchored)]


def evaluated(node, module):
    return eval(compile(ast.Expression(node), module.__name__, "eval"), dict(vars(module)))  # noqa: S307  # our source


def held(value, seen):
    """The compiled expressions in a value, however deep."""
    if isinstance(value, re.Pattern):
        yield value
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None))):
        return
    seen.add(id(value))
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, (tuple, list, set, frozenset)):
        inner = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, type) and value.__module__.startswith("sm."):
        inner = list(vars(value).values())
    else:
        inner = []
    for member in inner:
        yield from held(member, seen)


NAMES = re.compile(r"(?<![\w.])(_?[A-Z][A-Z0-9_]*)\b(?:\.(\w+)\(|(\s*(?::[^=\n]+)?=(?!=)|,?$))?", re.MULTILINE)


@functools.cache
def uses(module):
    """By name of a value: the methods that are called of it in this module; "" where it is used in another way."""
    found = {}
    for name, method, definition in NAMES.findall(SOURCES.get(module, "")):
        if not definition:
            found.setdefault(name, set()).add(method)
    return found


def is_anchored(module, name):
    """Whether a module's expression is only ever tried at one place of a text, there and wherever it is imported."""
    if name in HANDED_ON:
        return True
    last = module.rpartition(".")[2]
    others = [other for other, text in SOURCES.items() if re.search(rf"(from {module}|import.*\b{last}\b)", text)]
    found = set().union(*(uses(other).get(name, ()) for other in (module, *others)))
    return bool(found) and found <= ANCHORED


@functools.cache
def expressions():
    found = {}

    def take(module, expression, *, anchored):
        key = (expression.pattern, expression.flags)
        found[key] = (module, expression, anchored and found.get(key, (0, 0, True))[2])

    for module in modules():
        seen = set()
        for name, value in list(vars(module).items()):
            alone = isinstance(value, re.Pattern)
            for expression in held(value, seen):
                take(module.__name__, expression, anchored=alone and is_anchored(module.__name__, name))
        for function, call in calls(module):
            for expression, anchored in written(module, function, call):
                if function or call.func.attr != "compile":
                    take(module.__name__, expression, anchored=anchored)
    return sorted(found.values(), key=lambda entry: (entry[0], str(entry[1].pattern)))


# --- texts made of an expression --------------------------------------------------------------------------------------


def sample(parsed, many):
    """A text that the parsed expression, or the beginning of it, matches; what repeats does so `many` times."""
    return "".join(PARTS[kind](given, many) if kind in PARTS else "" for kind, given in parsed)


def repeated(given, many):
    least, most, inner = given
    return sample(inner, many) * min(max(least, many), most)


PARTS = {
    op.LITERAL: lambda given, _: chr(given),
    op.NOT_LITERAL: lambda given, _: "x" if given != ord("x") else "y",
    op.ANY: lambda *_: "x",
    op.IN: lambda given, _: member(given),
    op.MAX_REPEAT: repeated,
    op.MIN_REPEAT: repeated,
    op.POSSESSIVE_REPEAT: repeated,
    op.SUBPATTERN: lambda given, many: sample(given[-1], many),
    op.ATOMIC_GROUP: sample,
    op.BRANCH: lambda given, many: sample(given[1][0], many),
}
CATEGORY = {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a", op.CATEGORY_NOT_SPACE: "a"}


def member(items):
    if items[0] == (op.NEGATE, None):
        taken = {chr(given) for kind, given in items[1:] if kind is op.LITERAL}
        return next(character for character in "xa1 .-" if character not in taken)
    kind, given = items[0]
    if kind is op.LITERAL:
        return chr(given)
    return chr(given[0]) if kind is op.RANGE else CATEGORY.get(given, "x")


def branches(parsed):
    """The expression as it stands, and once for each branch that it has at any level."""
    yield list(parsed)
    for place, (kind, given) in enumerate(parsed):
        before = list(parsed)[:place]
        inner = given[-1] if kind is op.SUBPATTERN else None
        if kind is op.BRANCH:
            for option in given[1]:
                yield from ([*before, *rest] for rest in branches(option))
        elif inner is not None:
            yield from ([*before, *rest] for rest in islice(branches(inner), 1, None))


def own_fillers(pattern):
    """What would make the expression begin at each place and then fail: its beginnings, again and again."""
    parsed = re._parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found = {}
    for branch in branches(parsed):
        for length in range(1, len(branch) + 1):
            for many in (0, 1, 3):
                found[sample(branch[:length], many)] = None
    return [text for text in found if text][:MAX_OWN_FILLERS]


def texts(pattern, filler, size):
    for end in ENDS if filler in FILLERS else ENDS[1:2]:
        text = (filler * (size // len(filler) + 1))[:size] + end
        yield text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text


def work(pattern, text, *, anchored):
    if not anchored:
        for _ in pattern.finditer(text):
            pass
    pattern.match(text)
    pattern.fullmatch(text)


def seconds(pattern, text, *, anchored=False):
    begin = time.process_time()
    work(pattern, text, anchored=anchored)
    return time.process_time() - begin


def grows(pattern, filler, *, anchored=False):
    """How many times as long it takes for four times the text, at best of some tries; 0 where it takes no time."""
    worst = 0.0
    for small, large in zip(texts(pattern, filler, SIZE), texts(pattern, filler, TIMES * SIZE), strict=True):
        if seconds(pattern, small, anchored=anchored) < QUIET / TIMES:
            continue
        ratios = []
        for _ in range(TRIES):
            short, long = [seconds(pattern, text, anchored=anchored) for text in (small, large)]
            ratios.append(0.0 if long < QUIET else long / max(short, 1e-9))
            if ratios[-1] < MAX_GROWTH or long > CLEAR:
                break
        worst = max(worst, min(ratios))
    return worst


def test_the_expressions_of_every_package_are_found():
    names = {name.rpartition(".")[0] for name, _, _ in expressions()}
    assert {"sm.archive", "sm.core", "sm.digest", "sm.providers.claude", "sm.tmux", "sm.cli"} <= names
    assert len(expressions()) > 120


PACKAGES = sorted({*(name.rpartition(".")[0] for name in SOURCES), "sm"})


def is_in(module, package):
    return package == (module if module in PACKAGES else module.rpartition(".")[0])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("package", PACKAGES)
def test_each_takes_linear_time(package):
    """A test for each package, not for each expression: to find them takes seconds, which no collection should pay."""
    slow = []
    for _, pattern, anchored in (entry for entry in expressions() if is_in(entry[0], package)):
        for filler in (*FILLERS, *own_fillers(pattern)):
            ratio = grows(pattern, filler, anchored=anchored)
            if ratio >= MAX_GROWTH:
                slow.append((pattern.pattern, filler, round(ratio, 1)))
                break
    assert slow == []


@pytest.mark.parametrize("slow", [r"[A-Za-z0-9]*[a-z0-9][A-Z]", r"\s+$", r"<a>.*?</a>"])
def test_what_takes_longer_is_seen(slow):
    """As the words of the index once did. On a busy machine one comparison may take the short text for slow."""
    pattern = re.compile(slow, re.DOTALL)
    assert any(grows(pattern, filler) >= MAX_GROWTH for _ in range(TRIES) for filler in ("x", " ", "<a>"))
