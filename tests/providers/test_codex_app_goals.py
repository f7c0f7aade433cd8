"""A goal pauses while something waits for the end of a turn, and is active again afterwards, whoever serves then."""

import pytest

from sm.providers.codex.app import schema
from sm.providers.codex.app.goals import HeldGoal
from sm.providers.codex.app.rpc import RefusedError


class Threads:
    """Goals by thread, as the app-server keeps them."""

    def __init__(self, **goals):
        self.goals = goals

    async def call(self, request):
        if isinstance(request, schema.ThreadGoalGet):
            if request.thread_id not in self.goals:
                raise RefusedError("goals are switched off")
            return schema.ThreadGoalGetResponse(goal=self.goals[request.thread_id])
        assert isinstance(request, schema.ThreadGoalSet)
        known = self.goals.get(request.thread_id) or schema.ThreadGoal()
        objective = request.objective or known.objective
        self.goals[request.thread_id] = schema.ThreadGoal(objective=objective, status=request.status or known.status)
        return None

    def status(self, thread):
        return self.goals[thread].status


def goal(status="active"):
    return schema.ThreadGoal(objective="finish", status=status)


async def test_a_goal_is_carried_to_the_new_thread_and_active_there_once_a_prompt_was_taken(tmp_path):
    threads, held = Threads(old=goal()), HeldGoal(tmp_path / "s.goal")
    await held.carry(threads, "new", await held.pause(threads, "old"))
    assert (threads.status("old"), threads.status("new")) == ("paused", "paused")
    await held.resume(threads, "new")
    assert (threads.status("old"), threads.status("new"), threads.goals["new"].objective) == (
        "paused",
        "active",
        "finish",
    )


async def test_the_next_server_makes_it_active_again(tmp_path):
    threads = Threads(old=goal())
    await HeldGoal(tmp_path / "s.goal").pause(threads, "old")
    await HeldGoal(tmp_path / "s.goal").resume(threads, "old")
    assert threads.status("old") == "active"
    assert not HeldGoal(tmp_path / "s.goal").held


@pytest.mark.parametrize("status", ["paused", "blocked", "complete"])
async def test_what_was_not_active_is_left_as_it_is(tmp_path, status):
    threads, held = Threads(old=goal(status)), HeldGoal(tmp_path / "s.goal")
    await held.carry(threads, "new", await held.pause(threads, "old"))
    await held.resume(threads, "new")
    assert threads.status("old") == status
    assert ("new" in threads.goals) == (status != "complete")


async def test_where_goals_are_switched_off_nothing_is_paused(tmp_path):
    threads, held = Threads(), HeldGoal(tmp_path / "s.goal")
    assert await held.pause(threads, "old") is None
    await held.resume(threads, "old")
    assert threads.goals == {}
