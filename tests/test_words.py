"""What people read is plain English: the worst words of the past stay out of texts, help, settings and documents."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/sm").rglob("*.py"))
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "plugin").rglob("*.md")),
    *sorted((ROOT / "plugin").rglob("*.sh")),
]
WORST = re.compile(
    r"\b(go(es|ing)? on|went on|(is|are|be|was|were) told|told (of|to)|nobody|what (became|becomes) of|anew|meanwhile"
    r"|(stands?|stood)|(a|the|no) person|there (is|are) no|of ours|(takes?|taken|took) (it )?up|is no|are no|beside"
    r"|no more|lies in)\b",
    re.IGNORECASE,
)
RIDDLES = re.compile(
    r"\b(go(es|ing)? on|went on|(is|are|be|was|were|been) told|told (of|to)|nobody|what (became|becomes) of|anew"
    r"|meanwhile|stands?|stood|(a|the|no) person|of ours)\b",
    re.IGNORECASE,
)
"""What docstrings and comments do not say: each has a plainer word."""
OTHERS = {
    "digest": "patterns and words of transcripts; the document has tests of its own",
    "providers/claude/authorship.py": "what the client writes",
    "providers/claude/keys/screen.py": "what the client shows",
    "earlier_tools.py": "names of earlier tools; its texts are read as docs/coming-from.md",
}
"""Where strings are somebody else's words."""


def is_command(node):
    return isinstance(node, ast.FunctionDef) and any(
        re.search("click|command|group", ast.dump(decorator)) for decorator in node.decorator_list
    )


def remarks(tree):
    """Docstrings and the strings below fields that nobody but a developer reads."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            plain = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if plain and not (is_command(node) and statement is node.body[0]):
                yield statement.value


def texts(path):
    tree = ast.parse(path.read_text())
    skipped = {id(remark) for remark in remarks(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src/sm")))
def test_no_text_of_the_program_has_one_of_the_worst_words(path):
    if any(other in str(path) for other in OTHERS):
        return
    assert not [(line, found[0], text) for line, text in texts(path) if (found := WORST.search(text))]


def explanations(path):
    source = path.read_text()
    yield from (remark.value for remark in remarks(ast.parse(source)) if isinstance(remark.value, str))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src/sm")))
def test_no_docstring_or_comment_has_a_riddle(path):
    assert not [(found[0], text) for text in explanations(path) if (found := RIDDLES.search(text))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_document_has_one_of_the_worst_words(path):
    assert not [(found[0], line) for line in path.read_text().splitlines() if (found := WORST.search(line))]


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("Sessions go on while it is stopped.", True),
        ("Nobody is there to be asked", True),
        ("5x is no delay", True),
        ("Invalid delay '5x'. Use 90, 90s, 5m, 2h or 1d", False),
        ("Agents keep running while it is stopped.", False),
    ],
)
def test_the_worst_words_are_recognised(text, bad):
    assert bool(WORST.search(text)) is bad
