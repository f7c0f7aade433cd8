"""C25: secrets as people and programs write them are redacted wherever they stand, and what looks like one stays."""

import pytest

from sm.archive.redaction.redact import redacted, without_secrets
from tests.archive.redaction.secret_table import LOOKALIKES, SECRETS

PLACES = {
    "a user's words": "User: {}",
    "an agent's words": "I have looked at it. {}",
    "a command": "  ⎿  {}",
    "an error": "Error: command failed:\n{}\nexit code 1",
    "a todo": "- [ ] {}",
    "json": '{{"text": "x", "note": 1}}\n{}\n',
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_redacted_wherever_it_stands(text, secret, place):
    for shown in (redacted(place.format(text)), without_secrets(place.format(text))):
        assert secret not in shown
        assert "[REDACTED:" in shown


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("text", LOOKALIKES.values(), ids=LOOKALIKES.keys())
def test_what_looks_like_one_stays(text, place):
    assert redacted(place.format(text)) == place.format(text)


def test_the_tables_are_as_long_as_they_should_be():
    assert len(SECRETS) >= 45
    assert len(LOOKALIKES) >= 45
