"""Rows of the devices table: browsers that were let in, each by the hash of its secret."""

from __future__ import annotations

import json
from dataclasses import asdict

from sm.core.model.device import Device, PushSubscription
from sm.store.database import Database

COLUMNS = "id, name, created, seen, read_only, revoked, push, secret"
FORGET = "DELETE FROM devices WHERE coalesce(revoked, seen) < ?"


async def stored_devices(database: Database, since: float) -> dict[str, Device]:
    """Return the devices by the hash of their secret, after those were deleted that ended before `since`."""
    await database.run(lambda connection: connection.execute(FORGET, (since,)))
    query = f"SELECT {COLUMNS} FROM devices ORDER BY created, id"  # noqa: S608  # our own names
    rows = await database.read(lambda connection: connection.execute(query).fetchall())
    return {
        secret: Device(id_, name, created, seen, bool(read_only), revoked, _subscription(push))
        for id_, name, created, seen, read_only, revoked, push, secret in rows
    }


async def store_device(database: Database, secret: str, device: Device) -> None:
    """Insert the device, or write over what is stored of it."""
    push = None if device.push is None else json.dumps(asdict(device.push))
    values = (
        device.id, device.name, device.created, device.seen, int(device.read_only), device.revoked, push, secret
    )  # fmt: skip
    query = f"INSERT OR REPLACE INTO devices ({COLUMNS}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608  # our own names
    await database.run(lambda connection: connection.execute(query, values))


def _subscription(push: str | None) -> PushSubscription | None:
    return None if push is None else PushSubscription(**json.loads(push))
