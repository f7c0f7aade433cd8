"""The forms of secrets. Hashes, UUIDs and words are none.

Each expression takes linear time, whatever the text, and runs only where one of its literals occurs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sm.archive.redaction.values import is_value


@dataclass(frozen=True, slots=True)
class SecretPattern:
    name: str
    literals: tuple[str, ...]
    """One of them is in every text with such a secret; in lower case if `folded`, which ignores case."""
    pattern: re.Pattern[str]
    """Its group `secret`, or else all of it, is replaced."""
    unbounded: re.Pattern[str]
    """The same without START and END, for a text whose lines were joined: what separated them is gone."""
    folded: bool = False
    accepts: Callable[[str], bool] | None = None
    """Whether the value is a secret, where the expression alone does not decide."""

    @property
    def has_start(self) -> bool:
        return self.pattern.pattern.startswith(START)

    @property
    def has_end(self) -> bool:
        return self.pattern.pattern.endswith(END)


def secret_pattern(
    name: str, literals: str, pattern: str, *, folded: bool | None = None, accepts: Callable[[str], bool] | None = None
) -> SecretPattern:
    folded = accepts is not None if folded is None else folded
    flags = re.ASCII | (re.IGNORECASE if folded else 0)
    unbounded = re.compile(pattern.removeprefix(START).removesuffix(END), flags)
    return SecretPattern(name, tuple(literals.split("|")), re.compile(pattern, flags), unbounded, folded, accepts)


START = r"(?<![A-Za-z0-9_-])"
END = r"(?![A-Za-z0-9])"
NO_VALUE = r"(?!\$|<|\{|\(|\[|\.\.\.|\*\*\*|os\.|process\.|None\b|null\b|true\b|false\b|REDACTED)"
"""A variable or a placeholder is no value."""
SEPARATORS = r"[\s│⎿|>]"

GENERAL_PATTERNS = (
    secret_pattern("anthropic-key", "sk-ant-", START + r"sk-ant-[A-Za-z0-9_-]{16,}"),
    secret_pattern("api-key", "sk-", START + r"sk-(?=[A-Za-z0-9_-]{0,200}[A-Z0-9])(?!ant-)[A-Za-z0-9_-]{20,}"),
    secret_pattern("stripe-key", "k_live_|k_test_", START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    secret_pattern("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", START + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    secret_pattern("github-token", "github_pat_", START + r"github_pat_[A-Za-z0-9_]{22,}"),
    secret_pattern("gitlab-token", "glpat-", START + r"glpat-[A-Za-z0-9_-]{20,}"),
    secret_pattern("aws-key", "AKIA|ASIA", START + r"A[KS]IA[A-Z0-9]{16}" + END),
    secret_pattern("slack-token", "xox", START + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    secret_pattern("slack-token", "xapp-", START + r"xapp-[A-Za-z0-9-]{20,}"),
    secret_pattern("google-key", "AIza", START + r"AIza[A-Za-z0-9_-]{35}" + END),
    secret_pattern("google-token", "ya29.", START + r"ya29\.[A-Za-z0-9_-]{20,}"),
    secret_pattern("npm-token", "npm_", START + r"npm_[A-Za-z0-9]{36}" + END),
    secret_pattern("pypi-token", "pypi-", START + r"pypi-[A-Za-z0-9_-]{50,}"),
    secret_pattern("huggingface-token", "hf_", START + r"hf_[A-Za-z0-9]{30,}"),
    secret_pattern("jwt", "eyJ", START + r"eyJ[A-Za-z0-9_-]{8,500}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,}"),
    secret_pattern(
        "private-key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:(?:\\n|{SEPARATORS})*(?:[A-Za-z0-9+/=]{{20,}}|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{{1,200}}))*"
        rf"(?:(?:\\n|{SEPARATORS})*[A-Za-z0-9+/=]{{1,19}}(?=(?:\\n|{SEPARATORS})*-----END))?"
        rf"(?:(?:\\n|{SEPARATORS})*-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    secret_pattern(
        "authorization", "bearer", r"\bbearer\s+(?P<secret>(?=[^\s\"']{0,200}\d)[\w.~+/=-]{16,})", folded=True
    ),
    secret_pattern(
        "authorization",
        "authorization",
        r"\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+(?P<secret>[\w+/=-]{8,})",
        folded=True,
    ),
    secret_pattern("password", "://", r"://[^\s/:@\"']{0,200}:" + NO_VALUE + r"(?P<secret>[^\s/@\"']{1,200})@"),
    secret_pattern(
        "password",
        "password=|passwd=|pwd=|token=|secret=|key=",
        r"[?&;](?:password|passwd|pwd|token|access_token|auth_token|secret|client_secret|api_?key|key)="
        + NO_VALUE
        + r"(?P<secret>[^\s&#\"'`<>]{4,})",
        folded=True,
    ),
    secret_pattern(
        "assigned",
        "TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY",
        r"\b[A-Z0-9_]{0,80}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[\"']?\s?[=:]\s?[\"']?"
        + NO_VALUE
        + r"(?P<secret>[^\s\"'`,;(){}<>]{8,})",
        folded=False,
        accepts=is_value,
    ),
    secret_pattern(
        "aws-secret",
        "secret_access_key",
        r"secret_access_key[\"']?\s*[=:]\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})",
        folded=True,
    ),
    secret_pattern(
        "assigned",
        "password|passwd|secret|api_key|api-key|apikey|token",
        r"[\"']?\b\w{0,40}(?:password|passwd|secret|api[_-]?key|token)[\"']?\s?[=:]\s?(?P<quote>[\"'])"
        + NO_VALUE
        + r"(?P<secret>[^\s\"']{8,200})(?P=quote)",
        folded=True,
        accepts=is_value,
    ),
)


@dataclass(frozen=True, slots=True)
class PatternIndex:
    """Patterns by their literals: finds fast which of them a text may hold, mostly none."""

    patterns: tuple[SecretPattern, ...]
    exact: tuple[tuple[str, int], ...]
    """Each literal with the index of its pattern."""
    folded: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, *patterns: SecretPattern) -> PatternIndex:
        literals = [
            (literal, number, pattern.folded) for number, pattern in enumerate(patterns) for literal in pattern.literals
        ]
        exact = tuple((literal, number) for literal, number, folded in literals if not folded)
        return cls(patterns, exact, tuple((literal, number) for literal, number, folded in literals if folded))

    def occurring(self, text: str) -> list[SecretPattern]:
        lower = text.lower()
        numbers = {number for literal, number in self.exact if literal in text}
        numbers |= {number for literal, number in self.folded if literal in lower}
        return [self.patterns[number] for number in sorted(numbers)]


def secret_of(match: re.Match[str]) -> tuple[int, int]:
    return match.span("secret" if "secret" in match.re.groupindex else 0)
