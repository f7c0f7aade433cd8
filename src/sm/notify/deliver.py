"""Delivers one notification through apprise: a program of its own, which imports nothing of `sm`.

Reads JSON from its standard input; its exit code is the answer, since what apprise prints may hold the URL's secrets.
"""

from __future__ import annotations

import json
import sys

NOT_INSTALLED, UNKNOWN_URL, NOT_TAKEN = 3, 4, 5
PROBLEMS = {
    NOT_INSTALLED: "apprise is not installed: pip install 'agent-sm[notify]' into the environment of sm",
    UNKNOWN_URL: "apprise does not know this kind of URL, or something in it is missing",
    NOT_TAKEN: "the service did not take it",
}


def main() -> int:
    """Return 0 once the service has taken it, or why not."""
    given = json.load(sys.stdin)
    try:
        import apprise  # noqa: PLC0415  # an extra
    except ImportError:
        return NOT_INSTALLED
    service = apprise.Apprise()
    if not service.add(given["url"]):
        return UNKNOWN_URL
    taken = service.notify(title=given["title"], body=given["text"], body_format=apprise.NotifyFormat.TEXT)
    return 0 if taken else NOT_TAKEN


if __name__ == "__main__":
    sys.exit(main())
