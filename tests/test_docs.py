"""README and docs: each link leads somewhere, each command exists, each status is explained."""

import html
import re
from pathlib import Path

import click
import pytest

from sm.cli.app import ALIASES, COMMANDS, GROUPS, cli
from sm.core.model.rotation import Phase
from sm.core.model.session import Status

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
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


@pytest.mark.parametrize("path", [*DOCS, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_each_link_leads_to_a_file_and_a_title_of_it(path):
    assert not list(broken(path))


def test_the_readme_links_to_nothing_outside_itself():
    """It is also shown where the package is, without the files beside it."""
    assert all(target.startswith("#") for target in LINK.findall(README.read_text()))
    assert not list(broken(README))


def test_the_readme_names_each_document():
    assert all(f"sm help {path.stem}" in README.read_text() for path in DOCS)


OURS = [README, *(path for path in DOCS if path.stem != "coming-from")]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_each_command_that_a_document_names_exists(path):
    text = path.read_text()
    named = set(re.findall(r"`sm ([a-z]+)", text)) | set(re.findall(r"^(?:\$ )?sm ([a-z]+)", text, re.MULTILINE))
    assert named <= {*COMMANDS, *ALIASES}


def test_each_status_and_phase_is_explained():
    cells = [line.split("|")[1] for line in README.read_text().splitlines() if line.startswith("| `")]
    explained = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert {one.value for one in Status} | {one.value for one in Phase} <= explained


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
    words = re.findall(r'"((?:the agent|the client|typed|Without sm|Next:)[^"{]*)', source)
    assert len(words) > 5
    assert [text for text in words if text not in drawn] == []
