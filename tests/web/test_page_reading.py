"""The parts of the page that need no browser: a transcript by pages, Markdown, documents."""

import json

import pytest

from sm.core.model.history import Document
from sm.providers.claude.transcript_parts import parts
from sm.web.pages import documents, transcript
from sm.web.pages.markdown import rendered


def said(number):
    return json.dumps({"type": "user", "message": {"content": f"m{number}"}}).encode() + b"\n"


def same(text):
    return text


def texts(page):
    return [entry.text for entry in page.entries]


@pytest.mark.parametrize("window", [64, 300, 1 << 18])
def test_pages_backward_hold_each_entry_once(tmp_path, monkeypatch, window):
    monkeypatch.setattr(transcript, "WINDOW_BYTES", window)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(map(said, range(200))) + b'{"type": "user"')
    page = transcript.newest(str(path), parts, same)
    assert texts(page) == [f"m{number}" for number in range(140, 200)]
    found = texts(page)
    while page.start:
        page = transcript.newest(str(path), parts, same, page.start)
        found = [*texts(page), *found]
    assert found == [f"m{number}" for number in range(200)]


def test_what_is_new_begins_where_the_last_page_ended(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(said(1))
    end = transcript.newest(str(path), parts, same).end
    assert texts(transcript.since(str(path), parts, same, end)) == []
    path.write_bytes(said(1) + said(2) + said(3)[:-9])
    assert texts(transcript.since(str(path), parts, same, end)) == ["m2"]


def test_a_file_that_became_shorter_is_read_from_its_end(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(said(1))
    assert texts(transcript.since(str(path), parts, same, 10_000)) == ["m1"]


def test_a_record_that_is_too_long_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(transcript, "WINDOW_BYTES", 100)
    monkeypatch.setattr(transcript, "MAX_WINDOW_BYTES", 500)
    path = tmp_path / "t.jsonl"
    path.write_bytes(said(1) + said("x" * 2_000) + said(2))
    assert texts(transcript.newest(str(path), parts, same)) == ["m1", "m2"]


def test_a_missing_file_says_so(tmp_path):
    assert "cannot be read" in transcript.newest(str(tmp_path / "none"), parts, same).problem
    assert "cannot be read" in transcript.newest(str(tmp_path), parts, same).problem


def test_a_long_text_is_cut_after_it_was_redacted():
    shown = transcript.shown("secret " * 10_000, lambda text: text.replace("secret", "[gone]"), 100)
    assert "secret" not in shown
    assert "more characters" in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>",
        "<b>x</b>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,x)",
        "[x](/stop)",
        "[x](//evil.example)",
        "[x](vbscript:x)",
        "<javascript:alert(1)>",
        "![x](file:///x)",
    ],
)
def test_markdown_makes_no_element_that_acts(text):
    html = str(rendered(text))
    for bad in ("<script", "<b>", "<img", "<a ", "href="):
        assert bad not in html


def test_a_link_to_the_web_opens_apart():
    assert str(rendered("[x](https://ok.example/)")) == (
        '<p><a href="https://ok.example/" rel="noopener noreferrer nofollow" target="_blank">x</a></p>\n'
    )


def test_documents_are_a_chain():
    made = [Document(name, "c", f"/{name}", at, "consumed") for name, at in (("a", 1.0), ("c", 3.0), ("b", 2.0))]
    found = documents.chain(made)
    assert [(link.id, link.previous, link.following) for link in found] == [
        ("c", "b", None),
        ("b", "a", "c"),
        ("a", None, "b"),
    ]
    assert documents.chain([]) == []
    assert documents.difference("a\nb\n", "a\nc\n") == [
        ("at", "@@ -1,2 +1,2 @@"),
        ("", " a"),
        ("del", "-b"),
        ("add", "+c"),
    ]
