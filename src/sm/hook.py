"""Hands one hook payload from the client to the server and prints the answer: exactly one JSON object, exit 0, always.

Runs once per hook in an interpreter of its own (`python -I -S`), so it imports nothing of ours and no module that
costs: `_socket` instead of `socket` saves 7 ms. Reads no further than it must: a client may keep the pipe
open for ever.

    hook.py PROVIDER                 in a session of ours: address and token come from its environment
    hook.py PROVIDER ADDRESS TOKEN   in the person's own settings, by `sm setup`: TOKEN is the file that holds theirs

The second ends at once in a session of ours, whose own hooks have told already, and in a client without a terminal,
and it says nothing where no server runs.
"""

import _socket
import os
import select
import sys
import time

STDIN_PATIENCE = 1.0
"""Seconds without a byte before what has come is taken for the whole."""
COMPLETE_PATIENCE = 0.05
"""The same once the bytes end like a JSON object."""
PATIENT_HOOKS = (b"SessionStart", b"PreCompact", b"PreToolUse")
"""Hooks whose answer must not be lost."""
PATIENCE = 0.9
PATIENCE_OF_THOSE = 1.9
"""Seconds until the answer must be complete: with the start of an interpreter one second, and two."""
HASTE = 0.1
"""The same once FAILURES hooks in a row have waited in vain, but for one in RETRY seconds that waits as before."""
FAILURES = 3
RETRY = 10.0
MAX_BYTES = 16 * 1024 * 1024
MOST_PORT = 65_535
OK = 200
KIND, REGULAR = 0o170000, 0o100000
"""Of `st_mode`: `S_IFMT` and `S_IFREG`, without the module `stat`."""
ADOPTING = 4
"""Length of the argument list of the second form."""
INTERACTIVE = "cli"
"""CLAUDE_CODE_ENTRYPOINT of a client in a terminal; `claude -p` has sdk-cli (2.1.328)."""


def read_payload(descriptor: int) -> bytes:
    data = b""
    while len(data) < MAX_BYTES:
        patience = COMPLETE_PATIENCE if data.rstrip().endswith(b"}") else STDIN_PATIENCE
        if not select.select([descriptor], [], [], patience)[0]:
            return data
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return data
        data += piece
    return data


def exchange(address: str, request: bytes, seconds: float) -> tuple[int, bytes]:
    """Send one HTTP request to `http://HOST:PORT` or `unix:PATH`; return status and body. OSError if it can't.

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
    status = head[9:12]  # behind "HTTP/1.1 "
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
        if not port.isdigit() or int(port) > MOST_PORT:
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
    """One request after which the server closes: the answer then ends where the connection does."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body


def reach(arguments: list[str]) -> tuple[str, str]:
    """Address and token."""
    if len(arguments) < ADOPTING:
        return os.environ.get("SM_SOCKET") or os.environ["SM_URL"], os.environ["SM_SESSION_TOKEN"]
    descriptor = os.open(arguments[3], os.O_RDONLY | os.O_CLOEXEC)
    return arguments[2], os.read(descriptor, 4096).decode("ascii").strip()


def concerned(arguments: list[str]) -> bool:
    own = "CLAUDE_SESSION_MANAGER_ID" in os.environ
    return len(arguments) < ADOPTING or (not own and os.environ.get("CLAUDE_CODE_ENTRYPOINT") == INTERACTIVE)


def deliver(arguments: list[str], payload: bytes) -> bytes:
    address, token = reach(arguments)
    pid = os.environ.get("CLAUDE_PID", "")
    extra = f"X-SM-Client-Pid: {pid}\r\n" if pid.isdigit() else ""
    request = request_bytes("POST", f"/hooks/{arguments[1]}", token, payload, extra)
    patient = any(b'"' + name + b'"' in payload for name in PATIENT_HOOKS)
    status, body = exchange_fast(address, request, PATIENCE_OF_THOSE if patient else PATIENCE)
    return body if status == OK and body.startswith(b"{") else b"{}"


def exchange_fast(address: str, request: bytes, seconds: float) -> tuple[int, bytes]:
    """`exchange`, hardly waiting for a peer that has kept the last hooks waiting in vain, as a hung proxy does."""
    record = record_of(address)
    count, age = vain_waits(record)
    hasty = count >= FAILURES and 0 <= age < RETRY
    try:
        answer = exchange(address, request, HASTE if hasty else seconds)
    except TimeoutError:
        if not hasty:
            note(record)
        raise
    if count:
        os.unlink(record)  # noqa: PTH108  # pathlib costs 10 ms
    return answer


def record_of(address: str) -> str:
    """A file that has a byte for each hook in a row that has waited in vain, and the time of the last one."""
    if address.startswith("unix:"):
        return f"{address[5:]}.vain"
    place = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # what is there is believed only if it is ours
    return f"{place}/sm-hook-{os.getuid()}-{address.rstrip('/').rpartition(':')[2]}"


def vain_waits(record: str) -> tuple[int, float]:
    """How many, and how many seconds ago the last one was."""
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
        return  # no place for it: the next hook waits as long
    if is_ours(os.fstat(descriptor)):
        os.write(descriptor, b".")
    os.close(descriptor)


def main() -> None:
    answer = b"{}"
    try:
        payload = read_payload(0) if concerned(sys.argv) else b""
        if payload.strip():
            answer = deliver(sys.argv, payload)
    except Exception as problem:  # noqa: BLE001  # a hook that fails must never hurt the agent; the person sees why
        if len(sys.argv) < ADOPTING:
            os.write(2, f"sm hook: {type(problem).__name__}: {problem}\n".encode())
    os.write(1, answer + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
