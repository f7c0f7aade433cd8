"""Where a Codex client compacts, as its arguments and the user's configuration say: `model_auto_compact_token_limit`.

An argument counts before the file, and the last of several. What the client makes of a number that its model cannot
have is in its rollout (`transcript.py`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.model.capacity import ClientLimits
from sm.files import read_regular
from sm.providers.codex.options import CONFIG

KEY = "model_auto_compact_token_limit"
CONFIG_FILE = "config.toml"
MAX_BYTES = 1 << 20
MAX_DIGITS = 12


def asked(arguments: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return what the arguments of a launch say."""
    found = ""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        given = argument.partition("=")[2] if argument.startswith("--config=") else argument
        name, _, value = given.partition("=")
        if name.strip() == KEY and (before in CONFIG or given is not argument):
            found = value.strip().replace("_", "")[:MAX_DIGITS]
    return ((KEY, found),) if found else ()


@dataclass(slots=True)
class ConfigReader:
    """Reads the configuration of living sessions again and again, and each file only once it has changed."""

    known: dict[Path, tuple[tuple[int, int], int | None]] = field(default_factory=dict)

    def of(self, config: Path, said: tuple[tuple[str, str], ...]) -> ClientLimits:
        given = dict(said).get(KEY, "")
        return ClientLimits(auto_compact=int(given) if given.isdecimal() else self._configured(config / CONFIG_FILE))

    def _configured(self, path: Path) -> int | None:
        try:
            stat = path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if path not in self.known or self.known[path][0] != stamp:
                value = tomllib.loads(read_regular(path, MAX_BYTES)[0].decode()).get(KEY)
                self.known[path] = stamp, value if type(value) is int and value > 0 else None
            return self.known[path][1]
        except (OSError, ValueError):  # the client itself says what is wrong with its configuration
            return None
