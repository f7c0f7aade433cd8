"""One issue as a Markdown file: what its name, its front matter and its text say.

The name says type, number and slug, and front matter everything else; where only one of them says it, that one counts.
The status is what front matter says, wherever the file is: only one in `completed/` that says nothing is done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from sm.runner.issues.front_matter import front_matter, with_value
from sm.runner.issues.issue import (
    DEFAULT_PRIORITY,
    TYPES,
    Issue,
    IssueStatus,
    IssueType,
    canonical,
    priority_of,
    status_of,
    type_of,
)
from sm.runner.issues.named_files import given_files, named_files
from sm.runner.issues.yaml_nodes import Node, word, words

COMPLETED = "completed"
_NAME = re.compile(rf"(?:P(\d{{1,2}})-)?({TYPES})-(\d{{1,18}})(?:-(.*))?", re.IGNORECASE | re.DOTALL)
_LIKE_AN_ISSUE = re.compile(rf"(?:P\d{{1,2}}|{TYPES})-", re.IGNORECASE)
_KEYS_OF_AN_ISSUE = frozenset({"id", "status", "priority", "blocked_by", "depends_on"})
_TITLE = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_ID_IN_TITLE = re.compile(rf"(?:P\d-)?(?:{TYPES})-\d{{1,18}}\b[ :–—-]{{0,5}}", re.IGNORECASE)


def id_in_name(place: PurePosixPath) -> str:
    """Return the id that a file's name gives; empty where it gives none."""
    named = _NAME.fullmatch(place.stem)
    return f"{named[2].upper()}-{named[3]}" if named else ""


def looks_like_an_issue(place: PurePosixPath, text: str) -> bool:
    """Whether the file is meant as an issue; a README is not."""
    if _LIKE_AN_ISSUE.match(place.name):
        return True
    try:
        return not _KEYS_OF_AN_ISSUE.isdisjoint(front_matter(text).values)
    except ValueError:
        return False


def parsed(text: str, place: PurePosixPath) -> Issue:
    """Return the issue; ValueError with what is wrong with the file."""
    head = front_matter(text)
    values, body = head.values, text[head.body :]
    named = _NAME.fullmatch(place.stem)
    known = _id(named, values)
    kind, _, digits = known.partition("-")
    slug = (named[4] or "") if named else place.stem
    return Issue(
        id=known,
        type=_type(IssueType(kind), values),
        priority=_priority(named, values),
        number=int(digits),
        title=_title(values, body, slug),
        status=status_in(values, place),
        place=place.as_posix(),
        slug=slug,
        labels=_words(values, "labels"),
        blocked_by=_words(values, "blocked_by"),
        depends_on=_words(values, "depends_on"),
        blocks=_words(values, "blocks"),
        parent=_word(values, "parent"),
        check=_word(values, "check"),
        files=tuple(dict.fromkeys((*given_files(_words(values, "files")), *named_files(body)))),
        text=body.replace("\r\n", "\n").strip(),
    )


def _id(named: re.Match[str] | None, values: Mapping[str, Node]) -> str:
    by_name = f"{named[2].upper()}-{named[3]}" if named else ""
    given = _word(values, "id")
    if not (by_name or given):
        raise ValueError("its name says no type and number: call it as P2-FEAT-012-slug.md")
    if not by_name:
        found = _NAME.fullmatch(given)
        if found is None:
            raise ValueError(f"id {given!r}: accepted is one as FEAT-012")
        return f"{found[2].upper()}-{found[3]}"
    if given and canonical(given) != canonical(by_name):
        raise ValueError(f"its name says {by_name}, its front matter {given}: make them equal")
    return by_name


def _type(named: IssueType, values: Mapping[str, Node]) -> IssueType:
    given = _word(values, "type")
    if given and type_of(given) is not named:
        raise ValueError(f"its name says {named}, its front matter {given}: make them equal")
    return named


def _priority(named: re.Match[str] | None, values: Mapping[str, Node]) -> int:
    text = _word(values, "priority") or (named[1] or "" if named else "")
    return priority_of(text) if text else DEFAULT_PRIORITY


def status_in(values: Mapping[str, Node], place: PurePosixPath) -> IssueStatus:
    text = _word(values, "status")
    if text:
        return status_of(text)
    return IssueStatus.DONE if COMPLETED in place.parent.parts else IssueStatus.OPEN


def with_status(text: str, place: PurePosixPath, status: IssueStatus) -> str:
    """Return the file's text with that status; unchanged where it says so already, in whatever word."""
    values = front_matter(text).values
    if _word(values, "status") and status_in(values, place) is status:
        return text
    return with_value(text, "status", status.value)


def _title(values: Mapping[str, Node], body: str, slug: str) -> str:
    heading = _TITLE.search(body)
    title = _word(values, "title") or (heading[1].strip() if heading else "")
    begin = _ID_IN_TITLE.match(title)
    return (title[begin.end() :] if begin else title) or title or slug.replace("-", " ") or "(no title)"


def _word(values: Mapping[str, Node], key: str) -> str:
    return word(values[key], key) if key in values else ""


def _words(values: Mapping[str, Node], key: str) -> tuple[str, ...]:
    return words(values[key], key) if key in values else ()
