"""The server's log: JSON lines in SM_HOME/server.log, and readable lines on stderr for `sm server run`.

Texts of users and agents are never in it (case A76): of a value that may hold one only the length is written, secrets
are blanked everywhere, and an exception's text is written only if it cannot quote its input.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import sys
import traceback
from collections.abc import Mapping
from enum import Enum
from logging.handlers import RotatingFileHandler
from pathlib import Path, PurePath
from typing import IO, Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from sm.core.errors import SmError
from sm.paths import PRIVATE_FILE, SmHome

MAX_BYTES = 5 << 20
MAX_OLD_FILES = 3
"""Older files that are kept."""

# fmt: off
BODY_KEYS = frozenset({
    "body", "content", "context", "description", "document", "draft", "input", "instructions",
    "lines", "message", "messages", "output", "payload", "prompt", "reply", "response",
    "screen", "stderr", "stdin", "stdout", "text", "title", "value",
})
# fmt: on
"""Keys, or last words of keys (`tool_input`), whose text may be a user's or an agent's: replaced by `<key>_length`."""

SECRETS = {
    "private-key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "anthropic": r"\bsk-ant-[\w-]{10,}",
    "openai": r"\bsk-[\w-]{20,}",
    "github": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
    "aws": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "slack": r"\bxox[a-z]-[\w-]{10,}",
    "google": r"\bAIza[\w-]{35}",
    "jwt": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+",
    "bearer": r"(?i:\bbearer )[\w.~+/-]{16,}=*",
}
_SECRET = re.compile("|".join(f"(?P<{name.replace('-', '_')}>{shape})" for name, shape in SECRETS.items()), re.DOTALL)

SAFE_EXCEPTIONS = (SmError, OSError, sqlite3.Error, TypeError, AttributeError, NameError, ImportError)
"""Exceptions whose text names parts of the program or the system. A ValueError or KeyError quotes its input."""
MAX_TEXT_CHARS = 500
MAX_FRAMES = 20
MAX_DEPTH = 5


def configure(home: SmHome, *, console: bool = False, level: int = logging.INFO) -> None:
    """Send structlog and the standard library's loggers to the file, and to stderr as well if `console`."""
    logging.raiseExceptions = False  # a full disk must not print records, bodies included, to stderr
    handlers: list[logging.Handler] = [_formatted(PrivateFile(home.server_log), structlog.processors.JSONRenderer())]
    if console:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))
        handlers.append(_formatted(logging.StreamHandler(sys.stderr), renderer))
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter):
            root.removeHandler(old)
            old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )


def _shared() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatted(handler: logging.Handler, renderer: Any) -> logging.Handler:  # noqa: ANN401  # structlog's own type
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_shared(), structlog.stdlib.ExtraAdder(), first_line],
            processors=[remove, describe_exception, without_bodies, renderer],
        )
    )
    return handler


class PrivateFile(RotatingFileHandler):
    """Rotated by size, each file readable by its owner alone. A write that fails is dropped: the server continues."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(
            path, maxBytes=max_bytes, backupCount=MAX_OLD_FILES, encoding="utf-8", errors="backslashreplace"
        )

    def _open(self) -> IO[str]:  # type: ignore[override]  # typeshed wants the concrete class
        def private(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)

        torn = _ends_mid_line(Path(self.baseFilename))
        stream = open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=private)  # noqa: SIM115  # closed by the base class
        stream.write("\n" if torn else "")  # else the next record is lost with the one that was cut
        return stream

    def handleError(self, record: logging.LogRecord) -> None: ...  # noqa: N802


def _ends_mid_line(path: Path) -> bool:
    """Whether the last line is incomplete, as after a power cut."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            return file.read(1) not in {b"", b"\n"}
    except FileNotFoundError:
        return False


def first_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Keep only the first line of other libraries' messages: asyncio's second one quotes the exception."""
    event["event"] = str(event.get("event", "")).partition("\n")[0]
    return event


def describe_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace `exc_info` by type, safe text and lines of code, instead of a traceback with all its values."""
    found = event.pop("exc_info", None)
    event.pop("exception", None)
    if found:
        error = (
            found if isinstance(found, BaseException) else (found if isinstance(found, tuple) else sys.exc_info())[1]
        )
        if isinstance(error, BaseException):
            event["error"] = described(error)
    return event


def described(error: BaseException, depth: int = 0) -> dict[str, object]:
    """Return an exception for the log. A class may declare its own text safe with `loggable = True`."""
    about: dict[str, object] = {"type": type(error).__name__}
    about["said"] = str(error) if _is_safe(error) else f"({len(str(error))} characters)"
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    about["at"] = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    if isinstance(error, BaseExceptionGroup):
        about["errors"] = [described(inner, depth + 1) for inner in error.exceptions[:MAX_DEPTH]]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < MAX_DEPTH:
        about["after"] = described(cause, depth + 1)
    return about


def _is_safe(error: BaseException) -> bool:
    return isinstance(error, SAFE_EXCEPTIONS) or bool(getattr(error, "loggable", False))


def without_bodies(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return _cleaned(event)


def _cleaned(values: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if str(key).rpartition("_")[2] in BODY_KEYS and not isinstance(value, _NUMBERS):
            kept[f"{key}_length"] = len(value) if hasattr(value, "__len__") else 1
        else:
            kept[str(key)] = _clean(value)
    return kept


_NUMBERS = (bool, int, float, type(None))


def _clean(value: object) -> object:
    if isinstance(value, _NUMBERS):
        return value
    if isinstance(value, Mapping):
        return _cleaned(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if isinstance(value, BaseException):
        return described(value)
    if not isinstance(value, str | PurePath | Enum):
        return f"<{type(value).__name__}>"  # its repr could quote a body
    text = redacted(str(value))
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}… ({len(text)} characters)"


def redacted(text: str) -> str:
    """Return the text with `[REDACTED:kind]` for each secret."""
    return _SECRET.sub(lambda match: f"[REDACTED:{(match.lastgroup or '').replace('_', '-')}]", text)
