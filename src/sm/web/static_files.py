"""The page's own files, `/web/static/…`: a table that is read once, so that no path of a request reaches a disk."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from sm.core.errors import error

DIRECTORY = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""By suffix; a file of another kind is not served."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Service-Worker-Allowed": "/",
}
"""A worker takes its policy from its own file, and is to serve the pages above it."""


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return content and type by the path below the directory."""
    return {
        path.relative_to(DIRECTORY).as_posix(): (path.read_bytes(), TYPES[path.suffix])
        for path in sorted(DIRECTORY.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }


async def static_file(request: Request) -> Response:
    """A file of the page: script, style, font or picture."""
    found = files().get(request.path_params["path"])
    if found is None:
        raise error("no_route", "No such file")
    content, kind = found
    return Response(content, headers={**HEADERS, "Content-Type": kind})
