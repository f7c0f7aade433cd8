"""Which commands an agent may run without being asked; `e2e/test_allowed.py` tries each on the real client."""

from sm.core.model.agent_commands import AGENT


def test_an_agent_is_asked_before_it_runs_what_belongs_to_the_user():
    assert {"handoff", "send", "status"} <= set(AGENT)
    assert not {"server", "new", "restore", "attach", "setup"} & set(AGENT)
    assert len(set(AGENT)) == len(AGENT)
