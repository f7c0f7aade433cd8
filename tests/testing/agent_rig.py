"""One client, scripted or real, in a pane of a private tmux, with a hook server that remembers and answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import coverage
import msgspec

from sm.testing.model import read_log
from sm.testing.offline import INHERITED_VARIABLES, offline_client_env

ROOT = Path(__file__).parents[2]
CLAUDE = ROOT / "clients" / "node_modules" / ".bin" / "claude"
HOOKS = ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "Stop", "StopFailure")
HOOKS += ("PreCompact", "PostCompact", "SessionEnd")
PATIENCE = 10.0
RECORD_HOOK = 'import os, sys; p = sys.argv[1]; f = open(p, "a"); f.write(sys.stdin.read().strip() + "\\n"); f.close()'


def until(holds, within=PATIENCE):
    """Wait for a condition and return what it gave."""
    deadline = time.monotonic() + within
    while not (result := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(getattr(holds, "__name__", "") or "waited in vain")
        time.sleep(0.01)
    return result


def _drain(descriptor):
    with suppress(OSError):
        while os.read(descriptor, 65536):
            pass
    os.close(descriptor)


class HookServer:
    """Answers `{}`, or what `answers` holds for an event: a dict, or a list of them used up one by one."""

    def __init__(self):
        self.payloads, self.headers, self.answers, self.delays = [], [], {}, {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.headers.append(dict(self.headers))
                outer.payloads.append(payload | {"_at": time.monotonic()})
                time.sleep(outer.delays.get(payload["hook_event_name"], 0))
                body = json.dumps(outer.answer(payload)).encode()
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, payload):
        found = self.answers.get(payload["hook_event_name"], {})
        if callable(found):
            return found(payload)
        return (found.pop(0) if found else {}) if isinstance(found, list) else found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def settings(hooks_url, session_start_log, allow=()):
    http = {
        "type": "http",
        "url": hooks_url + "/hooks",
        "headers": {"Authorization": "Bearer $SM_SESSION_TOKEN", "X-Other": "<$HOME>"},
        "allowedEnvVars": ["SM_SESSION_TOKEN"],
        "timeout": 5,
    }
    command = {"type": "command", "command": sys.executable, "args": ["-I", "-S", "-c", RECORD_HOOK, session_start_log]}
    hooks = {name: [{"hooks": [http]}] for name in HOOKS}
    hooks["SessionStart"] = [{"hooks": [command]}]
    return {"permissions": {"allow": list(allow)}, "disableAgentView": True, "hooks": hooks}


@dataclass
class Rig:
    """Everything one test needs; `start` runs the client."""

    kind: str
    home: Path
    hooks: HookServer
    tmux_pid: int = 0
    model_process: subprocess.Popen | None = None
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    more_hooks: dict = field(default_factory=dict)
    env: dict = field(default_factory=dict)

    @property
    def project(self):
        return self.home / "project"

    @property
    def config(self):
        return self.home / "home" / ".claude"

    def tmux(self, *arguments, check=True, data=None):
        command = ["tmux", "-S", str(self.home / "s"), "-f", os.devnull, *arguments]
        env = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ} | {"HOME": str(self.home)}
        done = subprocess.run(command, env=env, input=data, capture_output=True, text=True, check=check, timeout=10)
        return done.stdout

    def start(
        self, script, *, arguments=(), allow=(), ready=True, width=80, trusted=True, over_http=False, **environment
    ):
        self.env = self.environment(script, trusted=trusted, over_http=over_http) | environment
        path = self.home / "settings.json"
        content = settings(self.hooks.url, str(self.home / "starts"), allow)
        for name, groups in self.more_hooks.items():
            content["hooks"].setdefault(name, []).extend(groups)
        path.write_text(json.dumps(content))
        self.tmux("new-session", "-d", "-x", str(width), "-y", "30", "sleep 600")
        self.tmux_pid = int(self.tmux("display-message", "-p", "#{pid}"))
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.run("--session-id", self.session, *arguments)
        if ready:
            self.ready()
        return self

    def command(self):
        client = [str(CLAUDE)] if self.kind == "claude" else [sys.executable, "-m", "sm.testing.agent"]
        return [*client, "--settings", str(self.home / "settings.json")]

    def run(self, *arguments):
        exports = ["TERM=tmux-256color", *(f"{name}={value}" for name, value in self.env.items())]
        command = ["env", "-i", *exports, *self.command(), *arguments]
        self.tmux("respawn-pane", "-k", "-c", str(self.project), *command)

    def exit_code(self, number):
        """How a client of its own, in a bare terminal, ends by a signal."""
        master, slave = os.openpty()
        command = [*self.command(), "--session-id", str(uuid.uuid4())]
        env = self.env | {"TERM": "xterm-256color"}
        before = len(self.started())
        process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=self.project, start_new_session=True
        )
        os.close(slave)
        threading.Thread(target=_drain, args=(master,), daemon=True).start()
        until(lambda: len(self.started()) > before and (self.config / "sessions" / f"{process.pid}.json").exists())
        process.send_signal(number)
        return process.wait(PATIENCE)

    def restart(self, *arguments):
        """End the client as a person's terminal would, and run it again."""
        before = len(self.started())
        os.kill(self.pid(), signal.SIGTERM)
        until(self.dead)
        self.run(*arguments)
        until(lambda: len(self.started()) > before)
        self.ready()

    def environment(self, script, *, trusted, over_http):
        self.project.mkdir(exist_ok=True)
        scenario = self.home / "scenario.json"
        scenario.write_bytes(msgspec.json.encode(script))
        url = self.model(scenario) if self.kind == "claude" or over_http else "http://127.0.0.1:9"
        env = offline_client_env(self.home / "home", url, self.project, trusted=trusted)
        self.decline_offers()
        env |= {"CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1", "SM_SESSION_TOKEN": "the-token", "IS_SANDBOX": "1"}
        env.pop("TERM", None)
        if self.kind == "scripted" and not over_http:
            env |= {"SM_SCENARIO": str(scenario), "SM_AGENT_LOG": str(self.home / "log")}
        return env

    def decline_offers(self):
        """A moment after some starts the real client opens a dialog that offers auto mode (2.1.328)."""
        path = self.config / ".claude.json"
        offers = {"hasSeenAutoDefaultNudge": True, "hasSeenAutoDefaultNotice": True}
        path.write_text(json.dumps(json.loads(path.read_text()) | offers))

    def model(self, scenario):
        command = [
            sys.executable,
            "-m",
            "sm.testing",
            "--scenario",
            str(scenario),
            "--log",
            str(self.home / "log"),
        ]
        self.model_process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return json.loads(self.model_process.stdout.readline())["url"]

    def ready(self):
        until(lambda: self.started() and self.status() == "idle" and self.box() == "")

    # What it shows.

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def box(self):
        """Text of the input box, None if there is none."""
        from sm.providers.claude.keys.screen import read_box

        where = self.tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
        found = read_box(tuple(self.screen("-e").split("\n")), (int(where[0]), int(where[1])))
        return None if found is None or not found.cursor_inside else found.text

    def shows(self, text):
        return until(lambda: text in self.screen("-S", "-"))

    # What is done to it.

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def paste(self, text):
        self.tmux("load-buffer", "-", data=text)
        self.tmux("paste-buffer", "-p", "-d")

    def submit(self, text):
        self.paste(text)
        until(lambda: "".join((self.box() or "").split()) == "".join(text.split()))
        self.press("Enter")

    def confirm(self, dialog):
        """Press Enter in a dialog until it is gone: at first it is deaf (2.1.328)."""
        self.shows(dialog)

        def gone():
            self.press("Enter")
            time.sleep(0.25)
            return self.dead() or dialog not in self.screen()

        until(gone)

    # What it tells.

    def started(self):
        path = self.home / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def events(self, name=None):
        return [found for found in list(self.hooks.payloads) if name in {None, found["hook_event_name"]}]

    def names(self):
        return [found["hook_event_name"] for found in self.events()]

    def event(self, name, number=1):
        return until(lambda: len(self.events(name)) >= number and self.events(name)[number - 1])

    def pid(self):
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    def dead(self):
        return self.tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    def state_path(self):
        return self.config / "sessions" / f"{self.pid()}.json"

    def state(self):
        try:
            return json.loads(self.state_path().read_text())
        except (OSError, ValueError):
            return {}

    def status(self):
        return self.state().get("status")

    def idle(self):
        return until(lambda: self.status() == "idle")

    def transcripts(self):
        return sorted(self.config.glob("projects/*/*.jsonl"))

    def records(self, session=None):
        found = [path for path in self.transcripts() if path.stem == (session or self.session)]
        lines = found[0].read_bytes().split(b"\n")[:-1] if found else []
        return [json.loads(line) for line in lines]

    def requests(self):
        return [request for request in read_log(self.home / "log") if request.kind == "main"]

    def request(self, number=1):
        return until(lambda: len(self.requests()) >= number and self.requests()[number - 1])

    def close(self):
        if self.kind == "scripted" and coverage.Coverage.current():  # one that is killed does not say what it ran
            with suppress(TimeoutError, ProcessLookupError, subprocess.CalledProcessError, ValueError):
                os.kill(self.pid(), signal.SIGHUP)
                until(self.dead)
        with suppress(ProcessLookupError, subprocess.CalledProcessError, ValueError):
            os.kill(self.pid(), signal.SIGKILL)
        if self.tmux_pid:
            with suppress(ProcessLookupError):
                os.kill(self.tmux_pid, signal.SIGKILL)
        if self.model_process:
            self.model_process.kill()
            self.model_process.wait()
            self.model_process.stdout.close()
        self.hooks.close()
