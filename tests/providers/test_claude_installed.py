"""Which version of the client an executable is, by where it is."""

import json
import os

import pytest

from sm.providers.claude.installed import too_old, version_of
from tests.e2e.rig import REAL_CLIENT, ROOT


def place(tmp_path, *parts, package=None):
    """An executable there; its package.json two folders above."""
    program = tmp_path.joinpath(*parts)
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    if package is not None:
        (program.parent.parent / "package.json").write_text(package)
    return str(program)


@pytest.mark.parametrize(
    ("parts", "package", "version"),
    [
        (("lib", "bin", "claude.exe"), '{"name": "@anthropic-ai/claude-code", "version": "2.1.290"}', (2, 1, 290)),
        (("share", "claude", "versions", "2.1.328"), None, (2, 1, 328)),
        (("Caskroom", "claude-code", "2.1.300", "claude"), None, (2, 1, 300)),
        (("installs", "nodejs", "20.1.0", "bin", "x", "claude"), None, None),
        (("bin", "claude"), None, None),
        (("a", "b", "claude"), '{"name": "another", "version": "2.1.290"}', None),
        (("a", "b", "claude"), '{"name": "@anthropic-ai/claude-code", "version": "next"}', None),
        (("a", "b", "claude"), '{"name": "@anthropic-ai/claude-code"}', None),
        (("a", "b", "claude"), "[]", None),
        (("a", "b", "claude"), "{", None),
    ],
)
def test_its_place_tells_the_version(tmp_path, parts, package, version):
    assert version_of(place(tmp_path, *parts, package=package), "") == version


def test_a_name_is_looked_up_and_links_are_followed(tmp_path):
    program = place(tmp_path, "versions", "2.1.294")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").symlink_to(os.path.relpath(program, tmp_path / "bin"))
    assert version_of("claude", str(tmp_path / "bin")) == (2, 1, 294)
    assert version_of("claude", str(tmp_path)) is None
    assert too_old("claude", str(tmp_path / "bin")) == ""
    assert too_old("claude", str(tmp_path)) == ""


def test_the_pinned_client_says_which_it_is():
    pinned = json.loads((ROOT / "clients/package.json").read_text())["dependencies"]["@anthropic-ai/claude-code"]
    assert version_of(str(REAL_CLIENT), "") == tuple(map(int, pinned.split(".")))
