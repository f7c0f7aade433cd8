"""The process that reads this machine's runs: started when a page wants them, ended when none has for a while.

Their engine is 45 MB and more than half a second: the server never loads it, and asks this process, which has loaded it
once (`runner/reader.py`). Without a run on this machine nothing is started.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sm.core.errors import error
from sm.engine.tasks import Spawn
from sm.paths import SmHome
from sm.runner.known_runs import ReadAnswer, ReadRequest

IDLE_S = 30.0
ANSWER_TIMEOUT_S = 20.0
MAX_ANSWER_BYTES = 32 * 1024 * 1024
Waiting = tuple[ReadRequest, "asyncio.Future[ReadAnswer]"]


@dataclass(slots=True)
class RunReader:
    directory: Path
    spawn: Spawn
    wanted: asyncio.Queue[Waiting] = field(default_factory=asyncio.Queue)
    working: bool = False

    @classmethod
    def of(cls, home: str, spawn: Spawn) -> RunReader:
        return cls(SmHome(Path(home)).runs, spawn)

    async def read(self, run: str = "") -> ReadAnswer:
        """Return the newest runs, or one with its report; SmError if they cannot be read."""
        if not await asyncio.to_thread(self._has_any):
            return ReadAnswer(runs=())
        answer: asyncio.Future[ReadAnswer] = asyncio.get_running_loop().create_future()
        self.wanted.put_nowait((ReadRequest(run), answer))
        if not self.working:
            self.working = True
            self.spawn(self._work())
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await answer
        except (OSError, ValueError, msgspec.MsgspecError) as problem:
            raise error("not_answering", "The runs cannot be read now", "sm runs list says why") from problem

    def _has_any(self) -> bool:
        return next(self.directory.glob("*.sqlite"), None) is not None

    async def _work(self) -> None:
        """Have one process after the other answer, until no page asks any more."""
        try:
            while not self.wanted.empty():
                await self._answered_by_one()
        finally:
            self.working = False
            while not self.wanted.empty():
                _failed(self.wanted.get_nowait()[1], OSError("no process to read them"))

    async def _answered_by_one(self) -> None:
        """Start a process and pass on what is asked, until it fails or is idle."""
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "sm.runner.reader", str(self.directory)),
            stdin=pipe,
            stdout=pipe,
            stderr=nothing,
            env={"LANG": "C.UTF-8"},
            cwd="/",
            limit=MAX_ANSWER_BYTES,
        )
        try:
            with suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(IDLE_S):
                        request, answer = await self.wanted.get()
                    if not await _passed_on(process, request, answer):
                        return
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _passed_on(
    process: asyncio.subprocess.Process, request: ReadRequest, answer: asyncio.Future[ReadAnswer]
) -> bool:
    """Whether the process has answered: one that has not is replaced."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(request) + b"\n")
        line = await asyncio.wait_for(process.stdout.readline(), ANSWER_TIMEOUT_S)
        found = msgspec.json.decode(line, type=ReadAnswer)
    except (OSError, ValueError, msgspec.MsgspecError) as problem:  # also of a line that is too long, or none
        _failed(answer, problem)
        return False
    if not answer.done():
        answer.set_result(found)
    return True


def _failed(answer: asyncio.Future[ReadAnswer], problem: Exception) -> None:
    if not answer.done():  # whoever has asked may have given up
        answer.set_exception(problem)
