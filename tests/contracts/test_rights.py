"""The rights of one kind of client, mapped to each other kind: never more, and of nothing known the least."""

import itertools

import pytest

from sm.core.model.rights import STRICTEST, Freedom, Rights
from sm.providers.claude import rights as claude
from sm.providers.codex import options
from sm.providers.codex import rights as codex

DENIED = '{"trust_level"="untrusted"}'
UNTRUSTED = f'projects={{"/srv/app"={DENIED},"/srv"={DENIED},"/"={DENIED}}}'
READS, ASKS_TO_WORK = Rights(Freedom.READING), Rights(Freedom.READING, asks=True)
WORKS, WORKS_ALONE = Rights(Freedom.WORKING, asks=True), Rights(Freedom.WORKING)
MAY_ALL = Rights(Freedom.EVERYTHING)
CLAUDE = {
    "default": ASKS_TO_WORK,
    "plan": ASKS_TO_WORK,
    "dontAsk": READS,
    "acceptEdits": WORKS,
    "auto": WORKS,
    "bypassPermissions": MAY_ALL,
    "": STRICTEST,
    "newest": STRICTEST,
    "bypassPermissions ": STRICTEST,
}
CODEX = {
    "read-only on-request": ASKS_TO_WORK,
    "read-only untrusted": ASKS_TO_WORK,
    "read-only never": READS,
    "workspace-write on-request": WORKS,
    "workspace-write never": WORKS_ALONE,
    "workspace-write untrusted": ASKS_TO_WORK,
    "workspace-write granular": ASKS_TO_WORK,
    "workspace-write": ASKS_TO_WORK,
    "danger-full-access never": MAY_ALL,
    "danger-full-access on-request": MAY_ALL,
    "danger-full-access untrusted": ASKS_TO_WORK,
    "danger-full-access": ASKS_TO_WORK,
    "": STRICTEST,
    "never": STRICTEST,
    "external-sandbox never": STRICTEST,
    "bypassPermissions": STRICTEST,  # what a hook of Codex says with `-s read-only -a never`
    "default": STRICTEST,
}


def started_claude(arguments):
    return claude.of_mode(arguments[-1])


def started_codex(arguments):
    found = dict(options.options(arguments))
    return codex.of_mode(f"{found['-s']} {found['-a']}")


def started_with(client, rights):
    return claude.arguments(rights) if client == "claude" else codex.arguments(rights, "/srv/app")


CLIENTS = {"claude": (claude, CLAUDE, started_claude), "codex": (codex, CODEX, started_codex)}
PAIRS = [(own, mode, other) for own, other in itertools.product(CLIENTS, repeat=2) for mode in CLIENTS[own][1]]


@pytest.mark.parametrize(("own", "mode"), [(own, mode) for own, (_, modes, _) in CLIENTS.items() for mode in modes])
def test_a_mode_gives_these_rights(own, mode):
    module, modes, _ = CLIENTS[own]
    assert module.of_mode(mode) == modes[mode]


@pytest.mark.parametrize(("own", "mode", "other"), PAIRS)
def test_what_is_started_for_a_client_has_no_more_rights_than_it(own, mode, other):
    before = CLIENTS[own][0].of_mode(mode)
    after = CLIENTS[other][2](started_with(other, before))
    assert after.within(before)
    assert after.level is before.level


@pytest.mark.parametrize("level", Freedom)
@pytest.mark.parametrize("asks", [False, True])
def test_any_rights_are_kept_within(level, asks):
    for name, (_, _, started) in CLIENTS.items():
        assert started(started_with(name, Rights(level, asks=asks))).within(Rights(level, asks=asks))


def test_more_rights_are_not_within_less():
    assert not MAY_ALL.within(WORKS)
    assert not WORKS.within(READS)
    assert READS.within(WORKS)


@pytest.mark.parametrize(
    ("module", "given", "found"),
    [
        (claude, ["--disallowedTools", "Bash", "--verbose"], ("--disallowedTools",)),
        (claude, ["--disallowed-tools=Bash"], ("--disallowed-tools",)),
        (claude, ["--tools", "Read"], ("--tools",)),
        (claude, ["--setting-sources", "user", "--model", "--x"], ()),
        (codex, ["--disable", "shell_tool"], ("--disable shell_tool",)),
        (codex, ["--disable=shell_tool"], ("--disable shell_tool",)),
        (codex, ["-c", "features.web_search=false"], ("-c features.web_search=false",)),
        (codex, ["--config=tools.view_image=false"], ("--config tools.view_image=false",)),
        (claude, [], ()),
        (codex, [], ()),
        (codex, ["-c", "model=x", "--enable", "goals", "--yolo"], ()),
    ],
)
def test_what_has_no_counterpart_is_named(module, given, found):
    assert module.restrictions(given) == found


def test_what_the_projects_files_allow_goes_with_full_rights_alone():
    assert "--setting-sources" not in claude.arguments(MAY_ALL)
    assert claude.arguments(WORKS)[:3] == ("--setting-sources", "user", "--strict-mcp-config")
    assert codex.arguments(MAY_ALL, "/srv/app") == ("-s", "danger-full-access", "-a", "never")
    assert codex.arguments(WORKS, "/srv/app")[:2] == ("-c", UNTRUSTED)


def test_a_child_of_the_same_codex_keeps_its_mode_and_what_is_disabled():
    given = ("--yolo", "--disable", "goals", "--disable=apps", "-m", "x", "-c", UNTRUSTED)
    expected = ("--disable", "goals", "--disable", "apps", "-c", UNTRUSTED, "-s", "workspace-write", "-a", "on-request")
    assert options.child_arguments(given, "workspace-write on-request") == expected
    assert options.child_arguments(given, "")[-4:] == ("-s", "read-only", "-a", "on-request")
