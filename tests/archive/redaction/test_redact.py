"""Case A77: what is a secret and what is none, also where a terminal has wrapped it."""

import time

import pytest

from sm.archive.redaction.redact import LineRedactor, OwnTokens, redacted, without_secrets
from sm.core.ids import token_hash

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
GITHUB = f"ghp_{LETTERS}"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"
KEY = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF8PbnGy"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n{KEY}\nab=\n-----END RSA PRIVATE KEY-----"
TOKEN = "Zk3_vT0xQm-1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1u"

SECRETS = {
    "anthropic": ("key sk-ant-api03-TESTTESTTESTTESTTESTTEST.", "key [REDACTED:anthropic-key]."),
    "openai": (f"sk-proj-{LETTERS}1", "[REDACTED:api-key]"),
    "stripe": (f"sk_live_{LETTERS}", "[REDACTED:stripe-key]"),
    "github": (f"echo {GITHUB}; ls", "echo [REDACTED:github-token]; ls"),
    "github oauth": (f"gho_{LETTERS}", "[REDACTED:github-token]"),
    "github fine-grained": (f"github_pat_11{LETTERS}", "[REDACTED:github-token]"),
    "gitlab": ("glpat-abcdefghij0123456789", "[REDACTED:gitlab-token]"),
    "aws": ("AKIAABCDEFGHIJKLMNOP", "[REDACTED:aws-key]"),
    "aws secret": (f"aws_secret_access_key = {'aB3/' * 10}", "aws_secret_access_key = [REDACTED:aws-secret]"),
    "slack": ("xoxb-123456789012-abcDEF", "[REDACTED:slack-token]"),
    "google": (f"AIza{LETTERS[:35]}", "[REDACTED:google-key]"),
    "npm": (f"npm_{LETTERS}", "[REDACTED:npm-token]"),
    "jwt": (f"got {JWT}", "got [REDACTED:jwt]"),
    "pem": (f"before\n{PEM}\nafter", "before\n[REDACTED:private-key]\nafter"),
    "pem without its end": (f"{PEM[:100]}\n\nafter", "[REDACTED:private-key]\n\nafter"),
    "pem without its beginning": (f"  {KEY}\n  ab=\n  {PEM[-29:]}\nafter", "[REDACTED:private-key]\nafter"),
    "pem in a tool's output": (PEM.replace("\n", "\n     "), "[REDACTED:private-key]"),
    "pem in json": (PEM.replace("\n", "\\n"), "[REDACTED:private-key]"),
    "bearer": ("Authorization: Bearer abc.DEF-1234567890", "Authorization: Bearer [REDACTED:authorization]"),
    "basic": ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [REDACTED:authorization]"),
    "password in a url": ("git clone https://me:pa55w0rd@host/x", "git clone https://me:[REDACTED:password]@host/x"),
    "token in a url": ("GET /x?a=1&access_token=abcd1234&b=2", "GET /x?a=1&access_token=[REDACTED:password]&b=2"),
    "in the environment": (f"SM_SESSION_TOKEN={TOKEN}", "SM_SESSION_TOKEN=[REDACTED:assigned]"),
    "in a file": ("DB_PASSWORD: correcthorse", "DB_PASSWORD: [REDACTED:assigned]"),
    "in json": ('{"password": "hunter2hunter2"}', '{"password": "[REDACTED:assigned]"}'),
}
WORDS = {
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8 fix",
    "sha-256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid": "c74cc080-94b9-4841-b82f-a62cfb8efdc0",
    "integrity": "sha512-z7x/9fQ0lqoN5bW+x1Yf9bqvN0uPZ8+X1c1y2hJm5W0TqQ==",
    "image": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "count": "MAX_TOKENS: 10000000",
    "variable": "export TOKEN=$OTHER_TOKEN",
    "placeholder": "API_KEY=<your key here>",
    "code": 'token = os.environ["SM_SESSION_TOKEN"]',
    "words": "the task-runner-with-a-very-long-name2 asks for a password: see below",
    "public key": "-----BEGIN PUBLIC KEY-----\nMFkwEwYH\n-----END PUBLIC KEY-----",
    "port": "http://127.0.0.1:8080/path",
    "short": "ghp_short sk-12 AKIA123",
    "prose": "a bearer of good news; Bearer tokens are explained below",
}


@pytest.mark.parametrize(("text", "shown"), SECRETS.values(), ids=SECRETS.keys())
def test_a77_a_secret_is_replaced_by_what_it_was(text, shown):
    assert redacted(text) == shown


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS.keys())
def test_a77_hashes_and_words_are_no_secrets(text):
    assert redacted(text) == text


@pytest.mark.parametrize("margin", ["", "  ", "     ", " │ "])
@pytest.mark.parametrize("cut", range(1, len(GITHUB)))
def test_a77_a_secret_that_was_wrapped_anywhere_is_found(cut, margin):
    shown = redacted(f"  ⎿  {GITHUB[:cut]}\n{margin}{GITHUB[cut:]} and more")
    assert shown == f"  ⎿  [REDACTED:github-token]\n{margin}[REDACTED:github-token] and more"


@pytest.mark.parametrize("secret", ["AKIAABCDEFGHIJKLMNOP", "sk-ant-api03-TESTTESTTESTTESTTESTTEST", JWT, TOKEN])
def test_a77_no_part_of_a_wrapped_secret_is_left(secret):
    known = OwnTokens(token_hash(TOKEN), dict)
    for cut in range(1, len(secret) - 1):
        line = f"{'x ' * 40}{secret[:cut]}"
        assert "\n[REDACTED" in redacted(f"{line}\n{secret[cut:]} end", known), cut


@pytest.mark.parametrize("above", ["one", "x/", "line=", ""])
@pytest.mark.parametrize("below", ["three", "-- four", "5", ""])
@pytest.mark.parametrize("secret", [GITHUB, "AKIAABCDEFGHIJKLMNOP", TOKEN])
def test_a77_what_stands_on_the_lines_around_a_secret_does_not_hide_it(secret, above, below):
    known = OwnTokens(token_hash(TOKEN), dict)
    for cut in range(1, len(secret)):
        shown = redacted(f"{above}\n{secret[:cut]}\n{secret[cut:]}\n{below}", known)
        assert [line.startswith("[REDACTED:") for line in shown.split("\n")] == [False, True, True, False], shown


@pytest.mark.parametrize("following", ["and so on", "1", "42 files", "Done."])
def test_what_follows_a_whole_secret_on_the_next_line_stays(following):
    assert redacted(f"{GITHUB}\n     {following}") == f"[REDACTED:github-token]\n     {following}"


def test_our_own_tokens_are_known_by_their_hash_alone():
    assert redacted(f"it is {TOKEN}.") == f"it is {TOKEN}."
    known = OwnTokens("", lambda: {token_hash(TOKEN): "a"})
    assert redacted(f"it is {TOKEN}.", known) == "it is [REDACTED:sm-token]."
    assert redacted(f"it is {TOKEN}x.", known) == f"it is {TOKEN}x."


def test_lines_stay_lines_where_they_come_one_after_the_other():
    lines = [f"line {number} {GITHUB if number % 7 == 0 else 'word'}" for number in range(1_000)]
    redactor = LineRedactor()
    shown = [line for start in range(0, 1_000, 9) for line in redactor.take(lines[start : start + 9])]
    assert [*shown, *redactor.end()] == redacted("\n".join(lines)).split("\n")


def test_a_long_text_is_redacted_as_a_whole_one():
    text = "\n".join([*["word"] * 500, "", PEM, "", *[f"x {GITHUB[:20]}", f"  {GITHUB[20:]}"] * 300])
    shown = without_secrets(text)
    assert KEY not in shown
    assert GITHUB[:20] not in shown
    assert GITHUB[20:] not in shown


EVIL = [
    *((filler, "", "") for filler in ("a", "TOKEN_", "sk-", "://", "://a:", "eyJ", "\n", "a\n", "bearer ", "ghp_aa\n")),
    ('"token', "", ""), ("A_", "", "KEY"), ("A ", "-----BEGIN PRIVATE KEY-----", ""),
    ("-----END PRIVATE KEY-----\n", "", ""),
]  # fmt: skip
"""What is repeated, what comes before it and what after it."""


def spent(text):
    began = time.process_time()
    redacted(text)
    return time.process_time() - began


@pytest.mark.parametrize("parts", EVIL, ids=lambda parts: "".join(parts)[:12].encode().hex())
def test_the_time_grows_with_the_length_alone(parts):
    """Four times the text takes some four times as long, and could take 16 times; a busy machine has five tries."""
    filler, before, after = parts
    short, long = [before + filler * (size // len(filler)) + after for size in (15_000, 60_000)]
    assert any(spent(long) < 0.02 + 9 * spent(short) for _ in range(5))
