"""Checks of tmux, the client and the shell."""

from __future__ import annotations

import locale
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings, run_program, short_list
from sm.files import read_regular
from sm.providers import codex as codex_client
from sm.providers.claude import TESTED_VERSIONS
from sm.providers.claude.launch import CONFIGURED, check_arguments
from sm.providers.environment import KEPT

MIN_TMUX = (3, 2)
"""The first with `attach -f no-output` and the per-window sizes that sm uses."""
MAX_FILE_BYTES = 1 << 20
"""Of a start-up file that is searched."""
VERSION = re.compile(r"(?<!\d)\d++(?:\.\d+)+")


def tmux(where: Surroundings) -> Finding:
    found = shutil.which("tmux", path=where.environ.get("PATH"))
    if found is None:
        return Finding(FAIL, "tmux is not on PATH", "install tmux 3.2 or newer with your package manager")
    answer = run_program([found, "-V"], where.environ)
    if isinstance(answer, Finding):
        return answer
    words = answer.output.strip()
    match = re.search(r"(?<!\d)(\d++)\.(\d+)", words)
    if match is None:
        return Finding(WARN, f"cannot read the version of tmux from {words!r}", "sm needs tmux 3.2 or newer")
    if (int(match[1]), int(match[2])) < MIN_TMUX:
        return Finding(FAIL, f"{words} is too old", "install tmux 3.2 or newer")
    return Finding(OK, words)


def client(where: Surroundings) -> Finding:
    found = shutil.which(where.client, path=where.environ.get("PATH"))
    if found is None:
        hint = "install Claude Code, or set claude.command in the configuration"
        return Finding(FAIL, f"the client {where.client!r} is not on PATH", hint)
    check_arguments(where.settings.claude.arguments if where.settings else (), CONFIGURED)
    return _versioned(where, found, TESTED_VERSIONS, "client")


def codex(where: Surroundings) -> Finding:
    """Only sessions of `--provider codex` need it."""
    command = where.settings.codex.command if where.settings else "codex"
    found = shutil.which(command, path=where.environ.get("PATH"))
    if found is None:
        return Finding(OK, f"{command} is not on PATH; only sessions of --provider codex need it")
    return _versioned(where, found, codex_client.TESTED_VERSIONS, "Codex")


def _versioned(where: Surroundings, found: str, tested: Sequence[str], name: str) -> Finding:
    answer = run_program([found, "--version"], own_environment(where.environ), seconds=20.0)
    if isinstance(answer, Finding):
        return answer
    match = VERSION.search(answer.output)
    if answer.code or match is None:
        return Finding(FAIL, f"{found} --version fails: {first_line(answer.errors or answer.output)}", "reinstall it")
    if match[0] not in tested:
        hint = f"tested: {', '.join(tested)}. Others may work; try sm demo"
        return Finding(WARN, f"{name} {match[0]} is not one that sm was tested with ({found})", hint)
    return Finding(OK, f"{match[0]} ({found})")


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in {"PATH", "HOME", "LANG", "TERM", "TMPDIR"}}


def inherited(where: Surroundings) -> Finding:
    """Check for variables of a client that disturb another client started in this shell."""
    inherited_names = (name for name in where.environ if name.startswith("CLAUDE"))
    names = sorted(name for name in inherited_names if not name.startswith(KEPT["CLAUDE"]))
    if not names:
        return Finding(OK, "nothing inherited from another client")
    hint = "sm starts sessions without them; a client started by hand in this shell may write no transcript"
    return Finding(WARN, f"this shell inherited {short_list(names)} from a client", hint)


def terminal(where: Surroundings) -> Finding:
    """Check for UTF-8 by the locale, as tmux and the client do."""
    named = where.environ.get("LC_ALL") or where.environ.get("LANG") or "C"
    if sys.flags.utf8_mode and "UTF" not in named.upper():  # Python itself then sets LC_CTYPE to C.UTF-8 (PEP 538)
        return Finding(WARN, f"the locale is {named}, without UTF-8", "set LANG to a UTF-8 locale, such as C.UTF-8")
    try:
        locale.setlocale(locale.LC_CTYPE, "")
        codeset = locale.nl_langinfo(locale.CODESET)
    except locale.Error as problem:
        return Finding(WARN, f"the locale cannot be used: {problem}", "set LANG to one that `locale -a` lists")
    if codeset.upper().replace("-", "") != "UTF8":
        return Finding(
            WARN, f"the terminal's character set is {codeset}", "set LANG to a UTF-8 locale, such as C.UTF-8"
        )
    return Finding(OK, "UTF-8")


def profile(where: Surroundings) -> Finding:
    """Check that no profile prints: its output would precede every hook's answer (case A21)."""
    shell = where.environ.get("SHELL") or "/bin/sh"
    sourcing = '. "$0"; printf "{}"'
    attempts = [[shell, "-c", "printf '{}'"]]
    attempts += [[shell, "-c", sourcing, str(rc)] for rc in start_files(shell, where.environ)]
    for command in attempts:
        answer = run_program(command, where.environ, seconds=5.0)
        if isinstance(answer, Finding):
            return Finding(
                WARN, f"the shell's start-up: {answer.message}", "make the profile faster for non-interactive shells"
            )
        words = first_line(answer.output.partition("{}")[0])
        if words:
            return _printing(words, where.environ, shell)
    return Finding(OK, f"{shell} prints nothing at its start")


def _printing(words: str, environ: Mapping[str, str], shell: str) -> Finding:
    cause = origin(words, environ) or f"the start-up files of {shell}"
    hint = "print only in interactive shells: case $- in *i*) … ;; esac. sm's own hooks need no shell, others do"
    return Finding(WARN, f"hook output begins with `{words}`, printed by {cause}", hint)


def start_files(shell: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the files that the client sources in its shells, although they are not interactive."""
    own = Path(environ.get("HOME", "/"))
    names = {"bash": [own / ".bashrc"], "zsh": [Path(environ.get("ZDOTDIR") or own) / ".zshrc"]}
    return [path for path in names.get(Path(shell).name, []) if path.is_file()]


def origin(words: str, environ: Mapping[str, str]) -> str | None:
    """Return the line of a start-up file that contains the words, as `FILE:LINE`."""
    own, zsh = Path(environ.get("HOME", "/")), Path(environ.get("ZDOTDIR") or environ.get("HOME", "/"))
    named = [Path(environ["BASH_ENV"])] if environ.get("BASH_ENV") else []
    candidates = [
        *named,
        own / ".bashrc",
        zsh / ".zshenv",
        zsh / ".zshrc",
        own / ".profile",
        own / ".config/fish/config.fish",
    ]
    for path in candidates:
        try:
            lines = read_regular(path, MAX_FILE_BYTES)[0].decode("utf-8", "replace").splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines, 1):
            if words in line and not line.lstrip().startswith("#"):
                return f"{path}:{number}"
    return str(named[0]) if named else None


def first_line(text: str) -> str:
    return next((line.strip()[:80] for line in text.splitlines() if line.strip()), "")
