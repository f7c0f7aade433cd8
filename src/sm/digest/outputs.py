"""Finds the line of a failed command's output that says what went wrong.

A line with error words counts, and one that looks unlike the lines around it. A random word in it may be a secret and
is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

MAX_CHARS = 220
MAX_LINES = 600
"""Of an output: half of them from its start, half from its end."""
ERROR_WORDS = re.compile(
    r"error|exception|\bfail|fatal|panic|cannot|can't|could not|couldn't|unable|denied|refused|not found|no such|"
    r"does ?n[o']t exist|already|invalid|unexpected|undefined|missing|timed? ?out|timeout|unreachable|aborted|killed|"
    r"conflict|violat|mismatch|out of memory|no space|exceed|segmentation|unsupported|expected",
    re.IGNORECASE,
)
ERROR_NAME = re.compile(
    r"(?:^|\s)(?:[A-Za-z_.]*(?:Error|Exception)\b|error\b|fatal\b|panic\b|FAILED\b|E\s{2,})", re.IGNORECASE
)
LOG_LEVEL = re.compile(r"\b(?:INFO|DEBUG|TRACE|NOTICE)\b")
PREFIX = re.compile(
    r"^(?:npm (?:ERR!|error) |#\d+ \d+\.\d+ |\[ERROR\] |\[\w[\w.-]{0,40}\]:? |\S{1,40}\s+\| |[\u2502>*] +)"
)
"""What a program that runs others puts before each of their lines."""
FILE_POSITION = re.compile(
    r"[\w.-]\.\w{1,6}(?::\d{1,6}(?::\d{1,5})?:? |\(\d{1,6}(?:,\d{1,5})?\):? |:\[\d{1,6},\d{1,5}\] |:\(\.\w+\+\w+\): )\S"
    r"|^\s{0,8}\d{1,6}:\d{1,5}\s+(?:error|fatal)"
)
"""A place in a file, and what is wrong there."""
SUMMARY = re.compile(
    r"^\W*(?:make(?:\[\d+\])?: |\d+ (?:passed|failed|tests?|errors?|warnings?|examples?|problems?|failures?)\b"
    r"|code \w+$"
    r"|(?:tests?|test files|test suites|suites|examples)\b:?\s+\d|FAIL(?:ED|URES?)?\b[^:]{0,80}$|FAILED: [^:]*$|ok\s"
    r"|BUILD FAIL|Build FAIL|exit (?:code|status)|found \d+ errors?|automatic merge failed|[\w.-]{1,40} ERROR :?$"
    r"|[\w./-]{1,120}:\d+: \w{0,40}(?:Error|Exception)$"
    r"|test result: |there (?:was|were) \d+|A complete log|To see the full|Re-run |Run with )"
    r"|build stopped|build failed|returned \d+ exit|aborting due to|could not compile|failed to execute goal"
    r"|(?:command|execution|compilation|test|lifecycle|subcommand|script) fail(?:ed|ure)|errors? generated"
    r"|to rerun pass"
    r"|due to \d+ previous|Error \d+\W*$|process completed with|did not complete successfully|\bTask \S+ FAILED",
    re.IGNORECASE,
)
"""Says that something went wrong, or how often, but not what."""
EXPECTATION = re.compile(r"^\s{0,12}(?:expected|wanted|want|left)\b.{0,3}[:=]", re.IGNORECASE)
STACK_LINE = re.compile(r"^\s*(?:at |File \"|\^+|~+|-+> |\u276f |\+ )")
MAX_FOLLOWING_LINES = 2
"""Lines that may continue a line."""
LONG_WORD = re.compile(r"[A-Za-z0-9+/_=.~-]{18,}")
CHARACTER_KINDS = (str.islower, str.isupper, str.isdigit)
LOWER, UPPER, DIGIT = range(3)
MAX_CHANGE_SHARE, MAX_CHANGE_SHARE_ROUND_DIGITS = 0.42, 0.3
"""A long word with a larger share of neighbours of different kinds (small, capital, digit) is no name.

Names have their digits together, and hashes have no two cases.
"""
LOGIN = re.compile(r"((?:^|\s)(?:-u|--user)[ =]?[^\s:]{1,80}:)\S+")
"""Name and password in curl's form."""


def error_lines(output: str) -> str:
    """Return the line, or the lines, that say what went wrong; "" for an empty output."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]
    lines = [PREFIX.sub("", line) for line in lines]
    starts = Counter(map(_line_start, lines))
    if not lines:
        return ""
    best = max(
        range(len(lines)), key=lambda at: _weight(lines[at], starts) + _position_weight(lines[at], at / len(lines))
    )
    before = lines[best - 1] if best else ""
    led = before.endswith(":") and not SUMMARY.search(before) and _weight(before, starts) > 0
    told = [before.strip(), lines[best].strip()] if led else [lines[best].strip()]
    for follower in lines[best + 1 : best + 1 + MAX_FOLLOWING_LINES]:
        if not (told[-1].endswith(":") or EXPECTATION.match(follower) or EXPECTATION.match(told[-1])):
            break
        told.append(follower.strip())
    return without_random(" ".join(told)[:MAX_CHARS])


def _position_weight(line: str, share: float) -> float:
    """The first error in a file has caused the others; of other lines the last says how it ended."""
    return (1 - share) / 2 if FILE_POSITION.search(line) else share / 2


def without_random(text: str) -> str:
    text = LOGIN.sub(r"\1[…]", text)
    return LONG_WORD.sub(lambda found: "[…]" if _is_random(found[0]) else found[0], text)


def _weight(line: str, starts: Counter[str]) -> float:
    weight = (
        3.0 * bool(ERROR_WORDS.search(line))
        + 2.0 * bool(ERROR_NAME.search(line))
        + 3.0 * bool(FILE_POSITION.search(line))
    )
    alike = starts[_line_start(line)]
    weight += 1.5 if alike == 1 else -2.0 if alike > 3 else 0.0  # noqa: PLR2004  # a log's lines look alike
    weight -= 3.0 * bool(LOG_LEVEL.search(line))
    return weight - 4.0 * bool(SUMMARY.search(line) or STACK_LINE.search(line))


def _line_start(line: str) -> str:
    """Return the form of a line's beginning: lines of a log have the same."""
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", line[:24]))[:12]


def _is_random(word: str) -> bool:
    kinds = [next((number for number, test in enumerate(CHARACTER_KINDS) if test(c)), None) for c in word]
    known = [kind for kind in kinds if kind is not None]
    changes = sum(one != other for one, other in pairwise(known))
    if not {LOWER, UPPER} <= set(known):
        return False
    groups = sum(kind == DIGIT != before for before, kind in pairwise([None, *known]))
    return changes > (MAX_CHANGE_SHARE if groups < 2 else MAX_CHANGE_SHARE_ROUND_DIGITS) * len(known)  # noqa: PLR2004  # apart
