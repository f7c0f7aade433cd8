from sm.core.model import context_warnings


def test_a_compaction_that_came_too_late_is_told_with_its_sizes():
    assert context_warnings.too_late_notice("api", 168_024, None).endswith("(168,024 tokens → unknown).")


def test_the_document_that_sm_makes_for_an_agent_has_a_name_of_its_own():
    assert context_warnings.auto_file("0a1b2c3d4e") == ".sm/handoff-auto-0a1b2c3d.md"
