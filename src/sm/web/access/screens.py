"""The two pages for whoever is not let in yet: the login, and a refusal."""

from __future__ import annotations

import html

from starlette.responses import HTMLResponse

from sm.core.errors import Refused
from sm.web.answers import html_answer

FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title} · sm</title>
<link rel="stylesheet" href="/web/static/access.css">
</head>
<body>
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""
FORM = """<form method="post" action="/login">
<input type="hidden" name="code" value="{code}">
<p>This link lets one browser in, once. Use it in the browser that is to stay logged in.</p>
<button type="submit" autofocus>Log in</button>
</form>"""
ORIGIN_SHOWN = {"Referrer-Policy": "same-origin"}
"""With `no-referrer` a browser sends the Origin "null" with a form, and the login could not tell whose it is."""


def page(title: str, content: str, status: int = 200, headers: dict[str, str] | None = None) -> HTMLResponse:
    return html_answer(FRAME.format(title=html.escape(title), content=content), status, headers)


def login_page(code: str) -> HTMLResponse:
    """Return the page with the one button: opening it, as a preview of the link does, uses nothing up."""
    return page("Log in", FORM.format(code=html.escape(code)), headers=ORIGIN_SHOWN)


def refused_page(refused: Refused, status: int) -> HTMLResponse:
    if refused.code == "unauthorized":
        words = "This browser is not logged in. Run <kbd>sm web</kbd> on the machine where sm runs, and open its link."
        return page("Not logged in", f"<p>{words}</p>", status)
    hint = f"<p>{html.escape(refused.hint)}</p>" if refused.hint else ""
    again = '<p><a href="/">Open sm</a></p>'
    return page("Refused", f"<p>{html.escape(refused.message)}</p>{hint}{again}", status)
