"""A wrapper around clients of a test's own, without a server; it is run as `python -m tests.cli.wrapping`.

The plan is JSON: the clients' code in order, and a directory. The next restart is granted as soon as the running client
has made the file `ready`; what the server would have been told is printed into the file `told`.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from sm.cli.foreground.terminal import UserTerminal
from sm.cli.foreground.wrapper import ClientWrapper

EXIT_LINES = ["", "Farewell:", "come back"]


class PlannedLine:
    def __init__(self, place, clients):
        self.place, self.clients = place, clients
        self.granted = None
        self.ring = None

    def launch(self):
        code = self.clients.pop(0)
        argv = code if isinstance(code, list) else [sys.executable, "-I", "-c", code]
        return {"argv": argv, "conversation": "c", "config": "", "asked": [], "farewell": EXIT_LINES}

    def open(self):
        threading.Thread(target=self._grant, daemon=True).start()

    def _grant(self):
        while self.clients:
            if self.granted is None and (self.place / "ready").exists():
                (self.place / "ready").unlink()
                self.granted = self.launch()
                self.ring()
            time.sleep(0.01)

    def tell(self, *words):
        with (self.place / "told").open("a") as file:
            file.write(json.dumps(words) + "\n")

    def started(self, child):
        self.granted = None
        self.tell("started", child.pid)

    def close(self, pid, code, number):
        self.tell("ended", code, number)


def main():
    place, clients = Path(sys.argv[1]), json.loads(sys.argv[2])
    line = PlannedLine(place, clients)
    wrapper = ClientWrapper(line, {**os.environ, "PLACE": str(place)}, UserTerminal())
    line.ring = wrapper.ring
    sys.exit(wrapper.run(line.launch()))


if __name__ == "__main__":
    main()
