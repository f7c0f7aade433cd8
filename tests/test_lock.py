import json
import os
import subprocess
import sys
import time

import pytest

from sm.core.errors import SmError
from sm.lock import ServerLock, announce, held_by, last_server, process_start_time, running_server, same_process
from sm.paths import SmHome


@pytest.fixture
def place(tmp_path):
    return SmHome(tmp_path)


HOLD = """
import sys, time
from pathlib import Path
from sm.lock import ServerLock
from sm.paths import SmHome
lock = ServerLock.acquire(SmHome(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(place):
    """Another process that has the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_one_server_holds_it_and_says_who_it_is(place):
    assert held_by(place) is None
    with ServerLock.acquire(place):
        assert held_by(place) == os.getpid()
        with pytest.raises(SmError, match=f"pid {os.getpid()}"):
            ServerLock.acquire(place)
    assert held_by(place) is None


def test_another_process_has_it_as_long_as_it_lives(place, holder):
    """Case A55, first part: the kernel frees it, so one try is enough."""
    assert held_by(place) == holder.pid
    holder.kill()
    holder.wait()
    assert held_by(place) is None
    ServerLock.acquire(place).release()


def test_a_lock_file_that_was_removed_lets_no_second_server_in(place, holder):  # C31
    place.server_lock.unlink()
    assert held_by(place) == 0
    with pytest.raises(SmError, match="already runs"):
        ServerLock.acquire(place)
    started = process_start_time(holder.pid)
    place.server_record.write_text(
        json.dumps({"pid": holder.pid, "started": started, "url": "http://127.0.0.1:1", "version": "0"})
    )
    assert held_by(place) == holder.pid
    assert running_server(place).pid == holder.pid
    with pytest.raises(SmError, match=f"pid {holder.pid}"):
        ServerLock.acquire(place)
    holder.kill()
    holder.wait()
    assert held_by(place) is None
    ServerLock.acquire(place).release()


def test_a_lock_file_that_was_replaced_lets_no_second_server_in(place, holder):  # C31
    place.server_lock.unlink()
    place.server_lock.touch()
    with pytest.raises(SmError, match="already runs"):
        ServerLock.acquire(place)
    holder.kill()
    holder.wait()
    with ServerLock.acquire(place):
        assert held_by(place) == os.getpid()


def test_a_pid_that_now_belongs_to_somebody_else_holds_nothing_and_is_left_alone(place):
    """Case A55, second part."""
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        place.server_lock.write_text(f"{sleeper.pid} 1.0\n")
        assert held_by(place) is None
        with ServerLock.acquire(place):
            assert held_by(place) == os.getpid()
        assert sleeper.poll() is None
        sleeper.kill()


def test_a_look_at_the_lock_never_takes_it_from_who_starts(place, holder):
    for _ in range(20):
        assert held_by(place) == holder.pid
    with pytest.raises(SmError, match="already runs"):
        ServerLock.acquire(place)


def test_a_child_does_not_inherit_it(place):
    with ServerLock.acquire(place) as lock:
        assert not os.get_inheritable(lock._descriptor)


def test_release_may_come_twice(place):
    lock = ServerLock.acquire(place)
    lock.release()
    lock.release()
    assert place.server_lock.stat().st_mode & 0o777 == 0o600


def test_the_running_server_is_found_by_its_record(place):
    assert running_server(place) is None
    with ServerLock.acquire(place):
        announce(place, "http://127.0.0.1:4711", "1.2")
        found = running_server(place)
        assert (found.pid, found.url, found.version) == (os.getpid(), "http://127.0.0.1:4711", "1.2")
    assert running_server(place) is None
    assert last_server(place).url == "http://127.0.0.1:4711"


SOUND = {"pid": 1, "started": 1.0, "url": "http://127.0.0.1:4711", "version": "1"}
WRONG = [
    {"pid": "1"},
    {"pid": True},
    {"started": "now"},
    {"url": 1},
    {"url": "http://127.0.0.1:99999"},
    {"url": "http://127.0.0.1"},
    {"url": "http://example.com:80"},
    {"version": None},
]
RECORDS = ["", "[]", "{}", '{"pid": 1}', "\0", "[" * 100_000, *(json.dumps({**SOUND, **member}) for member in WRONG)]


def test_a_record_that_is_sound_is_believed(place):
    place.server_record.write_text(json.dumps(SOUND))
    assert last_server(place).port == 4711


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_stands_in_a_records_place_is_no_server(place, make):
    make(place.server_record)
    assert last_server(place) is None


@pytest.mark.parametrize("content", RECORDS)
def test_a_record_that_is_none_is_no_server(place, content):
    place.server_record.write_text(content)
    assert last_server(place) is None


def test_the_record_of_an_earlier_process_with_our_pid_is_no_server(place):
    with ServerLock.acquire(place):
        announce(place, "http://127.0.0.1:4711", "1.2")
        record = json.loads(place.server_record.read_bytes())
        place.server_record.write_text(json.dumps({**record, "started": record["started"] - 60}))
        assert running_server(place) is None


def test_a_process_is_known_by_its_start():
    start = process_start_time(os.getpid())
    assert same_process(os.getpid(), start)
    assert not same_process(os.getpid(), start - 60)
    assert not same_process(os.getpid(), None)
    assert not same_process(0, start)


def test_a_finished_process_is_gone_even_while_nobody_has_waited_for_it():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        start = process_start_time(process.pid)
        deadline = time.monotonic() + 5
        while same_process(process.pid, start) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process_start_time(process.pid) is None


def test_a_later_process_starts_later():
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        assert process_start_time(process.pid) >= process_start_time(os.getpid())
        process.kill()
