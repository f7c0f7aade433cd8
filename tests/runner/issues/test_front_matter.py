"""One value of the front matter changes, and every other byte stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.runner.issues.front_matter import front_matter, with_value
from sm.runner.issues.yaml_nodes import YamlError, word


def read(text):
    return word(front_matter(text).values["status"], "status")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nstatus: open\n---\n# A\n", "---\nstatus: done\n---\n# A\n"),
        ("---\r\nstatus: open\r\na: b\r\n---\r\n# A", "---\r\nstatus: done\r\na: b\r\n---\r\n# A"),
        ("---\nstatus: open  # since May\n---\n", "---\nstatus: done  # since May\n---\n"),
        ("---\nstatus: 'open'\nb: [1,   2]\n---\n", "---\nstatus: done\nb: [1,   2]\n---\n"),
        ('---\n"status": "open" \n---\n', '---\n"status": done \n---\n'),
        ("---\nstatus:\nb: 1\n---\n", "---\nstatus: done\nb: 1\n---\n"),
        ("---\nstatus: # none yet\nb: 1\n---\n", "---\nstatus: done # none yet\nb: 1\n---\n"),
        ("---\nstatus: ~\n---\n", "---\nstatus: done\n---\n"),
        ("---\nstatus   :   open\n---\n", "---\nstatus   :   done\n---\n"),
        ("---\nstatus: |\n  open\nb: 1\n---\n", "---\nstatus: done\nb: 1\n---\n"),
        ("---\nstatus: !!str open\n---\n", "---\nstatus: done\n---\n"),
        ("---\n{status: open, b: 1}\n---\n", "---\n{status: done, b: 1}\n---\n"),
        ("---\ntitle: é 字 😀\nstatus: open\n---\n", "---\ntitle: é 字 😀\nstatus: done\n---\n"),
        ("---\n# first\n\nb: 1\n\n# last\n---\nx\n", "---\n# first\n\nb: 1\n\n# last\nstatus: done\n---\nx\n"),
        ("---\n  b: 1\n---\n", "---\n  b: 1\n  status: done\n---\n"),
        ("---\nb: |\n  one\n\n  two\n---\nx", "---\nb: |\n  one\n\n  two\nstatus: done\n---\nx"),
        ("---\nb:\n- 1\n- 2\n---\nx", "---\nb:\n- 1\n- 2\nstatus: done\n---\nx"),
        ("---\n---\nx\n", "---\nstatus: done\n---\nx\n"),
        ("---\nb: 1\n...\nx\n", "---\nb: 1\nstatus: done\n...\nx\n"),
        ("---\nb: 1\n---", "---\nb: 1\nstatus: done\n---"),
        ("# A\n\ntext\n", "---\nstatus: done\n---\n# A\n\ntext\n"),
        ("# A\r\n", "---\r\nstatus: done\r\n---\r\n# A\r\n"),
        ("", "---\nstatus: done\n---\n"),
        ("\ufeff---\nstatus: open\n---\n", "\ufeff---\nstatus: done\n---\n"),
        ("\ufeff# A", "\ufeff---\nstatus: done\n---\n# A"),
        ("----\nstatus: open\n---\n", "---\nstatus: done\n---\n----\nstatus: open\n---\n"),
        ("---\nb: 1\nstatus: open\n---\nstatus: open\n---\n", "---\nb: 1\nstatus: done\n---\nstatus: open\n---\n"),
    ],
)
def test_a_status_changes_one_value_or_adds_a_line(before, after):
    assert with_value(before, "status", "done") == after
    assert read(after) == "done"
    assert with_value(after, "status", "done") == after


@pytest.mark.parametrize(
    "text",
    [
        "---\nb: &x open\nstatus: *x\n---\n",
        "---\nstatus: &x open\nb: *x\n---\n",
        "---\na: &x 1\nstatus: &x open\nb: *x\n---\n",
        "---\nb: {a: 1}\n{x: 1}\n---\n",
        "---\n{b: 1}\n---\n",
        "---\nstatus: open\nstatus: done\n---\n",
        "---\nstatus: open\n",
        "---\n- status\n---\n",
        "---\njust words\n---\n",
        "---\nstatus: [open\n---\n",
        "---\ntitle: a: b\n---\n",
        "---\n\tstatus: open\n---\n",
        "---\nb: \x07\n---\n",
        '---\nb: "\\UFFFFFFFF"\n---\n',
        f"---\nb: {'[' * 5000}\n---\n",
        f"---\nb: {'x' * 70_000}\n---\n",
        "---\n? [a]\n: b\n---\n",
        "---\na: 1",
    ],
    ids=range(18),
)
def test_what_cannot_be_changed_alone_is_refused(text):
    with pytest.raises(YamlError):
        with_value(text, "status", "done")


def test_a_mistake_is_reported_with_the_line_of_the_file():
    with pytest.raises(YamlError, match="line 4: status is there twice"):
        front_matter("---\nstatus: open\na: 1\nstatus: done\n---\n")
    with pytest.raises(YamlError, match="line 3: a value with a colon in it needs quotes"):
        front_matter("---\na: 1\ntitle: a: b\n---\n")


LINES = st.sampled_from(
    [
        "a: 1", "b: [x, y]", "c:", "  - é", "  - 'q'", "d: |", "  text", "", "# words", "e: {f: 1}", 'g: "x: y"',
        "h: >-", "  folded", "  more", "i: 2026-01-01", "j: no", "status: open", "status: 'x'  # why", "status:", "\tx",
        "k: &a v", "l: *a", "---", "status: *a", "  status: inner", "m: 😀",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "# A\n", "x"]))
def test_law_all_else_stays_or_nothing_is_written(lines, newline, body):
    text = newline.join(("---", *lines, "---", body))
    try:
        changed = with_value(text, "status", "done")
    except YamlError:
        return
    assert read(changed) == "done"
    shared = 0
    while shared < min(len(text), len(changed)) and text[shared] == changed[shared]:
        shared += 1
    rest = 0
    while rest < min(len(text), len(changed)) - shared and text[-1 - rest] == changed[-1 - rest]:
        rest += 1
    assert len(changed[shared : len(changed) - rest].strip()) <= len("status: done")
    kept, now = front_matter(text), front_matter(changed)
    assert text[kept.body :] == changed[now.body :]
    assert [key for key in now.values if key != "status"] == [key for key in kept.values if key != "status"]
