import asyncio
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from sm.core.errors import SmError
from sm.core.ports.store import LaunchRecord
from sm.store.database import MIGRATIONS, Database, backup_path, recovery_hint
from sm.store.sessions import SqliteStore
from tests.core.playbook import idle_session
from tests.fakes.clock import FakeClock

FIRST = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"
SECOND = """
CREATE TABLE marks (note INTEGER NOT NULL REFERENCES notes (id)) STRICT; -- a comment; with a semicolon
CREATE TRIGGER noted AFTER INSERT ON notes BEGIN INSERT INTO marks VALUES (new.id); END"""


@pytest.fixture
def steps(tmp_path):
    """A directory of migrations; call it to add one."""
    directory = tmp_path / "migrations"
    directory.mkdir()

    def add(sql):
        number = len(list(directory.iterdir())) + 1
        (directory / f"{number:04}_step.sql").write_text(sql)
        return directory

    add(FIRST)
    add.directory = directory
    return add


@pytest.fixture
async def database(tmp_path, steps):
    async with await Database.open(tmp_path / "sm.db", steps.directory) as opened:
        yield opened


def insert(text):
    return lambda connection: connection.execute("INSERT INTO notes (text) VALUES (?)", (text,)).lastrowid


def notes(connection):
    return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY id")]


def pragma(name):
    return lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0]


async def open_and_close(path, directory):
    async with await Database.open(path, directory) as database:
        return await database.read(pragma("user_version"))


async def test_brings_the_log_into_the_file_while_the_writer_goes_on(database, tmp_path, monkeypatch):
    monkeypatch.setattr("sm.store.database.CHECKPOINT_COMMITS", 10)
    log = tmp_path / "sm.db-wal"
    for _ in range(10):
        await database.run(insert("x" * 4000))
    first = log.stat().st_size
    for _ in range(200):
        await database.run(insert("x" * 4000))
        await database.read(notes)  # stands behind the checkpoint
    assert log.stat().st_size <= 3 * first
    assert len(await database.read(notes)) == 210


async def test_what_a_function_writes_is_there_when_it_has_returned(database):
    assert await database.run(insert("a")) == 1
    assert await database.read(notes) == ["a"]


async def test_what_raises_leaves_nothing_behind(database):
    def half(connection):
        insert("a")(connection)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.run(half)
    await database.run(insert("b"))
    assert await database.read(notes) == ["b"]


def committing(seen):
    def function(connection):
        seen.append(threading.current_thread())
        return insert(str(len(seen)))(connection)

    return function


async def test_what_is_run_at_once_is_committed_on_the_loop(database, tmp_path):
    seen = []
    assert await database.run_at_once(committing(seen)) == 1
    assert seen == [threading.current_thread()]
    with sqlite3.connect(tmp_path / "sm.db") as other:
        assert notes(other) == ["1"]


async def test_what_fails_at_once_leaves_nothing_behind(database):
    def half(connection):
        insert("a")(connection)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.run_at_once(half)
    with pytest.raises(sqlite3.IntegrityError):
        await database.run_at_once(insert(None))
    assert await database.read(notes) == []


async def test_a_lock_keeps_only_the_thread_waiting(database, tmp_path):
    seen = []
    with sqlite3.connect(tmp_path / "sm.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(database.run_at_once(committing(seen)))
            later = group.create_task(database.run_at_once(committing(seen)))
            await asyncio.sleep(0.05)
            assert not seen
            other.execute("COMMIT")
    assert (waiting.result(), later.result()) == (1, 2)
    assert threading.current_thread() not in seen


async def test_what_is_run_at_once_does_not_overtake_what_waits(database):
    go, seen = threading.Event(), []

    def slow(connection):
        go.wait(5)
        return insert("first")(connection)

    async with asyncio.TaskGroup() as group:
        group.create_task(database.run(slow))
        second = group.create_task(database.run_at_once(committing(seen)))
        await asyncio.sleep(0.01)
        go.set()
    assert second.result() == 2
    assert await database.read(notes) == ["first", "1"]
    await database.run_at_once(committing(seen))
    assert [thread is threading.current_thread() for thread in seen] == [False, True]


async def test_a_slow_disk_delays_the_loop_once(database, monkeypatch):
    seen = []
    monkeypatch.setattr("sm.store.database.SLOW_COMMIT_S", 0.0)
    await database.run_at_once(committing(seen))
    await database.run_at_once(committing(seen))
    monkeypatch.setattr("sm.store.database.SLOW_COMMIT_S", 10.0)
    monkeypatch.setattr("sm.store.database.SLOW_DISK_S", 0.0)
    database._slow_until = 0.0
    await database.run_at_once(committing(seen))
    assert [thread is threading.current_thread() for thread in seen] == [True, False, True]


async def test_an_error_of_the_statement_reaches_the_caller_as_it_is(database):
    with pytest.raises(sqlite3.IntegrityError):
        await database.run(insert(None))


async def test_a_cancelled_caller_does_not_undo_what_was_handed_over(database):
    go = threading.Event()

    def slow(connection):
        go.wait(5)
        return insert("a")(connection)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(database.run(slow))
        await asyncio.sleep(0)
        task.cancel()
    go.set()
    await database.run(insert("b"))
    assert await database.read(notes) == ["a", "b"]


async def test_functions_run_in_the_order_they_came(database):
    await asyncio.gather(*(database.run(insert(str(number))) for number in range(100)))
    assert await database.read(notes) == [str(number) for number in range(100)]


async def test_a_long_read_keeps_no_write_waiting(database):
    go = threading.Event()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(database.read(lambda _: go.wait(5)))
        await database.run(insert("a"))
        go.set()
        assert await reading


async def test_a_read_cannot_write(database):
    with pytest.raises(SmError, match="readonly"):
        await database.read(insert("a"))


@pytest.mark.parametrize(
    ("name", "value"), [("journal_mode", "wal"), ("synchronous", 1), ("foreign_keys", 1), ("busy_timeout", 5000)]
)
async def test_the_connections_are_set_up(database, name, value):
    assert await database.read(pragma(name)) == value
    assert await database.run(pragma(name)) == value


async def test_all_its_files_are_the_owners_alone(database, tmp_path):
    await database.run(insert("a"))
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("sm.db*")}
    assert files == {"sm.db": 0o600, "sm.db-wal": 0o600, "sm.db-shm": 0o600}


async def test_a_closed_database_says_so(database):
    await database.close()
    await database.close()
    with pytest.raises(SmError, match="closed"):
        await database.run(insert("a"))


async def test_closing_finishes_what_was_handed_over(tmp_path, steps):
    database = await Database.open(tmp_path / "sm.db", steps.directory)
    async with asyncio.TaskGroup() as group:
        pending = group.create_task(database.run(insert("a")))
        await asyncio.sleep(0)
        await database.close()
    assert pending.result() == 1


async def test_a_new_file_gets_every_migration_and_no_copy(tmp_path, steps):
    steps(SECOND)
    assert await open_and_close(tmp_path / "sm.db", steps.directory) == 2
    assert not list(tmp_path.glob("*.bak"))


async def test_an_older_file_is_copied_and_then_brought_up_to_date(tmp_path, steps):
    path = tmp_path / "sm.db"
    async with await Database.open(path, steps.directory) as database:
        await database.run(insert("kept"))
    steps(SECOND)
    async with await Database.open(path, steps.directory) as database:
        await database.run(insert("new"))
        assert await database.read(notes) == ["kept", "new"]
    copy = backup_path(path, 1)
    assert copy.name == "sm.db.v1.bak"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with sqlite3.connect(copy) as connection:
        assert (notes(connection), pragma("user_version")(connection)) == (["kept"], 1)
    connection.close()


@pytest.mark.parametrize(
    "broken",
    [
        "CREATE TABLE half (id); CREATE TABLE nonsense (",
        "CREATE TABLE half (id); INSERT INTO missing VALUES (1);",
        "CREATE TABLE half (id REFERENCES notes (id)); INSERT INTO half VALUES (99);",
    ],
)
async def test_a_migration_that_fails_changes_nothing(tmp_path, steps, broken):
    path = tmp_path / "sm.db"
    await open_and_close(path, steps.directory)
    (steps.directory / "0002_broken.sql").write_text(broken)
    with pytest.raises(SmError, match=r"0002_broken\.sql"):
        await Database.open(path, steps.directory)
    (steps.directory / "0002_broken.sql").unlink()
    async with await Database.open(path, steps.directory) as database:
        tables = await database.read(lambda it: it.execute("SELECT name FROM sqlite_schema").fetchall())
    assert tables == [("notes",)]


async def test_a_newer_schema_is_refused_with_both_versions_and_left_alone(tmp_path, steps):
    path = tmp_path / "sm.db"
    await open_and_close(path, steps.directory)
    await open_and_close(path, steps(SECOND))
    (steps.directory / "0002_step.sql").unlink()
    before = path.read_bytes()
    with pytest.raises(SmError, match="has schema 2, this sm knows schemas up to 1") as caught:
        await Database.open(path, steps.directory)
    assert str(backup_path(path, 1)) in caught.value.refused.hint
    assert path.read_bytes() == before


async def test_somebody_elses_database_is_refused(tmp_path, steps):
    path = tmp_path / "sm.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (id)")
    connection.close()
    with pytest.raises(SmError, match="not of sm"):
        await Database.open(path, steps.directory)


@pytest.mark.parametrize("content", [b"not a database, " * 1000, b"SQLite format 3\0" + b"\xff" * 8192])
async def test_a_corrupt_file_is_refused_and_left_alone(tmp_path, steps, content):
    path = tmp_path / "sm.db"
    path.write_bytes(content)
    with pytest.raises(SmError) as caught:
        await Database.open(path, steps.directory)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


async def test_a_place_without_a_file_is_refused_by_name(tmp_path, steps):
    with pytest.raises(SmError, match="Cannot open"):
        await Database.open(tmp_path / "missing/sm.db", steps.directory)


@pytest.mark.parametrize("name", ["0003_gap.sql", "first.sql"])
async def test_a_gap_in_the_migrations_is_noticed(tmp_path, steps, name):
    (steps.directory / name).write_text("")
    with pytest.raises(SmError, match=r"_name\.sql"):
        await Database.open(tmp_path / "sm.db", steps.directory)


async def test_a_full_disk_is_told_with_the_file(database, tmp_path):
    await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 8").fetchone())
    with pytest.raises(SmError, match=r"sm\.db: database or disk is full") as caught:
        await database.run(insert("x" * 100_000))
    assert caught.value.refused.code == "disk_full"
    assert await database.read(notes) == []


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
for number in range(200):
    connection.execute("INSERT INTO notes (text) VALUES ('other')")
"""


async def test_no_message_is_lost_to_parallel_writers(database):
    """Case A53, smaller: two other processes write while we do."""
    command = [sys.executable, "-c", WRITER, str(database.path)]
    others = [await asyncio.create_subprocess_exec(*command) for _ in range(2)]
    await asyncio.gather(*(database.run(insert("ours")) for _ in range(200)))
    assert [await other.wait() for other in others] == [0, 0]
    assert len(await database.read(notes)) == 600


async def test_our_own_migrations_make_a_sound_database(tmp_path):
    async with await Database.open(tmp_path / "sm.db", MIGRATIONS) as database:
        assert await database.read(pragma("integrity_check")) == "ok"


def wrecked(path, seed):
    """The database with 30 bytes of its first page, which holds the schema, replaced."""
    dice, content = random.Random(seed), bytearray(path.read_bytes())  # noqa: S311  # damage, by number
    for _ in range(30):
        content[dice.randrange(100, 4096)] = dice.randrange(256)
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(25))
async def test_a_damaged_schema_is_said_with_the_way_back(tmp_path, seed):  # C39
    path = tmp_path / "sm.db"
    async with await Database.open(path):
        pass
    backup = backup_path(path, 3)
    backup.write_bytes(path.read_bytes())
    wrecked(path, seed)
    problem = await trouble(path)
    if isinstance(problem, SmError):
        assert problem.refused.code == "database_corrupt", problem.refused
        assert f"cp -p {backup} {path}; sm server start" in problem.refused.hint
    else:
        assert problem is None or "no such table" in str(problem), "a name that was damaged is another name"


@pytest.mark.parametrize("part", [b"CREATE TABLE sessions", b"sessionssessions"])
async def test_a_schema_whose_damage_sqlite_cannot_quote_is_said_with_the_way_back(tmp_path, part):  # C39
    path = tmp_path / "sm.db"
    async with await Database.open(path):
        pass
    path.write_bytes(path.read_bytes().replace(part, part[:2] + b"\xff\xfe" + part[4:]))
    problem = await trouble(path)
    assert (problem.refused.code, "its schema is damaged" in problem.refused.message) == ("database_corrupt", True)
    assert "To begin with an empty one" in problem.refused.hint


async def trouble(path):
    try:
        async with await Database.open(path) as database:
            await database.read(lambda connection: connection.execute("SELECT * FROM sessions").fetchall())
    except (SmError, sqlite3.OperationalError) as problem:
        return problem
    return None


def test_the_way_back_names_the_newest_back_up_and_what_to_do_without_one(tmp_path):  # C39
    path = tmp_path / "it's" / "sm.db"
    path.parent.mkdir()
    assert "no back-up exists" in recovery_hint(path)
    for version, age in ((2, 100), (9, 50), (10, 0)):
        backup_path(path, version).touch()
        os.utime(backup_path(path, version), (1_800_000_000 - age, 1_800_000_000 - age))
    commands = recovery_hint(path).partition(" UTC: ")[2]
    path.write_text("damaged")
    script = commands.replace("sm server stop", "true").replace("sm server start", "true")
    subprocess.run(["sh", "-ec", script], check=True)
    assert (path.read_text(), (path.parent / "sm.db.damaged").read_text()) == ("", "damaged")


async def test_a_session_whose_record_is_damaged_is_said_with_the_way_back(tmp_path):  # C39
    async with await Database.open(tmp_path / "sm.db") as database:
        store = SqliteStore(database, FakeClock())
        await store.add(idle_session(), "token", LaunchRecord())
        await database.run(lambda connection: connection.execute("UPDATE sessions SET state = 'x', launch = 'x'"))
        for read in (store.sessions, store.launches):
            with pytest.raises(SmError) as caught:
                await read()
            assert caught.value.refused.code == "database_corrupt"
