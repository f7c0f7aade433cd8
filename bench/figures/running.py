"""What several figures need of a session that runs."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.rig import Rig


async def settled(rig: Rig, session: str) -> None:
    """Wait until the session is idle with nothing queued."""
    await rig.wait_view(session, lambda view: view["status"] == "idle" and view["queued"] == 0, "idle")


async def environment(rig: Rig, session: str) -> dict[str, str]:
    """What the session's own processes have in their environment."""
    pid = (await rig.view(session))["pid"]
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
