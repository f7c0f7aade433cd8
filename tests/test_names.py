"""Names: modules in the words of the field, one class for a name, and what a client is like in its provider.

Each list of what is still otherwise holds exactly what is found: it can only shrink.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import sm

SOURCE = Path(sm.__file__).parent
PRIVATE_VOCABULARY = re.compile(
    "perform|orders|seats|carrying|delivery|mailbox|outbox|post|keeping|kept|past|account|accounting|happenings|ledger"
    "|wishes|cues|statements|inheritance|frames|shelf|places|shapes|words|pieces|metering|watch|adopt|told|voices|speech"
    "|calls|births|beginning|farewell|life|last_words|scene|quick|measuring|following|handing_off|installing|stage"
)
"""Names that modules had before, and that say nothing to somebody who knows agents, tmux, asyncio and SQL."""
SAME_NAME = {
    "TranscriptReader": "one for each provider, over the one that they share",
    **dict.fromkeys(("ThreadSettings", "Turn", "UserInput"), "the client's own name of a type of its protocol"),
}


def modules():
    return {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}


def test_no_module_has_a_name_of_the_private_vocabulary():
    stems = {name: {Path(name).stem, *Path(name).parent.parts} for name in modules()}
    assert [name for name, parts in stems.items() if any(map(PRIVATE_VOCABULARY.fullmatch, parts))] == []


def test_no_two_classes_have_the_same_name():
    """Private ones are the shapes of one module."""
    homes = defaultdict(list)
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1 and name not in SAME_NAME} == {}
    assert sorted(SAME_NAME) == sorted(name for name in SAME_NAME if len(homes[name]) > 1)


CLIENT = re.compile(
    r"(?<![\w}])/(?:clear|exit|quit|resume|rewind)\b|\bC-[sx]\b|\b(?:command-name|pasted_content|system-reminder)\b"
    r"|\b(?:PostToolUse(?:Failure)?|PreToolUse|UserPromptSubmit|SessionStart|SessionEnd|Stop(?:Failure)?|PreCompact"
    r"|PostCompact|PermissionRequest|Bash(?:Output)?|Read|Grep|Glob|(?:Multi|Notebook)?Edit|Write|Agent|Task|WebFetch"
    r"|WebSearch|TodoWrite|ExitPlanMode|AskUserQuestion|Skill)\b"
)
"""Its commands, its keys, its tags, its hooks and its tools."""
WORDS_OF_ITS_OWN = frozenset({"Agent", "Edit", "Read", "Skill", "Stop", "Task", "Write"})
"""English too: the client's only where they are all of a string, or are followed by what a rule of it has."""
REPLY_LIMITS = frozenset({800, 9_000, 9_900, 10_000})
"""Characters that a reply to a hook, or a typed prompt, may have."""
HOMES = ("providers/", "testing/", "hook.py")
NAME = re.compile(r"\b[Cc]laude\b|\bCLAUDE_(?!SESSION_MANAGER_ID\b)\w+")
"""Its name, and variables of it; one of ours is named like them."""
MAY_NAME_IT = {
    "api/bodies.py": "the provider of a session where none is asked for",
    "bootstrap.py": "knows every part",
    "cli/": "the user names a provider, and reads which",
    "demo.py": "shows that client",
    "earlier_tools.py": "words of other tools",
    "settings.py": "its section of the configuration",
}


def remarks(tree):
    """Docstrings, and strings below fields: they explain and decide nothing."""
    for node in ast.walk(tree):
        statements = getattr(node, "body", [])
        for statement in statements if isinstance(statements, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield id(statement.value)


def said_of_a_client(source, words=CLIENT):
    """What a string has of those words; and its limits, by the names of the constants."""
    tree = ast.parse(source)
    skipped = {*remarks(tree), *(id(part) for node in ast.walk(tree) for part in in_path(node))}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in skipped:
                yield from (word for word in words.findall(text) if is_meant(word, text))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(number))):
                if name.endswith("LIMIT") and number in REPLY_LIMITS:
                    yield name


def in_path(node):
    """A route may end in /clear as well: behind a value in a string, or as what `session_path` is given."""
    match node:
        case ast.JoinedStr(values=[_, *rest]):
            yield from (part for part in rest if isinstance(part, ast.Constant) and str(part.value).startswith("/"))
        case ast.Call(func=ast.Name(id="session_path"), args=[_, *rest]):
            yield from rest


def is_meant(word, text):
    return word not in WORDS_OF_ITS_OWN or text == word or f"{word}(" in text


def elsewhere(*homes):
    return sorted(name for name in modules() if not name.startswith((*HOMES, *homes)))


@pytest.mark.parametrize("name", elsewhere())
def test_what_a_client_is_like_is_said_in_its_provider(name):
    assert list(said_of_a_client(modules()[name].read_text())) == []


@pytest.mark.parametrize("name", elsewhere(*MAY_NAME_IT))
def test_a_client_is_named_only_where_one_is_chosen(name):
    assert list(said_of_a_client(modules()[name].read_text(), NAME)) == []


@pytest.mark.parametrize("place", MAY_NAME_IT)
def test_each_place_that_may_name_a_client_does(place):
    sources = [path.read_text() for name, path in modules().items() if name.startswith(place)]
    assert any(word for source in sources for word in said_of_a_client(source, NAME))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('CLEAR = "/clear"', ["/clear"]),
        ('"""Typed is /clear."""\nX = 1', []),
        ('path = f"{session}/clear"', []),
        ('path = session_path(session, "/clear")', []),
        ('advice = f"Save {file}; after /clear, continue"', ["/clear"]),
        ('keys = ("C-x", "C-s")', ["C-x", "C-s"]),
        ('allowed = "Edit(file)"\nverb = "Edit the file"', ["Edit"]),
        ('hooks = {"PostToolUse"}', ["PostToolUse"]),
        ('mark = f"<command-name>{name}"', ["command-name"]),
        ('hint = f"end it (/exit in its terminal, or kill {pid})"', ["/exit"]),
        ("REPLY_LIMIT = 9_900\nBODY_LIMIT = 1_048_576", ["REPLY_LIMIT"]),
    ],
)
def test_what_belongs_to_a_client_is_recognised(source, found):
    assert list(said_of_a_client(source)) == found
