"""Hands one hook payload from the client to the server and prints the answer: exactly one JSON object, exit 0, always.

Runs once per hook in an interpreter of its own (`python -I -S`), so it imports no other module of sm and none that is
slow: `_socket` instead of `socket` saves 7 ms. Reads no further than it must: a client may keep the pipe open for ever.

    hook.py PROVIDER                 in a session of sm: address and token come from its environment
    hook.py PROVIDER ADDRESS TOKEN   in the user's own settings, by `sm setup`: TOKEN is the file that holds theirs

The second ends at once in a session of sm, which has hooks of its own, and in a client without a terminal, and it
prints no error where no server runs.
"""

import _socket
import os
import select
import sys
import time

STDIN_TIMEOUT_S = 1.0
"""After that long without a byte what was read counts as the whole payload."""
COMPLETE_STDIN_TIMEOUT_S = 0.05
"""The same once the bytes end like a JSON object."""
PATIENT_HOOKS = (b"SessionStart", b"PreCompact", b"PreToolUse")
"""Hooks whose answer must not be lost."""
ASKING_HOOK = b"PermissionRequest"
"""The hook whose answer may be the user's: it waits as long as the client's dialog is open."""
ASK_TIMEOUT_S = 7 * 86_400.0
ANSWER_TIMEOUT_S = 0.9
PATIENT_ANSWER_TIMEOUT_S = 1.9
"""Until the answer must be complete: with the start of an interpreter one second, and two."""
HASTY_ANSWER_TIMEOUT_S = 0.1
"""The same once MAX_TIMEOUTS hooks in a row have timed out; one every RETRY_INTERVAL_S waits as before."""
MAX_TIMEOUTS = 3
RETRY_INTERVAL_S = 10.0
MAX_BYTES = 16 * 1024 * 1024
MAX_PORT = 65_535
HTTP_OK = 200
KIND, REGULAR = 0o170000, 0o100000
"""In `st_mode`: `S_IFMT` and `S_IFREG`, without the module `stat`."""
EXTERNAL_ARGUMENTS = 4
"""Length of the argument list of the second form."""
INTERACTIVE = "cli"
"""CLAUDE_CODE_ENTRYPOINT of a client in a terminal; `claude -p` has sdk-cli (2.1.328)."""


def read_payload(descriptor: int) -> bytes:
    data = b""
    while len(data) < MAX_BYTES:
        patience = COMPLETE_STDIN_TIMEOUT_S if data.rstrip().endswith(b"}") else STDIN_TIMEOUT_S
        if not select.select([descriptor], [], [], patience)[0]:
            return data
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return data
        data += piece
    return data


def exchange(address: str, request: bytes, seconds: float) -> tuple[int, bytes]:
    """Send one HTTP request to `http://HOST:PORT` or `unix:PATH`; return status and body. OSError if it fails.

    All of it takes `seconds` at most, however little a peer sends at a time.
    """
    deadline = time.monotonic() + seconds
    connection = connect(address, seconds)
    try:
        connection.settimeout(left(deadline))
        connection.sendall(request)
        pieces = []
        while True:
            connection.settimeout(left(deadline))
            piece = connection.recv(1 << 16)
            if not piece:
                break
            pieces.append(piece)
    finally:
        connection.close()
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    status = head[9:12]  # after "HTTP/1.1 "
    if not head.startswith(b"HTTP/1.") or not status.isdigit():
        raise OSError("no HTTP answer")
    return int(status), body


def left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def connect(address: str, seconds: float) -> _socket.socket:
    if address.startswith("unix:"):
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        target: str | tuple[str, int] = address[5:]
    else:
        host, _, port = address.partition("://")[2].rstrip("/").rpartition(":")
        if not port.isdigit() or int(port) > MAX_PORT:
            raise ValueError(f"no address: {address!r}")
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        target = ("127.0.0.1" if host == "localhost" else host, int(port))
    try:
        connection.settimeout(seconds)
        connection.connect(target)
    except BaseException:
        connection.close()
        raise
    return connection


def request_bytes(method: str, path: str, token: str, body: bytes, extra: str = "") -> bytes:
    """Return a request after which the server closes: the answer ends with the connection."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body


def reach(arguments: list[str]) -> tuple[str, str]:
    """Return address and token."""
    if len(arguments) < EXTERNAL_ARGUMENTS:
        return os.environ.get("SM_SOCKET") or os.environ["SM_URL"], os.environ["SM_SESSION_TOKEN"]
    descriptor = os.open(arguments[3], os.O_RDONLY | os.O_CLOEXEC)
    return arguments[2], os.read(descriptor, 4096).decode("ascii").strip()


def concerned(arguments: list[str]) -> bool:
    own = "CLAUDE_SESSION_MANAGER_ID" in os.environ
    return len(arguments) < EXTERNAL_ARGUMENTS or (not own and os.environ.get("CLAUDE_CODE_ENTRYPOINT") == INTERACTIVE)


def deliver(arguments: list[str], payload: bytes) -> bytes:
    address, token = reach(arguments)
    pid = os.environ.get("CLAUDE_PID", "")
    extra = f"X-SM-Client-Pid: {pid}\r\n" if pid.isdigit() else ""
    request = request_bytes("POST", f"/hooks/{arguments[1]}", token, payload, extra)
    patient = any(b'"' + name + b'"' in payload for name in PATIENT_HOOKS)
    patience = PATIENT_ANSWER_TIMEOUT_S if patient else ANSWER_TIMEOUT_S
    asks = b'"' + ASKING_HOOK + b'"' in payload
    status, body = exchange_fast(address, request, ASK_TIMEOUT_S if asks else patience)
    return body if status == HTTP_OK and body.startswith(b"{") else b"{}"


def exchange_fast(address: str, request: bytes, seconds: float) -> tuple[int, bytes]:
    """Run `exchange`, with a short timeout for a peer that did not answer the last hooks, as a hung proxy."""
    record = record_of(address)
    count, age = vain_waits(record)
    hasty = count >= MAX_TIMEOUTS and 0 <= age < RETRY_INTERVAL_S
    try:
        answer = exchange(address, request, HASTY_ANSWER_TIMEOUT_S if hasty else seconds)
    except TimeoutError:
        if not hasty:
            note(record)
        raise
    if count:
        os.unlink(record)  # noqa: PTH108  # pathlib costs 10 ms
    return answer


def record_of(address: str) -> str:
    """Return the path of a file with a byte for each hook in a row that has timed out, and the time of the last one."""
    if address.startswith("unix:"):
        return f"{address[5:]}.vain"
    place = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # a file there is used only if it is ours
    return f"{place}/sm-hook-{os.getuid()}-{address.rstrip('/').rpartition(':')[2]}"


def vain_waits(record: str) -> tuple[int, float]:
    """Return how many, and how many seconds ago the last one was."""
    try:
        found = os.lstat(record)
    except OSError:
        return 0, 0.0
    now = time.time()  # noqa: TID251  # the file system's own scale
    return (found.st_size, now - found.st_mtime) if is_ours(found) else (0, 0.0)


def is_ours(found: os.stat_result) -> bool:
    return (found.st_uid, found.st_mode & KIND, found.st_nlink) == (os.getuid(), REGULAR, 1)


def note(record: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(record, flags, 0o600)
    except OSError:
        return  # it cannot be written: the next hook waits as long
    if is_ours(os.fstat(descriptor)):
        os.write(descriptor, b".")
    os.close(descriptor)


def main() -> None:
    answer = b"{}"
    try:
        payload = read_payload(0) if concerned(sys.argv) else b""
        if payload.strip():
            answer = deliver(sys.argv, payload)
    except Exception as problem:  # noqa: BLE001  # a hook that fails must never hurt the agent; the user sees why
        if len(sys.argv) < EXTERNAL_ARGUMENTS:
            os.write(2, f"sm hook: {type(problem).__name__}: {problem}\n".encode())
    os.write(1, answer + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
