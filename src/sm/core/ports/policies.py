"""What a session goes by, as configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sm.core.model.budget import Budgets
from sm.core.model.context import Policy
from sm.core.model.cost import Price
from sm.core.model.usage_limit import ResumeRules
from sm.core.rules.send_limits import SendLimits
from sm.core.rules.team import TeamLimits


class Policies(Protocol):
    """What is configured for sessions in a directory."""

    def policy(self, directory: str) -> Policy: ...
    def checked_policy(self, directory: str) -> Policy:
        """The same for a new session; SmError if the configuration is broken."""

    def limits(self) -> SendLimits:
        """Return what may be sent."""

    def team_limits(self, directory: str) -> TeamLimits:
        """How many children a session there may have, and how deep."""

    def agents_may_switch(self) -> bool:
        """Whether an agent may have another client continue its session. No project decides it."""

    def parents_may_answer(self) -> bool:
        """Whether a session may answer what its children's clients ask. No project decides it."""

    def resume_rules(self) -> ResumeRules:
        """Return how sessions continue after a usage limit."""

    def prices(self) -> Mapping[str, Price]:
        """Return what models cost, each by its name or a beginning of it."""

    def budgets(self) -> Budgets:
        """Return what a session, and one with all its children, may use. No project decides it."""

    def instructions(self, directory: str) -> str:
        """Return the configured text that goes with each injected handoff."""
