"""What secrets look like. Hashes, UUIDs and words are none.

Each expression takes linear time, whatever the text, and is run only where one of its literals occurs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    literals: tuple[str, ...]
    """One of them is in every text with such a secret; in lower case if `folded`."""
    pattern: re.Pattern[str]
    """Its group `secret`, or else all of it, is replaced."""
    unbounded: re.Pattern[str]
    """The same without START and END, for a text whose lines were joined: what stood between them is gone."""
    folded: bool = False

    def occurs_in(self, text: str, folded: str) -> bool:
        return any(literal in (folded if self.folded else text) for literal in self.literals)

    @property
    def has_start(self) -> bool:
        return self.pattern.pattern.startswith(START)

    @property
    def has_end(self) -> bool:
        return self.pattern.pattern.endswith(END)


def _shape(name: str, literals: str, pattern: str, *, folded: bool = False) -> Shape:
    flags = re.ASCII | (re.IGNORECASE if folded else 0)
    unbounded = pattern.removeprefix(START).removesuffix(END)
    return Shape(name, tuple(literals.split("|")), re.compile(pattern, flags), re.compile(unbounded, flags), folded)


START = r"(?<![A-Za-z0-9_-])"
END = r"(?![A-Za-z0-9])"
NO_VALUE = r"(?!\$|<|\{|\(|\[|\.\.\.|\*\*\*|os\.|process\.|None\b|null\b|true\b|false\b|REDACTED)"
"""What stands for a value, as a variable or a placeholder, is none."""
SEPARATORS = r"[\s│⎿|>]"

SHAPES = (
    _shape("anthropic-key", "sk-ant-", START + r"sk-ant-[A-Za-z0-9_-]{16,}"),
    _shape("api-key", "sk-", START + r"sk-(?=[A-Za-z0-9_-]{0,200}[A-Z0-9])(?!ant-)[A-Za-z0-9_-]{20,}"),
    _shape("stripe-key", "k_live_|k_test_", START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", START + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _shape("github-token", "github_pat_", START + r"github_pat_[A-Za-z0-9_]{22,}"),
    _shape("gitlab-token", "glpat-", START + r"glpat-[A-Za-z0-9_-]{20,}"),
    _shape("aws-key", "AKIA|ASIA", START + r"A[KS]IA[A-Z0-9]{16}" + END),
    _shape("slack-token", "xox", START + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    _shape("slack-token", "xapp-", START + r"xapp-[A-Za-z0-9-]{20,}"),
    _shape("google-key", "AIza", START + r"AIza[A-Za-z0-9_-]{35}" + END),
    _shape("google-token", "ya29.", START + r"ya29\.[A-Za-z0-9_-]{20,}"),
    _shape("npm-token", "npm_", START + r"npm_[A-Za-z0-9]{36}" + END),
    _shape("pypi-token", "pypi-", START + r"pypi-[A-Za-z0-9_-]{50,}"),
    _shape("huggingface-token", "hf_", START + r"hf_[A-Za-z0-9]{30,}"),
    _shape("jwt", "eyJ", START + r"eyJ[A-Za-z0-9_-]{8,500}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,}"),
    _shape(
        "private-key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:(?:\\n|{SEPARATORS})*(?:[A-Za-z0-9+/=]{{20,}}|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{{1,200}}))*"
        rf"(?:(?:\\n|{SEPARATORS})*[A-Za-z0-9+/=]{{1,19}}(?=(?:\\n|{SEPARATORS})*-----END))?"
        rf"(?:(?:\\n|{SEPARATORS})*-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _shape("authorization", "bearer", r"\bbearer\s+(?P<secret>(?=[^\s\"']{0,200}\d)[\w.~+/=-]{16,})", folded=True),
    _shape(
        "authorization",
        "authorization",
        r"\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+(?P<secret>[\w+/=-]{8,})",
        folded=True,
    ),
    _shape("password", "://", r"://[^\s/:@\"']{0,200}:" + NO_VALUE + r"(?P<secret>[^\s/@\"']{1,200})@"),
    _shape(
        "password",
        "password=|passwd=|pwd=|token=|secret=|key=",
        r"[?&;](?:password|passwd|pwd|token|access_token|auth_token|secret|client_secret|api_?key|key)="
        + NO_VALUE
        + r"(?P<secret>[^\s&#\"'`<>]{4,})",
        folded=True,
    ),
    _shape(
        "assigned",
        "TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY",
        r"\b[A-Z0-9_]{0,80}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[\"']?\s?[=:]\s?[\"']?"
        + NO_VALUE
        + r"(?P<secret>[^\s\"'`,;(){}<>]{8,})",
    ),
    _shape(
        "aws-secret",
        "secret_access_key",
        r"secret_access_key[\"']?\s*[=:]\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})",
        folded=True,
    ),
    _shape(
        "assigned",
        "password|passwd|secret|api_key|api-key|apikey|token",
        r"[\"']?\b\w{0,40}(?:password|passwd|secret|api[_-]?key|token)[\"']?\s?[=:]\s?(?P<quote>[\"'])"
        + NO_VALUE
        + r"(?P<secret>[^\s\"']{8,200})(?P=quote)",
        folded=True,
    ),
)


def secret_of(match: re.Match[str]) -> tuple[int, int]:
    return match.span("secret" if "secret" in match.re.groupindex else 0)
