"""`sm log`, `sm search`, `sm archive`: what they print and how they end."""

import pytest

from sm.cli.archive import hit_lines, marked, short_path, size_of
from sm.cli.tables import display_width
from tests.api.test_archive import shows, tended
from tests.cli.test_sessions import shown


@pytest.fixture
async def session(desk):
    session = await desk.api.new("a")
    shows(desk.api, session, "a \x1b[1mwide 検査 okapi\x1b[0m\r\n" + "line\r\n\r\n" * 300)
    await tended(desk.api)
    return session


async def test_a_log_is_printed_as_text(desk, session):
    ran = await desk.run("log", "a")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("a wide 検査 okapi\nline\n\nline\n")
    assert (await desk.run("log", session, "--lines", "1")).out == "line\n"
    assert (await desk.run("log", "a", "--context", "1", "--json")).data["text"] == ran.out


async def test_a_log_without_a_line_is_explained(desk):
    await desk.api.new("b")
    ran = await desk.run("log", "b")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("nothing was recorded\nhint: ")


async def test_a_raw_log_is_printed_as_it_is(desk, session):
    process = await desk.start("log", "a", "--raw")
    assert await process.stdout.read() == desk.api.home.log(session).read_bytes()
    assert await process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("log", "nobody"), 1), (("log", "a", "--context", "7"), 1), (("log", "a", "--raw", "--json"), 2), (("log",), 2)],
)
async def test_what_is_no_log_ends_with_words(desk, session, arguments, code):
    ran = await desk.run(*arguments)
    assert (ran.code, ran.out) == (code, "") or "--json" in arguments
    assert ran.code == code


async def test_hits_are_marked_and_say_where_they_are(desk, session):
    ran = await desk.run("search", "okapi")
    assert (ran.code, ran.err) == (0, "")
    head, line = ran.out.splitlines()
    assert head.endswith(" a: context 1, terminal")
    assert line == "  a wide 検査 **okapi**"
    [hit] = (await desk.run("search", "okapi", "--json")).data
    assert hit["session"] == session
    assert "\x1b[1;33mokapi" in await shown(desk, "search", "okapi", COLUMNS="60")
    assert "**okapi**" in await shown(desk, "search", "okapi", COLUMNS="60", NO_COLOR="1")


async def test_several_words_in_one_argument_are_a_phrase(desk, session):
    assert (await desk.run("search", "wide 検査")).out
    assert not (await desk.run("search", "okapi wide")).out
    assert (await desk.run("search", "okapi", "wide")).out


async def test_nothing_found_is_said_and_no_error(desk, session):
    ran = await desk.run("search", "zebra")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("nothing found\nhint: ")
    assert (await desk.run("search", "zebra", "--json")).data == []


async def test_an_agent_reads_its_own_log_and_searches_as_itself(desk, session):
    other = await desk.api.new("b")
    assert (await desk.run("log", session, session=session)).out.startswith("a wide")
    assert (await desk.run("log", session, "--json", session=other)).error["code"] == "not_self"
    assert (await desk.run("search", "okapi", session=other)).code == 0


@pytest.mark.parametrize("columns", [60, 80, 200])
async def test_the_files_fit_the_terminal(desk, session, columns):
    lines = (await shown(desk, "archive", "list", "a", COLUMNS=str(columns))).splitlines()
    assert max(display_width(line.rstrip()) for line in lines) <= columns
    assert f"{session}.log" in lines[1]


async def test_pruning_tells_what_goes(desk, session):
    ran = await desk.run("archive", "prune", "--dry-run")
    assert (ran.code, ran.out, ran.err) == (0, "", "0 files, 0 B would be deleted\n")
    assert (await desk.run("archive", "prune", "--json")).data == {"removed": True, "files": []}


def test_a_long_line_is_cut_around_its_hit():
    line = f"{'x ' * 100}hit{' y' * 100}"
    assert marked(line, [[200, 203]], 60).count("**hit**") == 1
    assert len(marked(line, [[200, 203]], 60)) <= 64
    assert marked("plain", [], 60) == "plain"


def test_a_hit_of_a_document_has_no_control_characters():
    hit = {"at": 0, "name": None, "session": "s", "context": None, "kind": "handoff", "line": "a\x1bb", "marks": []}
    assert "\x1b" not in hit_lines(hit, 60)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (15_000, "15 KiB"), (5 << 30, "5.0 GiB"), (5 << 50, "5120 TiB")],
)
def test_sizes(size, text):
    assert size_of(size) == text


def test_of_a_long_path_the_end_is_shown():
    assert short_path("/a/long/path/of/a/file.log", 12) == "…/a/file.log"
