"""README and docs: each link leads somewhere, each command exists, each status is explained."""

import ast
import html
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest

from sm.cli.app import ALIASES, COMMANDS, GROUPS, cli
from sm.core.model.rotation import Phase
from sm.core.model.session import Status

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/sm"
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(path):
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def broken(path):
    for target in LINK.findall(path.read_text()):
        name, _, anchor = target.partition("#")
        found = path.parent / name if name else path
        if not found.is_file() or (anchor and anchor not in anchors(found)):
            yield target


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_each_link_leads_to_a_file_and_a_title_of_it(path):
    assert not list(broken(path))


PACKAGE = runpy.run_path(str(ROOT / "scripts/package.py"))
PICTURES = sorted(path for path in (ROOT / "docs").iterdir() if path.suffix in {".svg", ".png"})


def test_the_readme_links_to_nothing_outside_itself_but_pictures():
    """It is also shown where the package is, without the files beside it and without the pictures."""
    shown = PACKAGE["description"](README.read_text())
    assert all(target.startswith("#") for target in LINK.findall(shown))
    assert [line for line in README.read_text().splitlines() if line and line not in shown.splitlines()] == [
        line for line in README.read_text().splitlines() if line.startswith("![")
    ]
    assert not list(broken(README))


def test_each_picture_is_shown_says_what_it_shows_and_is_small():
    texts = "".join(path.read_text() for path in (README, *DOCS))
    for path in PICTURES:
        assert re.search(rf"!\[[^\]]{{20,}}\]\((?:docs/)?{path.name}\)", texts), path.name
        assert path.stat().st_size < 300_000, path.name


@pytest.mark.parametrize("path", [path for path in PICTURES if path.suffix == ".svg"], ids=lambda path: path.name)
def test_a_drawn_terminal_is_xml_with_no_script_and_nothing_from_elsewhere(path):
    drawn = ET.fromstring(path.read_text())  # noqa: S314  # our own
    assert {element.tag.rpartition("}")[2] for element in drawn.iter()} <= {
        *("svg", "rect", "g", "text", "style", "defs", "use")
    }
    assert all(value.startswith("#") for element in drawn.iter() for name, value in element.items() if "href" in name)
    assert not re.search(r"url\(|@import|\bon\w+=", path.read_text())


def test_the_readme_names_each_document():
    assert all(f"sm help {path.stem}" in README.read_text() for path in DOCS)


OURS = [README, *(path for path in DOCS if path.stem != "coming-from")]


PATH = re.compile(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|sql)|\.ci/run)`")
MAP = ROOT / "AGENTS.md"


def absent(text):
    """Paths of a text that lead nowhere: from the top, from the package, or from the first path of their line."""
    for line in text.splitlines():
        named = PATH.findall(line)
        starts = [ROOT, SOURCE, *([ROOT / named[0]] if named else [])]
        yield from (path for path in named if not any((start / path).exists() for start in starts))


def test_each_path_of_the_map_exists():
    assert len(PATH.findall(MAP.read_text())) > 50
    assert list(absent(MAP.read_text())) == []


def test_the_map_names_each_folder_of_the_package():
    named = {ROOT / path for path in PATH.findall(MAP.read_text())}
    folders = [path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    rooms = [path for path in folders if len(path.relative_to(SOURCE).parts) == 1]
    assert [room.name for room in rooms if not any(path.is_relative_to(room) for path in named)] == []


CODE = re.compile(r"`((?:\w+/)*\w+\.py)(?::([\w.]+))?`")
"""`path` or `path:name`, below the package or the top; a name is a function, a class, a method or a constant."""


def names_in(path):
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ClassDef():
                yield node.name
                yield from (f"{node.name}.{member.name}" for member in node.body if hasattr(member, "name"))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def unknown(text):
    for path, name in CODE.findall(text):
        found = next((start / path for start in (SOURCE, ROOT) if (start / path).is_file()), None)
        if found is None or (name and name not in set(names_in(found))):
            yield f"{path}:{name}" if name else path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_names_of_the_code_exists(path):
    assert list(unknown(path.read_text())) == []


def test_the_stories_name_the_code_that_they_pass():
    text = (ROOT / "docs/how-it-works.md").read_text()
    stories = re.split(r"^## Story", text, flags=re.MULTILINE)[1:]
    assert [len(CODE.findall(story)) > 15 for story in stories] == [True] * 3


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`hook.py:main`, `api/hooks.py`, `engine/actor.py:Actor.run`, `core/rules/rotation.py:TIMEOUTS`", []),
        ("`hook.py:begin` and `engine/actor.py:Actor.rest`", ["hook.py:begin", "engine/actor.py:Actor.rest"]),
        ("`api/hook.py:hook`", ["api/hook.py:hook"]),
    ],
)
def test_a_name_that_the_code_does_not_have_is_seen(text, wrong):
    assert list(unknown(text)) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`src/sm/core/`, `hook.py` and `sm handoff`", []),
        ("`src/sm/attic/`", ["src/sm/attic/"]),
        ("`no.py`", ["no.py"]),
    ],
)
def test_a_path_that_leads_nowhere_is_seen(text, wrong):
    assert list(absent(text)) == wrong


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_each_command_that_a_document_names_exists(path):
    text = path.read_text()
    named = set(re.findall(r"`sm ([a-z]+)", text)) | set(re.findall(r"^(?:\$ )?sm ([a-z]+)", text, re.MULTILINE))
    assert named <= {*COMMANDS, *ALIASES}


def test_the_diagram_of_a_rotation_is_what_its_tables_say():
    page = runpy.run_path(str(ROOT / "scripts/diagram.py"))["render"]()
    assert (ROOT / "docs/rotation-states.md").read_text() == page
    assert set(re.findall(r"^\| `(\w+)` \| .+\. \|$", page, re.MULTILINE)) == {phase.value for phase in Phase}


def test_each_status_and_phase_is_explained():
    cells = [line.split("|")[1] for line in README.read_text().splitlines() if line.startswith("| `")]
    explained = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert {status.value for status in Status} | {phase.value for phase in Phase} <= explained


def test_each_command_is_in_one_group_and_says_what_it_does():
    assert sum(len(group) for group in GROUPS.values()) == len(COMMANDS)
    shown = cli.get_help(click.Context(cli, info_name="sm", terminal_width=100, max_content_width=100))
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in shown
        assert text in shown
        assert not text.endswith(".")


def test_a_thing_is_said_first_by_a_verb():
    verbs = {text.split()[0] for _, text in COMMANDS.values()}
    assert not [verb for verb in verbs if verb[0].islower() or verb.endswith(("ing", "ed"))]


def test_the_picture_shows_what_the_demo_says_today():
    drawn = html.unescape(re.sub(r"<[^>]+>", "", (ROOT / "docs/demo.svg").read_text()))
    source = "".join((ROOT / f"src/sm/{name}.py").read_text() for name in ("demo", "cli/demo"))
    words = re.findall(r'"((?:the agent|the client|Without sm|Next:)[^"{]*)', source)  # by the plugin nothing is typed
    assert len(words) > 4
    assert [text for text in words if text not in drawn] == []
