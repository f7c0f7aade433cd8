"""`sm demo`."""

from __future__ import annotations

import re

import click

from sm.cli.format import bar, coloured, emit_json, say, show
from sm.cli.options import UserOption

STEP = re.compile(r"^( *[\d.]+s  )(\w+)(.*)$", re.DOTALL)
COLOURS = {
    "driver": "90",
    "started": "32",
    "context": "90",
    "warned": "33",
    "handoff": "35",
    "cleared": "35",
    "woken": "36",
    "continued": "32",
}


def _show_line(line: str) -> None:
    """Print a line of the demo, the name of its step in colour."""
    match = STEP.match(line)
    show(line if match is None else match[1] + coloured(match[2], COLOURS.get(match[2])) + match[3])


@click.command()
@click.option("--client", cls=UserOption, help="The client's executable; default: the pinned one, or `claude` on PATH.")
@click.option(
    "--driver",
    type=click.Choice(["auto", "mod", "keys"]),
    default="auto",
    help="Drive it by a plugin in the client, or by keys; default: the plugin where the client can.",
)
@click.option("--keep", is_flag=True, help="Keep the session running until you press Enter.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(client: str | None, driver: str, *, keep: bool, as_json: bool) -> int:
    """Show a handoff with a real client and a scripted model: no account, nothing kept, under a minute."""
    from sm.demo import find_client, run  # noqa: PLC0415  # loads a whole server

    result = run(
        find_client(client), driver, say if as_json else _show_line, lambda percent: bar(percent, 20), keep=keep
    )
    if as_json:
        emit_json(result)
    elif result["ok"]:
        first, second = result["conversations"][0][:8], result["conversations"][-1][:8]
        show(f"\nSame session {result['session']}, new context: {first} → {second},")
        show(f"{result['rotation_seconds']:.2f} s from the end of the turn to the first request of the new context.")
        show("Without sm the client would have compacted this context into a summary.")
        show("Next: sm doctor, then sm new")
    else:
        say(f"The demo failed; steps not confirmed: {', '.join(result['missing']) or result['problem']}")
    return 0 if result["ok"] else 1
