"""What of a document that is too long is given: the most useful parts, in their order, and what is left out."""

from hypothesis import given
from hypothesis import strategies as st

from sm.core.model.excerpt import excerpt

HISTORY = "## What happened\n" + "It went on and on.\n" * 400
NEXT = "## Next step\nRun the migration.\n"
RULES = "## Decisions\nNever touch the old table.\n"
DOCUMENT = f"# Handoff\nThe goal is G.\n\n{HISTORY}{RULES}{NEXT}"


def test_next_step_and_decisions_outrank_what_happened_and_the_order_stays():
    found = excerpt(DOCUMENT, 2_000)
    assert found.startswith("# Handoff\nThe goal is G.\n")
    assert found.endswith(RULES + NEXT.rstrip("\n"))
    assert "## What happened\nIt went on" in found
    assert found.index("## What happened") < found.index("## Decisions")
    assert "It went on and on.\n[…]\n" in found


def test_a_part_for_which_no_room_is_left_is_named():
    found = excerpt(DOCUMENT, 290)
    assert "[left out: What happened]\n" in found
    assert NEXT.rstrip("\n") in found


def test_a_heading_in_a_code_block_is_none():
    code = "```sh\n# not a heading\n" + "x\n" * 300 + "```\n"
    found = excerpt(f"# A\n{code}{NEXT}", 400)
    assert "left out: not a heading" not in found


def test_a_document_without_headings_is_cut_at_a_line_end():
    assert excerpt("line\n" * 100, 52) == "line\n" * 9 + "line"


def test_a_document_of_nothing_but_headings_is_cut_as_well():
    assert len(excerpt("# heading\n" * 1_000, 500)) <= 500


PIECES = st.sampled_from(("# H\n", "## Next\n", "```\n", "text\n" * 60, "x" * 3_000, "行\n", "\n"))


@given(st.lists(PIECES, max_size=40).map("".join), st.integers(0, 9_000))
def test_it_is_never_longer_than_there_is_room(text, room):
    assert len(excerpt(text, room)) <= room
