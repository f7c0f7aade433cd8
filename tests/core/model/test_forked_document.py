from sm.core.model.forked_document import FACTS, FORK_PROMPT, HEAD, MAX_FORK_CHARACTERS, forked_document


def test_the_answer_comes_first_and_the_facts_below_it():
    assert forked_document("\n# Goal\n", "# Facts\n") == f"{HEAD}\n\n# Goal\n\n{FACTS}\n\n# Facts\n"


def test_the_prompt_is_words_of_sm_that_ask_for_less_than_is_kept():
    assert FORK_PROMPT.startswith("[sm handoff] ")
    assert "at most 1,500 words" in FORK_PROMPT
    assert MAX_FORK_CHARACTERS > 1_500 * 10
