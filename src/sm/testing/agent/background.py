"""Work that outlives the turn that started it: shells and subagents. Its end is reported to the model by itself."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
NOTE = """<task-notification>
<task-id>{id}</task-id>
<status>completed</status>
<summary>Background task "{description}" completed</summary>
</task-notification>"""


class BackgroundTasks:
    def __init__(self, ended: Callable[[str], None]) -> None:
        self._tasks: dict[str, Json] = {}
        self._ended = ended

    def shell(self, process: subprocess.Popen[bytes], command: str) -> str:
        return self._start({"type": "shell", "description": command, "command": command}, process.communicate)

    def subagent(self, description: str, seconds: float) -> str:
        members = {"type": "subagent", "description": description, "agent_type": "general-purpose"}
        return self._start(members, lambda: time.sleep(seconds))

    def _start(self, members: Json, work: Callable[[], object]) -> str:
        name = os.urandom(4).hex()
        self._tasks[name] = {"id": name, "status": "running", **members}

        def run() -> None:
            work()
            task = self._tasks.pop(name)
            self._ended(NOTE.format(id=name, description=task["description"]))

        threading.Thread(target=run, daemon=True).start()
        return name

    def tasks(self) -> list[Json]:
        return list(self._tasks.values())

    def resting_status(self) -> str:
        """Return the state file's status once the turn is over."""
        kinds = {task["type"] for task in self.tasks()}
        return "busy" if "subagent" in kinds else "shell" if kinds else "idle"
