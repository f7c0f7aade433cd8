"""What a refusal says to whom."""

from sm.core.errors import Refused, error, for_agent


def test_an_agent_is_pointed_to_the_user_where_only_the_user_can_help():
    refused = Refused("ended", "it has ended", "sm restore x brings it back")
    assert for_agent(refused).hint == "ask the user who runs sm: sm restore x brings it back"
    assert for_agent(refused).message == "it has ended"


def test_a_hint_that_an_agent_can_follow_stays():
    refused = Refused("not_found", "no such session", "sm list shows them")
    assert for_agent(refused) == refused


def test_a_refusal_is_raised_with_its_code_its_message_and_its_hint():
    problem = error("ended", "it has ended", "sm restore x")
    assert problem.refused == Refused("ended", "it has ended", "sm restore x")
    assert str(problem) == "it has ended"
