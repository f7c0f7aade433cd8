"""Markdown of an agent as HTML: no raw HTML, no image that a browser would load, links to the web alone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

MAX_CHARS = 60_000
"""Characters of one text that are rendered as Markdown; a longer one is shown as it is."""
BELOW = 2
"""Levels by which a heading is lowered: the page's own are above it."""
LINK_STARTS = ("http://", "https://", "mailto:")


def _link_is_safe(url: str) -> bool:
    """A relative link would be one of this server: an agent's text could call a page of it."""
    return url.strip().lower().startswith(LINK_STARTS)


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # a server's start has no use for it

    found = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("table")
    found.disable(["image", "html_block", "html_inline"])
    found.validateLink = _link_is_safe  # type: ignore[method-assign]  # the way that its documentation gives
    return found


def rendered(text: str) -> Markup:
    """Return safe HTML: each `<` of the text is escaped, and links open apart, without a word of where they were."""
    from markupsafe import Markup  # noqa: PLC0415  # as above

    if len(text) > MAX_CHARS:
        return Markup("<pre>{}</pre>").format(text)
    reader = _reader()
    tokens = reader.parse(text)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noopener noreferrer nofollow")
                child.attrSet("target", "_blank")
            child.attrs.pop("style", None)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + BELOW)}"
        token.attrs.pop("style", None)  # of a table's cells, which the page's rules refuse
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704  # escaped by the renderer
