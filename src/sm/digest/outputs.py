"""Which line of a failed command's output tells what went wrong.

A line of error words counts, and one that looks unlike the lines around it. What looks random in it may be a secret
and is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

WIDEST = 220
LOOKED_AT = 600
"""Lines of an output that are looked at: half of them from its start, half from its end."""
COMPLAINT = re.compile(
    r"error|exception|\bfail|fatal|panic|cannot|can't|could not|couldn't|unable|denied|refused|not found|no such|"
    r"does ?n[o']t exist|already|invalid|unexpected|undefined|missing|timed? ?out|timeout|unreachable|aborted|killed|"
    r"conflict|violat|mismatch|out of memory|no space|exceed|segmentation|unsupported|expected",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"(?:^|\s)(?:[A-Za-z_.]*(?:Error|Exception)\b|error\b|fatal\b|panic\b|FAILED\b|E\s{2,})", re.IGNORECASE
)
QUIET = re.compile(r"\b(?:INFO|DEBUG|TRACE|NOTICE)\b")
PREFIX = re.compile(
    r"^(?:npm (?:ERR!|error) |#\d+ \d+\.\d+ |\[ERROR\] |\[\w[\w.-]{0,40}\]:? |\S{1,40}\s+\| |[\u2502>*] +)"
)
"""What a program that runs others puts before each of their lines."""
LOCATED = re.compile(
    r"[\w.-]\.\w{1,6}(?::\d{1,6}(?::\d{1,5})?:? |\(\d{1,6}(?:,\d{1,5})?\):? |:\[\d{1,6},\d{1,5}\] |:\(\.\w+\+\w+\): )\S"
    r"|^\s{0,8}\d{1,6}:\d{1,5}\s+(?:error|fatal)"
)
"""A place in a file, and what is wrong there."""
TALLY = re.compile(
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
"""That something went wrong, or how often, but not what."""
COMPARED = re.compile(r"^\s{0,12}(?:expected|wanted|want|left)\b.{0,3}[:=]", re.IGNORECASE)
TRACE = re.compile(r"^\s*(?:at |File \"|\^+|~+|-+> |\u276f |\+ )")
FOLLOWING = 2
"""Lines that may go on with what a line has begun."""
RANDOM = re.compile(r"[A-Za-z0-9+/_=.~-]{18,}")
CLASSES = (str.islower, str.isupper, str.isdigit)
LOWER, UPPER, DIGIT = range(3)
CHANGES, CHANGES_ROUND_DIGITS = 0.42, 0.3
"""Share of neighbours of another kind (small, capital, digit) from which a long word is no name any more.

Names have their digits together, and hashes have no two cases.
"""
LOGIN = re.compile(r"((?:^|\s)(?:-u|--user)[ =]?[^\s:]{1,80}:)\S+")
"""Name and password as curl takes them."""


def complaint(output: str) -> str:
    """The line, or the two lines, that tell; "" if there is nothing to tell."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    if len(lines) > LOOKED_AT:
        lines = lines[: LOOKED_AT // 2] + lines[-LOOKED_AT // 2 :]
    lines = [PREFIX.sub("", line) for line in lines]
    shapes = Counter(map(_shape, lines))
    if not lines:
        return ""
    best = max(range(len(lines)), key=lambda at: _weight(lines[at], shapes) + _place(lines[at], at / len(lines)))
    before = lines[best - 1] if best else ""
    led = before.endswith(":") and not TALLY.search(before) and _weight(before, shapes) > 0
    told = [before.strip(), lines[best].strip()] if led else [lines[best].strip()]
    for follower in lines[best + 1 : best + 1 + FOLLOWING]:
        if not (told[-1].endswith(":") or COMPARED.match(follower) or COMPARED.match(told[-1])):
            break
        told.append(follower.strip())
    return without_random(" ".join(told)[:WIDEST])


def _place(line: str, share: float) -> float:
    """Of faults in files the first has brought the others about; of other lines the last tells how it ended."""
    return (1 - share) / 2 if LOCATED.search(line) else share / 2


def without_random(text: str) -> str:
    text = LOGIN.sub(r"\1[…]", text)
    return RANDOM.sub(lambda found: "[…]" if _is_random(found[0]) else found[0], text)


def _weight(line: str, shapes: Counter[str]) -> float:
    weight = 3.0 * bool(COMPLAINT.search(line)) + 2.0 * bool(NAMED.search(line)) + 3.0 * bool(LOCATED.search(line))
    alike = shapes[_shape(line)]
    weight += 1.5 if alike == 1 else -2.0 if alike > 3 else 0.0  # noqa: PLR2004  # a log's lines look alike
    weight -= 3.0 * bool(QUIET.search(line))
    return weight - 4.0 * bool(TALLY.search(line) or TRACE.search(line))


def _shape(line: str) -> str:
    """How a line begins: that of a log is the same from line to line."""
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", line[:24]))[:12]


def _is_random(word: str) -> bool:
    kinds = [next((number for number, test in enumerate(CLASSES) if test(c)), None) for c in word]
    known = [kind for kind in kinds if kind is not None]
    changes = sum(one != other for one, other in pairwise(known))
    if not {LOWER, UPPER} <= set(known):
        return False
    groups = sum(one == DIGIT != before for before, one in pairwise([None, *known]))
    return changes > (CHANGES if groups < 2 else CHANGES_ROUND_DIGITS) * len(known)  # noqa: PLR2004  # apart
