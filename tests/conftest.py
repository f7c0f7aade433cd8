"""A test that fails is tried again, on the real client twice: a shared machine may stop for seconds in between.

Every rerun is shown (`R`, and counted at the end) with its reason. A fault that is there each time fails all the same.
"""

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
import structlog

# The default draws tracebacks with the values of all locals: of a supervisor that takes longer than any test waits.
plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[structlog.processors.add_log_level, plain])


EXAMPLES = {"few": 20, "usual": 60, "many": 1000}
"""How many a law is tried on in `make check`, in `make test` and in `make soak`: each run draws others."""
for name, count in EXAMPLES.items():  # how long an example takes is the machine's matter
    hypothesis.settings.register_profile(name, deadline=None, max_examples=count)
hypothesis.settings.load_profile("usual")

HANGS = 120
"""Seconds after which a test hangs, on a machine as busy as can be."""
LAW_HANGS = 1_200
"""The same for a law with a thousand examples."""
INHERITED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def give_defaults_to_children():
    """Under nohup, or in the background of a script, signals come ignored, and whatever a test starts ignores them too.

    A handler goes back to the default in a new program; here it goes on ignoring, as whoever started us wants.
    """
    for number in INHERITED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INHERITED)


give_defaults_to_children()


def interrupted(*_):
    raise KeyboardInterrupt


def take_interrupts_from_asyncio():
    """A runner that finds Python's own handler puts in one that holds its task, and looks that up among the enum's.

    What is not found there is drawn for the error with all that the task holds: a tenth of the time of a test that has
    a server inside (3.11).
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)


take_interrupts_from_asyncio()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Beside others a worker stores twice per test how often it is tried again, over a socket of the plugin's.

    Of two small messages the second waits for the answer to the first: 25 ms of each test, unless it is told not to.
    """
    counts = getattr(getattr(config, "failures_db", None), "sock", None)
    if counts is not None:
        counts.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.fixture(autouse=True)
def ends_what_it_started():
    """Processes of a test that failed in between would hold what the next one needs, and stay behind for good."""
    before = children()
    yield
    for pid in children() - before:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def children():
    """The pids of our own children; none where the system does not tell."""
    found = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, listing.read_text().split()))
    return {pid for pid in found if not serves_us(pid)}


def serves_us(pid):
    """A helper of all tests: the standard library's own, and the one that `tests/cli/warm.py` forks from."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"resource_tracker" in command or b"tests/cli/warm.py" in command
    return False


def pytest_collection_modifyitems(items):
    for item in items:
        often = item.get_closest_marker("often")
        if often is not None and item.callspec.id not in often.args:
            item.add_marker(pytest.mark.soak)
        if getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker(pytest.mark.law)  # and never tried again: it would draw other examples
            item.add_marker(pytest.mark.timeout(LAW_HANGS))
        else:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(HANGS))
            item.add_marker(pytest.mark.flaky(reruns=2 if item.get_closest_marker("e2e") else 1, reruns_delay=2))


def pytest_terminal_summary(terminalreporter):
    """Why each was tried again: a test that fails now and then hides a fault, or has one."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext[-4000:])
