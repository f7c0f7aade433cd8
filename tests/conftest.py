"""Whole systems on the real client are tried again when they fail: a shared machine may stop for seconds in between.

Every rerun is shown (`R`, and counted at the end). A fault that is there each time fails all the same.
"""

import pytest
import structlog

# The default draws tracebacks with the values of all locals: of a supervisor that takes longer than any test waits.
plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[structlog.processors.add_log_level, plain])


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


def pytest_terminal_summary(terminalreporter):
    """Why each was tried again: a test that fails now and then hides a fault, or has one."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext[-4000:])
