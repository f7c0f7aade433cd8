"""What goes into the wheel beside the code: the documents without their pictures, and the README as its description.

The build backend calls it (`[tool.hatch]` in pyproject.toml). A description is shown without the files beside it, so
its pictures, each in a line of its own, are taken out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\([^)#:]+\)\n+", re.MULTILINE)


def description(readme: str) -> str:
    return PICTURE.sub("", readme)


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}


class Documents(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # they are read from the checkout
            return
        docs = Path(self.root) / "docs"
        for path in docs.rglob("*.md"):
            build_data["force_include"][str(path)] = f"sm/docs/{path.relative_to(docs).as_posix()}"
