"""`sm demo`."""

from __future__ import annotations

import click

from sm.cli.output import bar, emit_json, say, show


@click.command()
@click.option("--client", help="The client's executable; default: the pinned one, or `claude` on PATH.")
@click.option("--keep", is_flag=True, help="Leave it running for a look, until Enter.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(client: str | None, *, keep: bool, as_json: bool) -> int:
    """Show the main job with a real client and a scripted model: no account, nothing kept, under a minute."""
    from sm.demo import find_client, run  # noqa: PLC0415  # loads a server of its own

    result = run(find_client(client), say if as_json else show, lambda percent: bar(percent, 20), keep=keep)
    if as_json:
        emit_json(result)
    elif result["ok"]:
        first, second = result["conversations"][0][:8], result["conversations"][-1][:8]
        show(f"\nsame session {result['session']}, context {first} → {second}")
        show(f"rotation: {result['rotation_seconds']:.2f} s from the Stop hook to the first request of the new context")
        show("next: sm doctor, then sm new")
    else:
        say(f"the demo failed; not confirmed: {', '.join(result['missing']) or result['problem']}")
    return 0 if result["ok"] else 1
