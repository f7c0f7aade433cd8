"""Who is alive among several processes on one PostgreSQL: a lock that ends with its connection says so."""

import threading

import psycopg
import pytest

from sm.core.errors import SmError
from sm.runner.database import run_database
from sm.runner.executors import SharedExecutor, connected
from tests.runner import postgres

pytestmark = pytest.mark.timeout(300)
SOON_S = 0.05


@pytest.fixture(scope="module")
def url():
    with postgres.running() as found:
        yield found


class Work:
    """What the engine has pending, by executor, and what was recovered."""

    def __init__(self, *pending):
        self.left = set(pending)
        self.recovered = []
        self.looked = threading.Semaphore(0)

    def pending(self):
        self.looked.release()
        return set(self.left)

    def recover(self, executor):
        self.recovered.append(executor)
        self.left.discard(executor)

    def two_looks(self):
        for _ in range(3):
            assert self.looked.acquire(timeout=60)


@pytest.fixture
def executor(url):
    made = []

    def begun(work=None):
        found = SharedExecutor(url, "sm-runs-x", SOON_S)
        found.acquire()
        made.append(found)
        if work is not None:
            work.left.add(found.id)
            found.watch(work.pending, work.recover)
        return found

    yield begun
    for found in made:
        found.release()


@pytest.mark.soak
def test_the_work_of_the_living_is_left_alone(executor):
    other = executor()
    work = Work(other.id)
    executor(work)
    work.two_looks()
    assert work.recovered == []


@pytest.mark.soak
def test_the_work_of_a_dead_process_is_recovered_once(executor, url):
    other = SharedExecutor(url, "sm-runs-x", SOON_S)
    other.acquire()
    work = Work(other.id)
    executor(work)
    work.two_looks()
    other._connection.close()  # as when its process ends
    work.two_looks()
    assert work.recovered == [other.id]


@pytest.mark.soak
def test_a_process_that_loses_its_connection_has_its_lock_again(executor, url):
    work = Work()
    first = executor(work)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    work.two_looks()
    other = Work(first.id)
    executor(other)
    other.two_looks()
    assert other.recovered == []


@pytest.mark.soak
def test_only_one_process_begins_a_run_at_a_time(executor):
    inside = []

    def begin():
        with executor().alone():
            inside.append(1)
            assert len(inside) == 1
            inside.pop()

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert inside == []


def test_a_database_that_does_not_answer_is_an_error_without_its_password():
    with pytest.raises(SmError) as refused:
        connected(f"postgresql://sm:secret@127.0.0.1:{postgres.free_port()}/runs")
    assert refused.value.refused.code == "no_run_database"
    assert "secret" not in str(refused.value.refused)


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite:///x", "host=x dbname=y"])
def test_another_kind_of_database_is_refused(url, tmp_path):
    with pytest.raises(SmError, match="Not the URL of a PostgreSQL"):
        run_database(url, tmp_path, tmp_path, tmp_path)


def test_every_clone_has_the_same_name_and_another_repository_another(repository, tmp_path):
    def name(top):
        return run_database("postgresql://x/y", tmp_path, top, top).application

    repository.git("clone", "-q", str(repository.root), str(tmp_path / "clone"))
    assert name(repository.root) == name(tmp_path / "clone")
    (tmp_path / "other").mkdir()
    repository.git("init", "-q", at=tmp_path / "other")
    repository.commit("a", "a", at=tmp_path / "other")
    assert name(repository.root) != name(tmp_path / "other")


def test_a_shallow_clone_has_no_name(repository, tmp_path):
    repository.git("clone", "-q", "--depth=1", f"file://{repository.root}", str(tmp_path / "clone"))
    with pytest.raises(SmError, match="shallow"):
        run_database("postgresql://x/y", tmp_path, tmp_path / "clone", tmp_path / "clone")
