"""The answers that browsers show: HTML with headers that let it load nothing but this server's own files."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse

CSP = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self' data:; "
    "connect-src 'self'; "
    "font-src 'self'; "
    "manifest-src 'self'; "
    "worker-src 'self'; "
    "form-action 'self'; "
    "base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def html_answer(content: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return a page, or a part of one; `headers` are added, or replace those that every page has."""
    return HTMLResponse(content, status, {**HEADERS, **(headers or {})})


def csrf_token(request: Request) -> str:
    """Return what the page's JavaScript sends as X-SM-CSRF with all that is no GET; empty without a device."""
    token = request.scope.get("sm.csrf", "")
    assert isinstance(token, str)
    return token
