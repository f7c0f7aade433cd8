"""Checks that SM_HOME is on a disk of this machine: SQLite's log and locks do not work over a network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from sm.cli.doctor_checks.disk import nearest
from sm.cli.doctor_checks.finding import OK, WARN, Finding, Surroundings, run_program

TABLE = Path("/proc/self/mountinfo")
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|afpfs|ncpfs|webdav|davfs|ceph|lustre|beegfs|gpfs|ocfs2|gfs2"
    r"|fuse\.(?:sshfs|glusterfs|ceph\S*|rclone|s3fs|davfs2?|gvfsd-fuse|juicefs)"
)
OCTAL = re.compile(r"\\(\d{3})")


def local(where: Surroundings) -> Finding:
    place = nearest(where.home.root).resolve()
    kind = kind_of(place, _mounts(where))
    if kind is None or NETWORK.fullmatch(kind) is None:
        return Finding(OK, f"on a local file system ({kind})" if kind else "the file system is not known")
    hint = "set SM_HOME to a directory on a local disk: sm kill the sessions, sm server stop, move it"
    return Finding(WARN, f"{place} is on a network file system ({kind}): a database there may be damaged", hint)


def _mounts(where: Surroundings) -> list[tuple[str, str]]:
    """Return the place and the kind of each file system."""
    if sys.platform == "darwin":
        answer = run_program(["/sbin/mount"], where.environ)
        return [] if isinstance(answer, Finding) else macos_mounts(answer.output)
    try:
        return linux_mounts(os.fsdecode(TABLE.read_bytes()))
    except OSError:
        return []


def macos_mounts(printed: str) -> list[tuple[str, str]]:
    """Parse what `mount` prints: `DEVICE on PLACE (KIND, OPTIONS)`."""
    lines = [line.rpartition(" (") for line in printed.splitlines()]
    found = [(named.partition(" on ")[2], options) for named, _, options in lines]
    return [(place, options.partition(",")[0].rstrip(")")) for place, options in found if place.startswith("/")]


def linux_mounts(table: str) -> list[tuple[str, str]]:
    """Parse `mountinfo`: the fifth field is the place, with octal escapes, the first after `-` the kind."""
    rows = [line.split(" ") for line in table.splitlines()]
    return [
        (OCTAL.sub(lambda found: chr(int(found[1], 8)), row[4]), row[row.index("-") + 1]) for row in rows if "-" in row
    ]


def kind_of(place: Path, mounts: list[tuple[str, str]]) -> str | None:
    """Return the kind of the file system that holds a place: the deepest, and of several there the last."""
    around = [
        (len(Path(mount).parts), number) for number, (mount, _) in enumerate(mounts) if place.is_relative_to(mount)
    ]
    return mounts[max(around)[1]][1] if around else None
