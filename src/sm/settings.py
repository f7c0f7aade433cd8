"""What the user can set, and where each value comes from.

Defaults < the user's config.toml < the project's .sm/config.toml < environment < flags. The structs below are the whole
list: the string under a field is its reference text, its annotation says what is accepted, its place in `Settings`
gives the environment variable. A project's file comes with the project, so it may set only keys that run nothing and
redirect nothing, unless the user has trusted exactly this content of it.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from sm.core.errors import Refused, SmError
from sm.core.model.budget import Budget, Budgets
from sm.core.model.capacity import CRITICAL, LOWERED, SMALLEST_WINDOW, WARNING, Threshold
from sm.core.model.context import Policy
from sm.core.model.cost import Price
from sm.core.model.notify_rules import NotificationKind, NotifyRules
from sm.files import read_regular
from sm.paths import absolute, atomic_write, locate_home, user_directory

PROJECT_FILE = Path(".sm/config.toml")
DEFAULT = "default"
FLAG = "flag"
MAX_FILE_BYTES = 1 << 20
MIN_SIMILARITY = 0.5
"""A name that is as similar to a key counts as a misspelling of it."""
NO_FILE = Path(os.devnull)
"""The value of SM_CONFIG for no configuration."""


class ConfigError(SmError):
    """A configuration that cannot be used; says which file, which key, what is accepted."""


def _config_error(message: str, hint: str, code: str = "bad_config") -> ConfigError:
    return ConfigError(Refused(code, message, hint))


# --- what is accepted -------------------------------------------------------------------------------------------------


def _threshold(value: object) -> Threshold:
    """Parse a share, a number of tokens, or one of each in either order."""
    if isinstance(value, str) and "," in value:
        one, _, other = value.partition(",")
        parts = (_threshold(one), _threshold(other))
        share = next((part.share for part in parts if part.share is not None), None)
        tokens = next((part.tokens for part in parts if part.tokens is not None), None)
        if share is None or tokens is None:
            raise ValueError
        return Threshold(share, tokens)
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*", value)):
        percent = float(match[1])
        if 1 <= percent <= 100:  # noqa: PLR2004
            return Threshold(share=percent / 100)
    number = _plain_number(value)
    if isinstance(number, int) and not isinstance(number, bool) and 100 < number <= MAX_TOKENS:  # noqa: PLR2004  # 80 is a forgotten %
        return Threshold(tokens=number)
    raise ValueError


def _auto_threshold(value: object) -> Threshold:
    percent = _plain_number(value.strip().removesuffix("%").rstrip() if isinstance(value, str) else value)
    if isinstance(percent, int | float) and not isinstance(percent, bool) and 50 <= percent <= 95:  # noqa: PLR2004
        return Threshold(share=percent / 100)
    raise ValueError


_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _size(value: object) -> object:
    match = re.fullmatch(r"\s*([\d_]+)\s*([KMGT]iB)?\s*", value) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2] or ""] if match else value


def _channels(value: object) -> object:
    if not isinstance(value, dict):
        return value
    for path, name in value.items():
        if not path.startswith(("/", "~/")) or not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError
    return {os.path.normpath(path): name for path, name in value.items()}


def _prices(value: object) -> object:
    entries = shlex.split(value) if isinstance(value, str) else value
    for entry in entries if isinstance(entries, list) else ():
        _price(entry)
    return entries


CACHE_FACTORS = (1.25, 2.0, 0.1)
"""What writing to the cache for five minutes and for an hour, and reading from it, costs by default: parts of input."""


def _price(entry: object) -> tuple[str, Price]:
    """Parse a model's name and two or five numbers."""
    name, *texts = entry.split() if isinstance(entry, str) else [""]
    numbers = [float(text) for text in texts if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", text)]
    if not name or len(numbers) != len(texts) or len(numbers) not in {2, 5}:
        raise ValueError
    spent, output, *cache = numbers
    return name, Price(spent, output, *(cache or [spent * factor for factor in CACHE_FACTORS]))


def _budget(value: object) -> str:
    """Check an amount of dollars or tokens, or "none"; return it as text."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if text != "none" and not re.fullmatch(r"\$(?=.*[1-9])\d{1,9}(?:\.\d{1,2})?|[1-9]\d{3,14}", text):
        raise ValueError
    return text


def _budget_of(text: str) -> Budget | None:
    return None if text == "none" else Budget(float(text.removeprefix("$")), text.startswith("$"))


HOST = re.compile(
    r"(?=[^:]{1,253}(?::|$))[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*(?::\d{1,5})?"
)


def _hosts(value: object) -> object:
    """Parse names that a browser can send as Host; in lower case, as they are compared."""
    entries = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ValueError
    hosts = [entry.lower() for entry in entries]
    if not all(HOST.fullmatch(host) for host in hosts):
        raise ValueError
    return hosts


MAX_TOKENS = 100_000_000
Flag = Annotated[bool, msgspec.Meta(description="true or false")]
Text = Annotated[str, msgspec.Meta(max_length=8_000, description="text of up to 8,000 characters")]
Command = Annotated[str, msgspec.Meta(pattern=r"^[^\0]*\S[^\0]*$", description="a command's name or path")]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000, description="a whole number from 0")]
Positive = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="a whole number from 1")]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1_000_000, description="a number of tokens from 0")]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400 * 365, description="a number of seconds from 0")]
Hours = Annotated[float, msgspec.Meta(ge=0, le=24 * 3650, description="a number of hours from 0")]
Days = Annotated[float, msgspec.Meta(ge=0, le=36_500, description="a number of days from 0")]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535, description="a port number, or 0 for any free one")]
Tokens = Annotated[
    Annotated[int, msgspec.Meta(ge=1_000, le=MAX_TOKENS)] | None,
    msgspec.Meta(description='a number of tokens from 1,000, or "none"'),
]
Share = Annotated[
    Threshold,
    msgspec.Meta(
        description='a percentage of the usable context from "1%" to "100%", a number of tokens above 100, or both '
        'with a comma between, as in "60%, 150000": whichever comes first',
        extra={"parse": _threshold},
    ),
]
AutoShare = Annotated[
    Threshold, msgspec.Meta(description="a percentage from 50 to 95", extra={"parse": _auto_threshold})
]
Size = Annotated[
    int,
    msgspec.Meta(ge=0, le=1 << 50, description='a number of bytes, or text like "64 MiB"', extra={"parse": _size}),
]
BudgetText = Annotated[
    str,
    msgspec.Meta(
        description='US dollars as "$20" or "$2.50", a number of tokens from 1,000, or "none"', extra={"parse": _budget}
    ),
]
Channels = Annotated[
    dict[str, str],
    msgspec.Meta(description="a table of path = name, each path absolute or below ~/", extra={"parse": _channels}),
]


class Table(msgspec.Struct, frozen=True):
    """One table of the file."""


class EstimateWeights(Table, frozen=True):
    read_per_line: Weight = 10.0
    """Per line that a file read returned."""
    tool_call_base: Weight = 100.0
    """For a tool call of any other kind."""
    bash_output_per_char: Weight = 0.3
    """Per character of a command's output."""
    grep_per_match: Weight = 5.0
    """Per match of a search in files."""
    glob_per_file: Weight = 20.0
    """Per file name that a search for files returned."""
    edit: Weight = 300.0
    """For an edit or a written file."""
    agent: Weight = 2000.0
    """For the report of a subagent."""
    web_fetch: Weight = 1500.0
    """For a fetched page."""
    web_search: Weight = 1000.0
    """For a web search."""


class ContextMonitor(Table, frozen=True):
    enabled: Flag = True
    """Measure how full each context is and warn the agent."""
    warning_threshold: Share = WARNING
    """Where an agent is first warned: a percentage of the usable context ("60%"), a number of tokens (150000), or both
    ("60%, 150000"), whichever comes first. While it is not set, a critical threshold at or below it lowers it to three
    quarters of that one."""
    critical_threshold: Share = CRITICAL
    """Where it must hand off at once, in the same forms. Also accepted: `auto_handoff_threshold`, a percentage from 50
    to 95."""
    max_tokens: Tokens = None
    """A number of tokens that is critical in any case, whatever the window."""
    remind_every: Seconds = 60.0
    """Seconds between repeats of an open critical warning, 0 for a single one. Repeats end with a pending handoff."""
    fallback_tool_count: Number = 500
    """Tool calls in one conversation after which an agent is warned, where its context cannot be read."""
    check_frequency: Positive = 1
    """Check at every Nth tool call."""
    use_transcript_baseline: Flag = True
    """Start from the client's own token counts. If false, sm estimates from tool results alone, which is too low."""
    context_limit_estimate: Tokens = SMALLEST_WINDOW
    """The context window to assume, in tokens, for a model that is not known and whose client does not tell it; "none"
    assumes nothing, so that only thresholds in tokens warn."""
    estimate_weights: EstimateWeights = EstimateWeights()
    """Estimated tokens of a tool call, until the client has counted it."""


class HandoffSettings(Table, frozen=True):
    expiry_hours: Hours = 2.0
    """Hours after which an open handoff expires; 0 for never."""
    max_restarts: Number = 10
    """Rotations without progress after which `sm run` keeps its context: cleared in place, or by a restart."""
    wait_background: Seconds = 120.0
    """Seconds that a handoff waits for background work at the end of a turn."""
    on_compact: Literal["save", "rotate"] = "save"
    """Before the client compacts: `save` a document made without a model, or also `rotate`. Default under `sm run`:
    `rotate`."""
    min_growth: Number = 40_000
    """Tokens by which a context that began from a handoff has to grow before its agent may hand off again; a fifth of
    the window if that is less; 0 for none. A handoff that the user asks for is never held."""
    max_without_progress: Number = 3
    """Handoffs in a row without a commit, a changed file, a message or a word of the user, after which a session pauses
    and waits for its user; 0 for no limit."""
    fork: Flag = True
    """If an agent has not handed off before the client compacts, let a copy of its model write the document: one more
    request with the whole context. Needs the plugin in the client; without it the document is made by code alone."""
    enforce: Literal["advise", "gate"] = "advise"
    """At the critical level: `advise` the agent, or `gate` its tools until it hands off. Applies to sessions started
    afterwards; a gate costs about 50 ms per tool call."""
    instructions: Text = ""
    """Text added to each handoff that a new context gets."""


class ContinuationSettings(Table, frozen=True):
    enabled: Flag = True
    """If false, new sessions are not notified of open handoffs and prompts, as with the next key."""
    auto_detect_on_session_start: Flag = True
    """Notify a new session of an open handoff or continuation prompt."""
    include_todos: Flag = True
    """Put the open todos into a prompt made without a model."""
    include_git_status: Flag = True
    """Put the state of the repository into it."""
    include_recent_files: Flag = True
    """Put the files changed last into it."""
    max_continuations: Number = 3
    """Fresh contexts per issue of an unattended run. After so many an issue stays open."""
    prompt_expiry_hours: Hours = 24.0
    """Hours after which a continuation prompt is not announced at a start, and comes with a warning; 0 for never."""

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """The parts that a document made without a model leaves out."""
        included = {
            "todos": self.include_todos,
            "git_status": self.include_git_status,
            "recent_files": self.include_recent_files,
        }
        return tuple(name for name, wanted in included.items() if not wanted)


class HookSettings(Table, frozen=True):
    transport: Literal["http", "command"] = "http"
    """How the client reaches the server: `http` is fastest; `command` goes through a socket in SM_HOME that no other
    user can reach, and is silent when the server is down."""


class ServerSettings(Table, frozen=True):
    port: Port = 0
    """Port on the loopback address; 0 uses the port of the last start. If that is taken, the server does not start
    while sessions are running, because they know only that port; else it uses any free one. Read at the start."""
    hosts: Annotated[
        tuple[str, ...],
        msgspec.Meta(description='a list of "HOST" or "HOST:PORT", without wildcards', extra={"parse": _hosts}),
    ] = ()
    """Names by which browsers reach the page (`sm web`) through a proxy of yours that runs on this machine, exactly as
    they send them: "laptop.example.net" or "laptop.example.net:8443". The server listens on loopback all the same."""


class TmuxSettings(Table, frozen=True):
    history_limit: Annotated[
        int, msgspec.Meta(ge=1_000, le=10_000_000, description="a number of lines from 1,000 to 10,000,000")
    ] = 100_000
    """Lines of scrollback a pane keeps. Read when the server starts."""


class UserInput(Table, frozen=True):
    max_hold: Seconds = 120.0
    """Seconds that a delivery waits while the user is typing; after that the draft is set aside and put back later."""


class ArchiveSettings(Table, frozen=True):
    max_log: Size = 64 << 20
    """Size at which a session's terminal log is rotated; the older part is kept, compressed."""
    keep_days: Days = 30.0
    """Days to keep logs and snapshots of an ended session; 0 for ever."""
    max_total: Size = 5 << 30
    """Total size of logs and snapshots; above it those of ended sessions are deleted, the oldest first, then older ones
    of running sessions; 0 for no limit."""


class Limits(Table, frozen=True):
    message_bytes: Size = 256 << 10
    """Largest body of a message."""
    queued: Positive = 1_000
    """Most messages queued for one session."""
    sends_per_minute: Positive = 60
    """Messages one session may send in a minute."""
    children: Number = 16
    """Most running children of one session."""
    depth: Number = 4
    """Generations of children below a session that the user started."""
    exchanges: Positive = 30
    """Messages that two agents may exchange without a message of the user before they are paused."""
    resume: Literal["auto", "ask", "off"] = "auto"
    """What happens after a usage limit of the account to work that it interrupted and that the client does not
    continue by itself, as it does without asking where it can: `sm` wakes the agent (`auto`), asks you first and wakes
    it after `sm limits --resume` (`ask`), or leaves it (`off`)."""
    patience: Seconds = 180.0
    """Seconds after the reset in which a client may continue by itself, before `sm` wakes its agent. Clients were seen
    to do so after 40 to 101 seconds; one that was woken before is kept from continuing a second time."""
    stagger: Seconds = 20.0
    """Seconds between two sessions of an account that `sm` wakes after a limit."""


class AskSettings(Table, frozen=True):
    parents: Flag = False
    """Let a session answer what its children's clients ask: permissions, questions, plans; never for always. Whoever
    it lets do so can have its children do what it would have to ask you for."""


class TeamSettings(Table, frozen=True):
    may_switch: Flag = False
    """Let an agent have another client continue its session (`sm handoff FILE --to PROVIDER`), with at most the rights
    that it has: its work is then sent to another vendor. You may always do so."""


class PrimerSettings(Table, frozen=True):
    enabled: Flag = True
    """Tell an agent at the start of its first context which commands it has."""


class ClaudeSettings(Table, frozen=True):
    command: Command = "claude"
    """The client's executable: a name on the caller's PATH, or a path."""
    arguments: Annotated[tuple[str, ...], msgspec.Meta(description="a list of strings")] = ()
    """Arguments of every start, before those given after `--`."""
    driver: Literal["auto", "mod", "keys"] = "auto"
    """How a session is cleared and given prompts: `auto` by a plugin in the client (2.1.290 or newer), and by keys in
    its pane where that does not answer; `mod` by the plugin alone, and never by a key; `keys` without the plugin."""


class CodexSettings(Table, frozen=True):
    command: Command = "codex"
    """The executable of Codex: a name on the caller's PATH, or a path."""
    arguments: Annotated[tuple[str, ...], msgspec.Meta(description="a list of strings")] = ()
    """Arguments of every start of Codex, before those given after `--`."""


class PluginSettings(Table, frozen=True):
    rotate: Literal["ask", "auto"] = "ask"
    """Whether the plugin asks the user, once in each client that they start themselves, before its context is cleared
    for a handoff (`ask`), or not (`auto`)."""


class NotifySettings(Table, frozen=True):
    urls: Annotated[tuple[str, ...], msgspec.Meta(description="a list of strings")] = ()
    """URLs of notification services, in the form of apprise, as "ntfy://TOPIC" or "tgram://TOKEN/CHAT". Needs `pip
    install 'agent-sm[notify]'`. `sm notify test` tries every channel."""
    command: Annotated[tuple[str, ...], msgspec.Meta(description="a list of strings")] = ()
    """A command and its arguments, run for each notification, which it reads as JSON from its standard input."""
    terminal: Literal["off", "osc9", "osc777"] = "off"
    """Show notifications in the terminals that are attached to a session, by the sequence that yours knows: `osc9`
    (iTerm2, kitty, WezTerm, Windows Terminal) or `osc777` (foot, Ghostty, urxvt)."""
    kinds: Annotated[
        tuple[NotificationKind, ...],
        msgspec.Meta(description=f"a list of: {', '.join(kind.value for kind in NotificationKind)}"),
    ] = tuple(NotificationKind)
    """What is notified of."""
    after: Seconds = 20.0
    """Seconds that something has lasted before it is notified of."""
    away_after: Seconds = 120.0
    """Seconds since the last key in the terminal that shows a session, after which its user counts as away. While they
    are not, nothing is notified of this session."""
    quiet: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^((?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d)?$",
            description='local times as "22:00-07:00", or "" for none',
        ),
    ] = ""
    """Quiet hours: what is still open at their end is notified of then."""
    digest: Seconds = 0.0
    """Seconds between two notifications, at least: what comes in between becomes one. 0 for each by itself."""

    def rules(self) -> NotifyRules:
        """Return the part that the core's rules need."""
        quiet = None
        if self.quiet:
            start, end = (int(time[:2]) * 60 + int(time[3:]) for time in self.quiet.split("-"))
            quiet = start, end
        kinds = frozenset(kind.value for kind in self.kinds)
        return NotifyRules(kinds, self.after, self.away_after, quiet, self.digest)


class CostSettings(Table, frozen=True):
    prices: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description='a list of "MODEL INPUT OUTPUT" or "MODEL INPUT OUTPUT WRITE LONG_WRITE READ", with US dollars '
            "for a million tokens",
            extra={"parse": _prices},
        ),
    ] = ()
    """What models cost, in US dollars for a million tokens: "MODEL INPUT OUTPUT", where MODEL is the beginning of a
    model's name. Writing to the cache for five minutes and for an hour, and reading from it, cost 1.25, 2 and 0.1 times
    the input, unless three more numbers say it. What a model without a price costs is unknown."""

    budget: BudgetText = "none"
    """What one session may use, in US dollars or in tokens of every kind. At 80 % you are notified; at 100 % it is left
    alone after its turn until you send it a message, which lets it use as much again. What has no price pauses
    nothing."""
    tree_budget: BudgetText = "none"
    """The same for a session with all its children: all of them are left alone at 100 %."""

    def budgets(self) -> Budgets:
        return Budgets(_budget_of(self.budget), _budget_of(self.tree_budget))

    def table(self) -> dict[str, Price]:
        return dict(_price(entry) for entry in self.prices)


class RunnerSettings(Table, frozen=True):
    source: Literal["auto", "files", "todo", "github"] = "auto"
    """Where a project's issues are: `files` below .issues/, the items of a TODO.md (`todo`), or `github`; `auto` takes
    .issues/ above the working directory, else TODO.md. GitHub is never asked, and nothing is sent to it, unless it is
    named here or with `--source`."""
    label: Annotated[
        str, msgspec.Meta(pattern=r"^[^,\s][^,\n]{0,39}$", description="a label's name, without a comma")
    ] = "sm"
    """The label that an issue of GitHub needs. A status is the label with a colon before it, as in `sm:needs_you`."""
    repository: Annotated[
        str,
        msgspec.Meta(pattern=r"^(?:[\w.-]+/){1,2}[\w.-]+$|^$", description='OWNER/NAME, or "" for the directory\'s'),
    ] = ""
    """The repository whose issues they are, where `gh` is to take another than the directory's."""
    check: Text = ""
    """The command that says whether an issue is done that names none itself, as `make test`. It runs in the issue's
    worktree, by /bin/sh."""
    check_timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400, description="a number of seconds above 0")] = 1_800.0
    """Seconds after which such a command is ended, and counts as failed."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400 * 7, description="a number of seconds above 0")] = 7_200.0
    """Seconds of work on one issue, without those at a usage limit, after which its session is ended."""
    run_timeout: Seconds = 0.0
    """Seconds from the begin of a run, whatever it does in them, after which the session that works is ended and no
    further issue is begun. 0 for none."""
    issue_budget: BudgetText = "none"
    """What the sessions of one issue may use in a run, with all their children, in US dollars or in tokens of every
    kind. It is compared while they work: beyond it they are ended, and what they have done is kept. What has no price
    is not counted."""
    run_budget: BudgetText = "none"
    """The same for all sessions of a run; beyond it no further issue is begun."""
    max_failures: Number = 3
    """Issues in a row that were begun and not delivered, after which no further one is begun; the same failure in two
    of them ends a run as well. 0 for no limit."""
    deliver: Literal["merge", "branch", "pull-request"] = "merge"
    """How a branch that has passed its check gets to you: it is merged, kept for you to merge, or pushed and offered as
    a pull request through your own `gh`. Nothing is pushed unless that is named here or with `--deliver`."""
    setup: Text = ""
    """A command that sets each worktree up, as `npm ci`, by /bin/sh and within check_timeout. Before it, the files that
    git ignores and .worktreeinclude names, in the form of .gitignore, are copied into the worktree."""
    port_step: Annotated[int, msgspec.Meta(ge=0, le=50, description="a whole number from 0 to 50")] = 0
    """Ports that an issue has for itself: PORT_OFFSET is its number times that, for set-up, agent and check."""
    jobs: Annotated[int, msgspec.Meta(ge=1, le=64, description="a whole number from 1 to 64")] = 2
    """Issues that `sm parallel` works on at the same time."""
    idle_timeout: Annotated[float, msgspec.Meta(ge=60, le=86_400 * 7, description="a number of seconds from 60")] = (
        1_800.0
    )
    """Seconds without any sign of work after which a client counts as dead and is replaced. A command that an agent
    runs is work, however long it takes."""
    on_ask: Literal["wait", "deny"] = "wait"
    """What an agent asks in a run, as a permission: `wait` for you, or `deny`, with the reason that you are away."""
    ask_timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400 * 7, description="a number of seconds above 0")] = (
        3_600.0
    )
    """Seconds for which it waits for you. Then the issue stays `needs_you`, and the run continues with the next one."""
    mode: Literal["interactive", "headless"] = "interactive"
    """`headless` starts the client of an unattended session without a screen (`claude -p`), driven by its plugin alone:
    its pane shows the stream of its messages as JSON. Such a client takes every directory for trusted."""
    permission_mode: Annotated[
        str, msgspec.Meta(pattern=r"^[A-Za-z]{0,40}$", description="a permission mode of the client")
    ] = ""
    """The permission mode of unattended sessions; empty for the client's own default."""
    model: Text = ""
    """Their model; empty for the client's own default."""
    review: Flag = False
    """Have a second agent review each change that passes its check, with the issue and no tool that writes. What it
    objects to is not delivered, and waits for you."""
    review_model: Text = ""
    """The reviewer's model; empty for that of runner.model."""
    review_timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400, description="a number of seconds above 0")] = 1_800.0
    """Seconds that a review may take, without those at a usage limit."""
    database: Annotated[
        str, msgspec.Meta(pattern=r"^(?:postgres(?:ql)?://\S+)?$", description='postgresql://USER@HOST/NAME, or ""')
    ] = ""
    """The PostgreSQL that keeps the state of runs, for workers on several machines (`sm worker`); empty for a file of
    this machine alone."""

    def budgets(self) -> tuple[Budget | None, Budget | None]:
        """Return that of each issue, and that of a run."""
        return _budget_of(self.issue_budget), _budget_of(self.run_budget)


class Settings(msgspec.Struct, frozen=True):
    """All tables, each value checked."""

    context_monitor: ContextMonitor = ContextMonitor()
    handoff: HandoffSettings = HandoffSettings()
    continuation: ContinuationSettings = ContinuationSettings()
    hooks: HookSettings = HookSettings()
    server: ServerSettings = ServerSettings()
    tmux: TmuxSettings = TmuxSettings()
    user_input: UserInput = UserInput()
    archive: ArchiveSettings = ArchiveSettings()
    limits: Limits = Limits()
    asks: AskSettings = AskSettings()
    team: TeamSettings = TeamSettings()
    primer: PrimerSettings = PrimerSettings()
    claude: ClaudeSettings = ClaudeSettings()
    codex: CodexSettings = CodexSettings()
    plugin: PluginSettings = PluginSettings()
    notify: NotifySettings = NotifySettings()
    cost: CostSettings = CostSettings()
    runner: RunnerSettings = RunnerSettings()
    channels: Channels = {}
    """Path = name of the project whose handoffs belong together; the longest path that holds a directory wins."""

    def policy(self) -> Policy:
        """Return the part that the core's rules need."""
        monitor = self.context_monitor
        weights = msgspec.structs.asdict(monitor.estimate_weights)
        return Policy(
            enabled=monitor.enabled,
            warning=monitor.warning_threshold,
            critical=monitor.critical_threshold,
            max_tokens=monitor.max_tokens,
            remind_every=monitor.remind_every,
            fallback_tool_count=monitor.fallback_tool_count,
            check_frequency=monitor.check_frequency,
            baseline=monitor.use_transcript_baseline,
            call_base=weights.pop("tool_call_base"),
            weights=tuple(weights.items()),
            wait_background=self.handoff.wait_background,
            primer=self.primer.enabled,
            gate=self.handoff.enforce == "gate",
            rotate_own=self.plugin.rotate,
            max_hold=self.user_input.max_hold,
            offer=self.continuation.enabled and self.continuation.auto_detect_on_session_start,
            expiry_hours=self.handoff.expiry_hours,
            prompt_hours=self.continuation.prompt_expiry_hours,
            on_compact=self.handoff.on_compact,
            fork=self.handoff.fork,
            min_growth=self.handoff.min_growth,
            max_without_progress=self.handoff.max_without_progress,
            leaves_out=self.continuation.leaves_out,
            max_restarts=self.handoff.max_restarts,
            assumed_window=monitor.context_limit_estimate,
        )


# --- the keys, read from the structs ----------------------------------------------------------------------------------


class SettingsKey(NamedTuple):
    owner: str
    """Name of the struct that declares it."""
    table: str
    name: str
    type: Any
    default: Any

    @property
    def dotted(self) -> str:
        return _dotted(self.table, self.name)

    @property
    def variable(self) -> str:
        return "SM_" + self.dotted.upper().replace(".", "_")


def _dotted(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table)


def _walk(struct: type[msgspec.Struct], table: str) -> Iterator[SettingsKey]:
    for field in msgspec.structs.fields(struct):
        if _is_table(field.type):
            yield from _walk(field.type, _dotted(table, field.name))
        else:
            yield SettingsKey(struct.__name__, table, field.name, field.type, field.default)


KEYS = {key.dotted: key for key in _walk(Settings, "")}
ALIASES = {
    "context_monitor.auto_handoff_threshold": SettingsKey(
        "", "context_monitor", "auto_handoff_threshold", AutoShare, None
    ),
}
CRITICAL_KEY = "context_monitor.critical_threshold"
WARNING_KEY = "context_monitor.warning_threshold"
ACCEPTED = {**KEYS, **ALIASES}
TABLES = {key.table for key in KEYS.values()} - {""}
PROJECT_MAY_SET = ("context_monitor.", "continuation.", "handoff.instructions")


# --- loading ----------------------------------------------------------------------------------------------------------


class Sourced(NamedTuple):
    """A value as given, and its source."""

    value: Any
    source: str


class Setting(NamedTuple):
    """One line of `sm config show --source`."""

    table: str
    key: str
    value: Any
    source: str
    """`default`, a file's path, the name of a variable, or `flag`."""


def load(cwd: Path | None, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Settings:
    """Merge all layers that apply in `cwd` (None: no project); flags by dotted key. ConfigError if one is invalid."""
    values = {name: found.value for name, found in _merged(cwd, environ, flags or {}).items()}
    return _struct(Settings, "", values)


def sources(cwd: Path | None, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> list[Setting]:
    """Return every key with its value, written as in a file, and its source."""
    merged = _merged(cwd, environ, flags or {})
    return [
        Setting(key.table, key.name, _as_in_file(merged[name].value), merged[name].source) for name, key in KEYS.items()
    ]


def configured_value(cwd: Path | None, environ: Mapping[str, str], dotted: str) -> object | None:
    """Return what a key was set to, None for its default. For keys whose default depends on the command."""
    found = _merged(cwd, environ, {})[dotted]
    return None if found.source == DEFAULT else found.value


def project_values(cwd: Path, environ: Mapping[str, str]) -> dict[str, object]:
    """Return what the project's file sets there, by dotted key, as it is written; a later layer may override it."""
    file = project_file(cwd)
    found = _merged(cwd, environ, {}) if file is not None else {}
    return {name: _as_in_file(sourced.value) for name, sourced in found.items() if sourced.source == str(file)}


def set_by_project(cwd: Path, environ: Mapping[str, str], dotted: str) -> bool:
    try:
        return dotted in project_values(cwd, environ)
    except SmError:
        return True  # a file that cannot be read now may be the value's source


def _as_in_file(value: object) -> object:
    if isinstance(value, Threshold):
        share = "" if value.share is None else f"{value.share * 100:g}%"
        return value.tokens if not share else share if value.tokens is None else f"{share}, {value.tokens}"
    if isinstance(value, tuple):
        return [item.value if isinstance(item, NotificationKind) else item for item in value]
    return value


def _merged(cwd: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> dict[str, Sourced]:
    merged = {name: Sourced(key.default, DEFAULT) for name, key in KEYS.items()}
    merged["channels"] = Sourced({}, DEFAULT)
    layers = (_user_layer(environ), _project_layer(cwd, environ), _environment_layer(environ), _flag_layer(flags))
    for layer in layers:
        for name, found in _checked(layer).items():
            earlier = merged[name].value
            merged[name] = found._replace(value={**earlier, **found.value}) if name == "channels" else found
    own = user_directory(environ)
    channels = {
        str(own / path[2:]) if path.startswith("~/") else path: name for path, name in merged["channels"].value.items()
    }
    return _with_ordered_thresholds({**merged, "channels": merged["channels"]._replace(value=channels)})


Layer = dict[str, Sourced]
"""Raw values of one layer, by dotted key."""


def _checked(layer: Layer) -> Layer:
    values = {name: found._replace(value=_converted(ACCEPTED[name], found)) for name, found in layer.items()}
    for alias in ALIASES.keys() & values.keys():
        if CRITICAL_KEY in values:
            message = f"{values[alias].source}: {alias} is another name of {CRITICAL_KEY}, and both are set"
            raise _config_error(message, "remove one of them")
        values[CRITICAL_KEY] = values.pop(alias)
    return values


def _converted(key: SettingsKey, found: Sourced) -> object:
    """Return the value in its own type; ConfigError that says what is accepted."""
    meta = _meta(key)
    parse = (meta.extra or {}).get("parse") if meta else None
    try:
        value = parse(found.value) if parse else _plain(found.value, key)
        return value if isinstance(value, Threshold) else msgspec.convert(value, key.type)
    except (ValueError, msgspec.ValidationError):
        message = f"{found.source}: {key.dotted} = {_quoted(found.value)}"
        raise _config_error(message, f"accepted: {accepted_values(key.dotted)}") from None


def _meta(key: SettingsKey) -> msgspec.Meta | None:
    return next((item for item in getattr(key.type, "__metadata__", ()) if isinstance(item, msgspec.Meta)), None)


def _quoted(value: object) -> str:
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError:  # Python prints no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004


_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _plain(value: object, key: SettingsKey) -> object:
    """Convert text to a number, a truth value or a list where the key takes one."""
    if key.type is Tokens and value == "none":
        return None
    if not isinstance(value, str) or isinstance(key.default, str):
        return value
    if isinstance(key.default, bool):
        return _WORDS.get(value.strip().lower(), value)
    return shlex.split(value) if isinstance(key.default, tuple) else _plain_number(value)


def _plain_number(value: object) -> object:
    text = value.strip() if isinstance(value, str) else ""
    if re.fullmatch(r"\d+(_\d+)*", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else value


def _with_ordered_thresholds(merged: dict[str, Sourced]) -> dict[str, Sourced]:
    """Keep the warning below the critical level: change a default, refuse what the user has set."""
    warning, critical = merged[WARNING_KEY], merged[CRITICAL_KEY]
    if critical.source == DEFAULT and _reaches(warning.value, Threshold(tokens=critical.value.tokens)):
        critical = critical._replace(value=Threshold(share=critical.value.share))
        merged = {**merged, CRITICAL_KEY: critical}
    if not _reaches(warning.value, critical.value):
        return merged
    if warning.source != DEFAULT:
        message = (
            f"{WARNING_KEY} = {_quoted(_as_in_file(warning.value))} ({warning.source}) is not below {CRITICAL_KEY} = "
        )
        message += f"{_quoted(_as_in_file(critical.value))} ({critical.source})"
        raise _config_error(message, "lower the first or raise the second")
    return {**merged, WARNING_KEY: Sourced(_lowered(warning.value, critical.value), DEFAULT)}


def _reaches(warning: Threshold, critical: Threshold) -> bool:
    """Whether a part of the warning is not below the same part of the critical threshold."""
    shares = warning.share is not None and critical.share is not None and warning.share >= critical.share
    return shares or (warning.tokens is not None and critical.tokens is not None and warning.tokens >= critical.tokens)


def _lowered(warning: Threshold, critical: Threshold) -> Threshold:
    """Lower the default warning below the critical threshold that was set, in each part that reaches it."""
    share, tokens = warning.share, warning.tokens
    if share is not None and critical.share is not None and share >= critical.share:
        share = round(critical.share * LOWERED, 4)
    if tokens is not None and critical.tokens is not None and tokens >= critical.tokens:
        tokens = round(critical.tokens * LOWERED)
    return Threshold(share, tokens)


StructT = TypeVar("StructT", bound=msgspec.Struct)


def _struct(struct: type[StructT], table: str, values: Mapping[str, Any]) -> StructT:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        dotted = _dotted(table, field.name)
        found[field.name] = _struct(field.type, dotted, values) if _is_table(field.type) else values[dotted]
    return struct(**found)


# --- the four layers --------------------------------------------------------------------------------------------------


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the user's own file, whether it exists or not."""
    if "SM_CONFIG" in environ:
        return absolute(environ["SM_CONFIG"], "SM_CONFIG")
    configured = environ.get("XDG_CONFIG_HOME", "")
    return (Path(configured) if configured.startswith("/") else user_directory(environ) / ".config") / "sm/config.toml"


def project_file(cwd: Path) -> Path | None:
    """Return the nearest .sm/config.toml, in `cwd` or above it, even one that cannot be used."""
    files = _files_above(cwd.absolute())
    return next((path for path in files if os.path.lexists(path)), None)  # False without permission


@lru_cache(maxsize=1024)
def _files_above(place: Path) -> tuple[Path, ...]:
    """Return where a project's file may be; kept, since a server looks for those of its sessions every 2 s."""
    return tuple(directory / PROJECT_FILE for directory in (place, *place.parents))


def _user_layer(environ: Mapping[str, str]) -> Layer:
    path = config_file(environ)
    if "SM_CONFIG" not in environ and _absent(path):
        return {}
    content, problem = _read(path)
    if problem:
        hint = f"chown or chmod {path}, so that only you decide which commands sm runs"
        raise _config_error(f"{path} {problem}", hint)
    return _parsed(content, path)


def _absent(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # reading it says what is wrong
    return False


def _project_layer(cwd: Path | None, environ: Mapping[str, str]) -> Layer:
    path = project_file(cwd) if cwd is not None else None
    if path is None or path == config_file(environ):
        return {}
    content, problem = _read(path)
    layer = _parsed(content, path)
    reserved = next((name for name in layer if not name.startswith(PROJECT_MAY_SET)), None)
    if (problem or reserved) and fingerprint(path, content) not in _trusted(environ):
        trusted = (
            f"`sm trust {shlex.quote(str(path.parent.parent))}` allows exactly this content, once you have read it"
        )
        if problem:
            raise _config_error(f"{path} {problem}", trusted, "config_untrusted")
        message = f"{path}: a project may not set {reserved}"
        raise _config_error(message, f"set it in {config_file(environ)}; or {trusted}", "config_untrusted")
    return layer


def _environment_layer(environ: Mapping[str, str]) -> Layer:
    """Variables that are no settings (SM_HOME, SM_URL, a newer version's) are ignored; empty means unset."""
    configured_value = ((name, key.variable) for name, key in ACCEPTED.items() if name != "channels")
    return {name: Sourced(environ[variable], variable) for name, variable in configured_value if environ.get(variable)}


def _flag_layer(flags: Mapping[str, object]) -> Layer:
    for name in flags:
        if name not in ACCEPTED:
            raise _unknown(FLAG, name, TABLES if name in TABLES else ACCEPTED)
    return {name: Sourced(value, FLAG) for name, value in flags.items() if value is not None}


def _read(path: Path) -> tuple[bytes, str]:
    """Return the content, and the reason not to trust it: another user may have written it."""
    if path == NO_FILE:
        return b"", ""
    try:
        content, found = read_regular(path, MAX_FILE_BYTES)
    except OSError as problem:
        hint = "correct the path or its permissions" if path.name else "name a file"
        if problem.errno == errno.EFBIG:
            hint = "the file is too large for a configuration"
        raise _config_error(f"Cannot read {path}: {problem.strerror}", hint) from problem
    return content, _reason_for_distrust(found)


def _reason_for_distrust(found: os.stat_result) -> str:
    if found.st_uid not in {os.getuid(), 0}:
        return f"belongs to another user (uid {found.st_uid})"
    return "can be written by everybody" if found.st_mode & stat.S_IWOTH else ""


def _parsed(content: bytes, path: Path) -> Layer:
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise _config_error(f"{path}: line {line} is not UTF-8", "save the file as UTF-8") from problem
    except RecursionError as problem:
        raise _config_error(f"{path}: nested too deeply", "values are plain or lists") from problem
    except ValueError as problem:  # its own, and Python's for a number of thousands of digits
        raise _config_error(f"{path}: {problem}", "a line reads `key = value`, text in double quotes") from problem
    return dict(_flat(document, str(path), ""))


def _flat(document: Mapping[str, Any], source: str, table: str) -> Iterator[tuple[str, Sourced]]:
    for name, value in document.items():
        dotted = _dotted(table, name)
        if dotted in ACCEPTED:
            yield dotted, Sourced(value, source)
        elif dotted not in TABLES:
            raise _unknown(source, dotted, TABLES if isinstance(value, dict) else ACCEPTED)
        elif not isinstance(value, dict):
            raise _config_error(f"{source}: {dotted} = {_quoted(value)}", f"accepted: a table, written [{dotted}]")
        else:
            yield from _flat(value, source, dotted)


def _unknown(source: str, dotted: str, candidates: Iterable[str]) -> ConfigError:
    hint = _hint_for_unknown(dotted, candidates) or "sm config show lists all keys"
    return _config_error(f"{source}: unknown key {dotted}", hint, "unknown_key")


def _hint_for_unknown(dotted: str, candidates: Iterable[str]) -> str | None:
    """Return the likely key: the same name in another table, an earlier tool's name, or a misspelling."""
    import difflib  # noqa: PLC0415  # for a mistake only

    from sm.earlier_tools import hint_for  # noqa: PLC0415  # likewise

    name = dotted.rpartition(".")[2]
    moved = [known for known in candidates if known.rpartition(".")[2] == name or known.startswith(dotted)]
    if not moved and (earlier := hint_for(dotted) or hint_for(name)):
        return earlier
    nearest = moved or difflib.get_close_matches(dotted, list(candidates), n=1, cutoff=MIN_SIMILARITY)
    return f"the nearest one is {nearest[0]}" if nearest else None


# --- trust ------------------------------------------------------------------------------------------------------------


def fingerprint(path: Path, content: bytes) -> str:
    """Return a hash of this content at this path: an edit, or a pull with one, ends the trust."""
    import hashlib  # noqa: PLC0415  # only where a project file asks for more

    return hashlib.sha256(os.fsencode(path.resolve()) + b"\0" + content).hexdigest()


def trust(directory: Path, environ: Mapping[str, str]) -> Path:
    """Let this project's file set every key, as long as it stays unchanged; return its path."""
    path = directory.absolute() / PROJECT_FILE
    content, _ = _read(path)
    known = _trusted(environ) | {fingerprint(path, content)}
    atomic_write(locate_home(environ).trusted, "".join(f"{line}\n" for line in sorted(known)).encode())
    return path


def _trusted(environ: Mapping[str, str]) -> set[str]:
    try:
        return set(locate_home(environ).trusted.read_text(encoding="ascii").split())
    except OSError:
        return set()


# --- reference --------------------------------------------------------------------------------------------------------


def reference() -> list[tuple[str, str, str, str]]:
    """Return every key as (table, key, default as written in a file, text), for the documentation."""
    texts = _field_texts()
    return [
        (
            key.table,
            key.name,
            "" if key.name == "channels" else _quoted(_as_in_file(key.default)),
            texts[key.owner, key.name],
        )
        for key in KEYS.values()
    ]


def accepted_values(dotted: str) -> str:
    """Return what a key accepts, in words."""
    key = ACCEPTED[dotted]
    meta = _meta(key)
    return str(meta.description) if meta else " or ".join(f'"{choice}"' for choice in key.type.__args__)


def _field_texts() -> dict[tuple[str, str], str]:
    """Return (class, field) → the string under the field."""
    import ast  # noqa: PLC0415  # for the documentation only

    texts = {}
    for struct in (
        node for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)
    ):
        for field, below in itertools.pairwise(struct.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                texts[struct.name, field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return texts
