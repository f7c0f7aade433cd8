"""hook.py as the client runs it: a process with a payload on stdin."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from sm import hook
from sm.providers.claude.traits import CLAUDE

START = {"session_id": "s1", "source": "startup", "cwd": "/home/dev/proj-x", "hook_event_name": "SessionStart"}
PATIENCE = 10.0
"""Seconds that only a hook that hangs would need; the client's own limit is longer."""


@contextmanager
def server(answer=b"{}", *, status=b"200 OK", family=socket.AF_INET, address=("127.0.0.1", 0)):
    """A server that keeps what it was sent and gives one answer to everything; None keeps it silent."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen()
    seen = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(received(connection))
                if answer is None:
                    time.sleep(PATIENCE)
                else:
                    head = b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(answer)
                    connection.sendall(head + answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname(), seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def received(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path, monkeypatch):
    """Where hooks without a socket remember a peer that keeps them waiting."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def started(url, **env):
    own = {"TMPDIR": os.environ["TMPDIR"], "SM_URL": url, "SM_SESSION_TOKEN": "token", "CLAUDE_PID": "4711", **env}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", hook.__file__, "claude"],
        env={"PATH": os.environ["PATH"], **own},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(payload, url, **env):
    process = started(url, **env)
    output, errors = process.communicate(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    return process.returncode, output, errors


def test_the_answer_is_the_servers_one_object():
    answer = b'{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "hi"}}'
    with server(answer) as ((host, port), seen):
        code, output, errors = run(START, f"http://{host}:{port}")
    assert (code, json.loads(output), errors) == (0, json.loads(answer), b"")
    head, body = seen[0]
    assert head.startswith(b"POST /hooks/claude HTTP/1.1")
    assert b"Authorization: Bearer token" in head
    assert b"X-SM-Client-Pid: 4711" in head
    assert json.loads(body) == START


@pytest.mark.parametrize(("answer", "status"), [(b"no json", b"200 OK"), (b"{}", b"500 Oops"), (b"", b"200 OK")])
def test_a_server_that_answers_nonsense_gives_an_empty_object(answer, status):
    with server(answer, status=status) as ((host, port), _):
        code, output, _ = run(START, f"http://{host}:{port}")
    assert (code, json.loads(output)) == (0, {})


def test_a_server_that_is_gone_gives_an_empty_object_and_a_word_on_stderr():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        code, output, errors = run(START, f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert (code, json.loads(output)) == (0, {})
    assert errors.startswith(b"sm hook: ConnectionRefusedError")


def test_a_server_that_hangs_is_left_behind():
    with server(None) as ((host, port), _):
        code, output, errors = run({**START, "hook_event_name": "PostToolUse"}, f"http://{host}:{port}")
    assert (code, json.loads(output)) == (0, {})
    assert b"timed out" in errors


@contextmanager
def dripping(piece=b" ", pause=0.2):
    """A peer that takes everything and answers for ever, a byte at a time, as a hung proxy does."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def drip(connection):
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{")
                while True:
                    connection.sendall(piece)
                    time.sleep(pause)
            except OSError:
                return

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            asked.append(connection)
            threading.Thread(target=drip, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


STOP = {"session_id": "s1", "hook_event_name": "Stop", "stop_hook_active": False}


@pytest.mark.parametrize("pause", [0.2, 0.0])
def test_the_limit_is_for_the_whole_answer_and_not_for_each_byte(pause):  # C29
    with dripping(pause=pause) as (url, _), pytest.raises(TimeoutError):
        hook.exchange(url, hook.request_bytes("POST", "/", "t", b"{}"), 0.3)


def test_a_peer_that_keeps_hooks_waiting_is_soon_hardly_waited_for(tmp_path, monkeypatch):  # C29
    waited = []
    real = hook.exchange

    def exchange(address, request, seconds):
        waited.append(seconds)
        return real(address, request, seconds / 20)

    monkeypatch.setattr(hook, "exchange", exchange)
    with dripping() as (url, _):
        for _ in range(6):
            with pytest.raises(TimeoutError):
                hook.exchange_fast(url, b"GET / HTTP/1.1\r\n\r\n", hook.ANSWER_TIMEOUT_S)
        assert waited == [hook.ANSWER_TIMEOUT_S] * hook.MAX_TIMEOUTS + [hook.HASTY_ANSWER_TIMEOUT_S] * 3
        (record,) = tmp_path.iterdir()
        os.utime(record, (0, time.time() - hook.RETRY_INTERVAL_S))
        with pytest.raises(TimeoutError):
            hook.exchange_fast(url, b"GET / HTTP/1.1\r\n\r\n", hook.ANSWER_TIMEOUT_S)
        assert waited[-1] == hook.ANSWER_TIMEOUT_S, "one in RETRY seconds waits as before"
        with pytest.raises(TimeoutError):
            hook.exchange_fast(url, b"GET / HTTP/1.1\r\n\r\n", hook.ANSWER_TIMEOUT_S)
        assert waited[-1] == hook.HASTY_ANSWER_TIMEOUT_S
    port = int(url.rpartition(":")[2])
    with server(address=("127.0.0.1", port)):
        request = hook.request_bytes("POST", "/", "t", b"{}")
        assert real(url, request, 5) == (200, b"{}")
        assert hook.exchange_fast(url, request, hook.ANSWER_TIMEOUT_S)[0] == 200, "it is back"
    assert list(tmp_path.iterdir()) == []


def test_of_many_hooks_at_a_dripping_server_a_few_wait(tmp_path):  # C29, by its own count of bytes
    with dripping() as (url, asked):
        for _ in range(10):
            code, output, _ = run(STOP, url)
            assert (code, json.loads(output)) == (0, {})
    assert len(asked) == 10, "each was tried"
    (record,) = tmp_path.iterdir()
    assert hook.MAX_TIMEOUTS <= record.stat().st_size < 10


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "hard link"])
def test_what_somebody_else_put_there_is_left_alone(tmp_path, kind):  # C29, hostile neighbour in /tmp
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    record = tmp_path / "record"
    make = {
        "link": lambda: record.symlink_to(target),
        "directory": record.mkdir,
        "fifo": lambda: os.mkfifo(record),
        "hard link": lambda: record.hardlink_to(target),
    }
    make[kind]()
    hook.note(str(record))
    assert hook.vain_waits(str(record)) == (0, 0.0)
    assert target.read_bytes() == b"precious"


def test_a_peer_on_a_socket_is_remembered_beside_it(tmp_path):  # C29
    assert hook.record_of(f"unix:{tmp_path}/hooks.sock") == f"{tmp_path}/hooks.sock.vain"


def test_the_payload_arrives_byte_for_byte():
    prompt = "a\nb 'q' \"d\" \\ 檔 $(x) `y`"
    payload = json.dumps(
        {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": prompt}, ensure_ascii=False
    )
    with server() as ((host, port), seen):
        run(payload.encode(), f"http://{host}:{port}")
    assert seen[0][1] == payload.encode()


def test_a24_a_payload_that_stops_coming_is_waited_for_a_second_at_most():
    """The server then has another one, and the hook is to have ended after two."""
    assert hook.COMPLETE_STDIN_TIMEOUT_S < hook.STDIN_TIMEOUT_S <= 1.0


@pytest.mark.parametrize("payload", [b'{"session_id":"s1","hook_event_name":"PostToolUse"}', b""])
def test_a_pipe_that_stays_open_is_not_waited_for(payload):
    with server() as ((host, port), seen):
        process = started(f"http://{host}:{port}")
        process.stdin.write(payload)
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0
        assert json.loads(process.stdout.read()) == {}
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
    assert [body for _, body in seen] == ([payload] if payload else [])


def test_the_unix_socket_is_used_where_it_is_named(tmp_path):
    path = str(tmp_path / "s")
    with server(b'{"a": 1}', family=socket.AF_UNIX, address=path) as (_, seen):
        code, output, _ = run(START, "http://127.0.0.1:1", SM_SOCKET=f"unix:{path}")
    assert (code, json.loads(output), len(seen)) == (0, {"a": 1}, 1)


def test_it_loads_nothing_of_ours_and_nothing_that_costs():
    script = f"import sys; exec(open({hook.__file__!r}).read(), {{'__name__': 'hook'}}); print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", script]
    loaded = set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    assert "_socket" in loaded
    assert not {name for name in loaded if name == "sm" or name.startswith("sm.")}
    assert not {"json", "socket", "http", "re", "typing", "asyncio", "email", "site"} & loaded


# --- in the person's own settings --------------------------------------------------------------------------------


def adopting(address, token, payload, **env):
    """What `sm setup` puts into the client's settings."""
    process = subprocess.run(
        [sys.executable, "-I", "-S", hook.__file__, "claude", address, str(token)],
        env={"PATH": os.environ["PATH"], "CLAUDE_PID": "4711", "CLAUDE_CODE_ENTRYPOINT": "cli", **env},
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("the-users\n")
    return path


def test_the_users_token_comes_from_its_file(tmp_path, token):
    path = str(tmp_path / "s")
    with server(b'{"a": 1}', family=socket.AF_UNIX, address=path) as (_, seen):
        code, output, errors = adopting(f"unix:{path}", token, START)
    assert (code, json.loads(output), errors) == (0, {"a": 1}, b"")
    assert b"Authorization: Bearer the-users\r\n" in seen[0][0] + b"\r\n"
    assert b"X-SM-Client-Pid: 4711" in seen[0][0]


@pytest.mark.parametrize(
    "env",
    [{"CLAUDE_SESSION_MANAGER_ID": "12345678"}, {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"CLAUDE_CODE_ENTRYPOINT": ""}],
)
def test_a_session_of_ours_and_a_client_without_a_terminal_are_none_of_its_business(tmp_path, token, env):
    path = str(tmp_path / "s")
    with server(b'{"a": 1}', family=socket.AF_UNIX, address=path) as (_, seen):
        assert adopting(f"unix:{path}", token, START, **env) == (0, b"{}\n", b"")
    assert seen == []


def test_where_no_server_runs_or_ever_ran_it_says_nothing(tmp_path, token):
    assert adopting(f"unix:{tmp_path}/absent", token, START) == (0, b"{}\n", b"")
    assert adopting(f"unix:{tmp_path}/absent", tmp_path / "none", START) == (0, b"{}\n", b"")


def test_it_waits_for_the_hooks_for_which_the_server_takes_its_time():
    """hook.py imports nothing of `sm`, so it names them itself."""
    assert {name.decode() for name in hook.PATIENT_HOOKS} == CLAUDE.patient_hooks
