import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from sm.archive.redaction.redact import without_secrets
from sm.providers.claude.traits import CLAUDE
from sm.runner.issues.files import FilesSource
from sm.runner.outcome import SessionLook
from sm.runner.tools import RunRules, Tools

ISSUE = "---\nstatus: open\ncheck: test -f login.txt\n---\n# Log in\n\nWrite login.txt.\n"


NOW = 1_770_000_000.0


@dataclass
class Repository:
    """A repository of a user, with git itself."""

    root: Path

    def git(self, *arguments, at=None):
        ran = subprocess.run(["git", "-C", at or self.root, *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    def commit(self, name, text, at=None):
        path = Path(at or self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", "--", name, at=at)
        self.git("commit", "-q", "-m", f"Write {name}", at=at)
        return self.git("rev-parse", "HEAD", at=at)

    @property
    def log(self):
        return self.git("log", "--format=%s").splitlines()

    @property
    def dirty(self):
        return self.git("status", "--porcelain")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = Dev\nemail = dev@example.org\n[init]\ndefaultBranch = trunk\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "pro ject"
    root.mkdir()
    found = Repository(root)
    found.git("init", "-q")
    found.commit("README.md", "read\n")
    found.commit(".issues/P1-FEAT-012-log-in.md", ISSUE)
    return found


class FakeSessions:
    """A server with sessions whose agent does its work as soon as it has begun."""

    def __init__(self, agent, looks=()):
        self.agent = agent
        self.looks = list(looks)
        self.sessions = {}
        """Session by attempt."""
        self.prompts = []
        self.ended = []
        self.notified = []
        self.used = []
        """What each session has used."""
        self.denied = []
        self.said = ""

    def ensured(self, attempt, prepared):
        if attempt not in self.sessions:
            self.sessions[attempt] = f"{len(self.sessions):08x}"
            self.prompts.append(prepared.prompt)
            self.agent(prepared)
        return self.sessions[attempt]

    def look(self, session):
        changes = self.looks.pop(0) if self.looks else {}
        rested = {"status": "idle", "detail": "", "at_rest": True, "rotations": 0, "last_activity": 1.0}
        return SessionLook(**{"id": session, **rested, **changes})

    def last_message(self, session):
        return self.said

    def deny(self, asks, reason):
        self.denied.append((asks, reason))

    def end(self, session):
        self.ended.append(session)

    def costs(self, run):
        return self.used

    def run_ended(self, run, project, words):
        self.notified.append(words)


def used(attempt, tokens=0, usd=0.0, unpriced=()):
    """A session of a run as the server answers for it."""
    parts = {"input": tokens, "cache_writes": 0, "long_cache_writes": 0, "cache_reads": 0, "output": 0, "requests": 1}
    return {"attempt": attempt, "tree": {**parts, "usd": usd, "unpriced": list(unpriced)}}


@pytest.fixture
def tools_of(repository):
    """Tools for that repository, whose agent is a function of what was prepared."""

    def made(agent, looks=(), **rules):
        source = FilesSource(repository.root / ".issues")
        sessions = FakeSessions(agent, looks)
        rest = (CLAUDE, without_secrets, [].append, lambda: NOW)
        return Tools(repository.root, repository.root, source, sessions, RunRules(**rules), *rest)

    return made


@pytest.fixture
def logs_in(repository):
    """An agent that does what the issue asks for."""

    def agent(prepared):
        repository.commit("login.txt", "in\n", at=prepared.place.worktree)

    return agent
