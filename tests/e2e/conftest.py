"""Scenarios run with each driver: the plugin in the client and, in `make soak`, the keys.

A module that drives a client says in `DRIVER` which it is about; without that the scenario is the same with either.
"""

import pytest

from tests.e2e import rig

DRIVERS = [
    pytest.param("mod"),
    pytest.param("keys", marks=pytest.mark.soak),
    pytest.param("codex", marks=pytest.mark.soak),
    pytest.param("codex-tui", marks=pytest.mark.soak),
]
BY_KEYS = pytest.mark.parametrize("driver", ["keys"], indirect=True)
"""A scenario of such a module that only the keys know."""
BOTH = frozenset(
    {
        *("test_asks", "test_context_on_the_client", "test_documents", "test_filling", "test_gate", "test_handoffs"),
        *(
            "test_hangs",
            "test_kills",
            "test_limits_on_the_client",
            "test_messages",
            "test_notifications",
            "test_restart",
            "test_rotation",
        ),
        *("test_lost", "test_scheduled", "test_stopped", "test_team", "test_turns", "test_two_agents"),
        *("test_usage_limit",),
    }
)


def pytest_generate_tests(metafunc):
    marks = {mark.name: mark for mark in metafunc.definition.iter_markers()}
    named = any("driver" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if metafunc.module.__name__.rpartition(".")[2] in BOTH and not named:
        left_out = {"codex", "codex-tui"} if "claude_only" in marks else set()
        left_out |= {"codex-tui"} if "not_in_terminal" in marks else set()
        drivers = [driver for driver in DRIVERS if driver.values[0] not in left_out]
        if "codex_too" in marks:
            drivers = [pytest.param("codex") if driver.values[0] == "codex" else driver for driver in drivers]
        metafunc.parametrize("driver", drivers, indirect=True)


@pytest.fixture(autouse=True)
def driver(request, monkeypatch):
    chosen = getattr(request, "param", None) or getattr(request.module, "DRIVER", "mod")
    monkeypatch.setattr(rig, "driver", "keys" if chosen == "keys" else "auto")
    monkeypatch.setattr(rig, "provider", chosen if chosen.startswith("codex") else "claude")
    return chosen
