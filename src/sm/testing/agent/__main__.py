"""Runs the scripted agent in this terminal: `python -m sm.testing.agent --settings FILE [prompt]`."""

from __future__ import annotations

import os
import sys
import termios
import threading
import tty

from sm.testing.agent.client import ScriptedClient
from sm.testing.agent.screen import MODES_OFF, MODES_ON, write_all
from sm.testing.agent.settings import read_start

THREAD_STACK_BYTES = 256 * 1024
"""A hundred agents run at the same time: their threads do not need 8 MB each."""


def main() -> None:
    start = read_start(sys.argv[1:])
    threading.stack_size(THREAD_STACK_BYTES)
    before = termios.tcgetattr(0)
    tty.setraw(0)
    write_all(1, MODES_ON.encode())
    code = 1
    try:
        code = ScriptedClient(start).run()
    finally:
        write_all(1, f"\r\n{MODES_OFF}".encode())
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    sys.stdout.flush()
    os._exit(code)  # the worker may still wait for a tool or a hook


if __name__ == "__main__":
    main()
