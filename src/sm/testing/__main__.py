"""Runs the scripted model by itself until SIGTERM or SIGINT, and prints its address as one line of JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from sm.testing.model import ScriptedModel, read_scenario


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sm.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--scenario", type=Path, help="JSON or, by its suffix, TOML")
    parser.add_argument("--log", type=Path, help="requests are appended to it, one JSON object a line")
    asyncio.run(serve(parser.parse_args()))


async def serve(options: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    script = read_scenario(options.scenario) if options.scenario else None
    async with ScriptedModel(script, port=options.port, log=options.log) as model:
        sys.stdout.write(json.dumps({"url": model.url, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    main()
