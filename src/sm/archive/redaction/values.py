"""Whether the value after a word as `password` is one: a type, a placeholder, a variable or a plain word is none."""

from __future__ import annotations

import re
from itertools import pairwise

PLACEHOLDER = re.compile(
    r"[$<%{(\[*]|\.{2,}|x{3,}\b|(?<![*•.…x-])[*•.…x-]++$|(?:os|process|self|cls|this|config|cfg|settings|args|options|opts|env|secrets|"
    r"var|vars|local|data|params|request|req|ctx|input|module|inputs|github|values|getpass|keyring)\b[.\[(]|redacted|"
    r"your|my[_-]|example|change[_-]?me|replace|placeholder|dummy|insert|todo|tbd|enter|fake|sample|foo\b|bar\b|baz\b|some[_-]",
    re.IGNORECASE,
)
"""The beginning of a placeholder, or all of it."""
NOT_PASSWORDS = frozenset(
    word
    for line in (
        "str string text int integer float number bool boolean bytes byte none null nil undefined true false any",
        "object secretstr optional required hidden masked empty invalid incorrect wrong missing field input",
        "prompt value values hash hashed encrypted plaintext plain default unset yes no on off password passwd",
        "passwort kennwort secret token key username user email login basic bearer refresh access id csrf jwt",
        "oauth oauth2 saml public private varchar char uuid date datetime list dict tuple type name label expired",
        "revoked valid protected disabled enabled changed reset rotated stored generated unknown redacted weak",
        "strong short long same different correct accepted rejected unchanged manager policy auth env vault file",
        "stdin pass argon2 argon2id bcrypt scrypt sha1 sha256 sha512 md5 pbkdf2 hmac base64 utf8 utf-8 hex aes256",
        "rs256 hs256 es256 ed25519 see needed needs must should will can may not never",
    )
    for word in line.split()
)
CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.\w+|\(\)|\[\w*\])+$|(?:[Cc]trl|[Cc]md|[Aa]lt|[Ss]hift|[Mm]eta|[Ss]uper)[+-]|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|/|\./|~/|[A-Za-z]:\\\\|https?:|--|@"
)
"""A name in code, a constant, a path."""
SPECIAL = re.compile(r"[!@#$%^&*+?~=]")
WORDS = re.compile(r"[a-z]++(?:[_-][a-z]++)*+\d?|(?:[A-Z]?[a-z]++)++|[A-Z]++|[A-Z]?[a-z]++(?:-[a-z]++)++", re.ASCII)
"""A word, or several put together as names are."""
UNIT = re.compile(r"[\d.,:_-]+(?:[a-z]{1,7})?$|0x[0-9a-f]{1,16}$|v?\d+(?:\.\d+)+\S*$", re.IGNORECASE)
"""A number, a time, a size, a version."""
ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$|[0-9a-f]{40}$|[0-9a-f]{64}$|sha\d+[:-]", re.IGNORECASE)
TRAILING_MARKS = ".,:;!?)\"'`”“’"
MIN_PASSWORD_CHARS = 6
MIN_KEY_CHARS = 12


def is_value(value: str) -> bool:
    """Whether it may be a password at all."""
    text = value.strip(TRAILING_MARKS)
    if len(text) < 3 or text.lower() in NOT_PASSWORDS:  # noqa: PLR2004  # "ab" tells nothing
        return False
    return not (PLACEHOLDER.match(text) or CODE.match(text) or text.endswith(("()", "...", "…")))


def is_strong(value: str) -> bool:
    """Whether it is no word: letters with digits or marks."""
    text = value.strip(".,:;)\"'`”“’")
    if not is_value(text) or UNIT.match(text) or "/" in text or "::" in text:
        return False
    letters = any(c.isalpha() for c in text)
    return letters and (any(c.isdigit() for c in text) or bool(SPECIAL.search(text))) and len(text) >= 5  # noqa: PLR2004


def is_quoted_password(value: str) -> bool:
    return is_value(value) and not UNIT.fullmatch(value) and (len(value) >= MIN_PASSWORD_CHARS or is_strong(value))


def is_random(value: str) -> bool:
    """Whether a program generated it: long, of letters and digits, and no name."""
    text = value.strip(TRAILING_MARKS)
    if len(text) < 8 or not is_value(text) or UNIT.match(text) or WORDS.fullmatch(text) or ":" in text:  # noqa: PLR2004
        return False
    if not any(c.isdigit() for c in text):
        return len(text) >= MIN_KEY_CHARS and bool(SPECIAL.search(text) or _mixed(text))
    return any(c.isalpha() for c in text) and "/" not in text[:1]


def _mixed(text: str) -> bool:
    """Capitals inside, and more of them than camelCase has."""
    changes = sum(one.islower() != other.islower() for one, other in pairwise(text))
    return changes * 3 >= len(text)


def is_keyed(value: str) -> bool:
    """Return whether it may be a secret after a word as `token`: there hashes are values too."""
    return is_random(value) and not PLACEHOLDER.search(value[:40])


def is_env_key(value: str) -> bool:
    return is_keyed(value) and not ID.match(value) and len(value) >= MIN_KEY_CHARS and "." not in value


NOT_LOGIN = re.compile(r"\d{1,6}$|.*/|.*\.\w{1,4}$")
"""After a name and a colon: a number, a path, a file."""


def is_login(value: str) -> bool:
    return is_value(value) and not NOT_LOGIN.match(value)
