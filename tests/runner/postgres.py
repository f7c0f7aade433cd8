"""A PostgreSQL of its own in a directory of its own, by the programs of the system; it ends with the test."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

USER = "sm"
UNPRIVILEGED = "nobody"
"""Where the test is run by root: initdb and postgres refuse root."""
START_TIMEOUT_S = 60


def programs() -> Path:
    """Return the directory of the newest programs; the test fails where there are none: they are part of the set-up."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    place = found[-1] if found else Path(on_path) if on_path else None
    if place is None:
        pytest.fail("no initdb: apt-get install postgresql")
    return place.parent


@contextmanager
def running() -> Iterator[str]:
    """Yield the URL of an empty database."""
    owner = pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None
    as_owner: dict[str, Any] = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
    directory = tempfile.mkdtemp(prefix="sm-postgres-")
    process = None
    try:
        if owner:
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        initdb: list[str | Path] = [
            programs() / "initdb",
            "-D",
            f"{directory}/data",
            "-U",
            USER,
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
        ]
        plain = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        subprocess.run(initdb, cwd=directory, env=plain, check=True, capture_output=True, **as_owner)
        port = free_port()
        with Path(directory, "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *(programs() / "postgres", "-D", f"{directory}/data", "-k", directory, "-p", str(port)),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"),
                ],
                cwd=directory,
                env=plain,
                stdout=log,
                stderr=log,
                **as_owner,
            )
        url = f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        wait_for(url, process, Path(directory, "log"))
        yield url
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL has not started: {log.read_text()}")
            time.sleep(0.1)
        else:
            return


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
