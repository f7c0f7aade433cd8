"""The devices that are let in: who is one, since when, until when; and by which hosts the page is reached.

They are all in memory, and in the database for the next server. A login counts once it is stored, the end of a device
at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from starlette.responses import Response

from sm.api.security import is_number
from sm.core.errors import Refused, SmError, error
from sm.core.ids import token_hash
from sm.core.model.device import MAX_UNUSED_S, Device, PushSubscription
from sm.core.ports.clock import Clock
from sm.notify.push import PushChannel, PushSender
from sm.paths import SmHome
from sm.store.database import Database
from sm.store.devices import store_device, stored_devices
from sm.web.access.links import LoginLinks
from sm.web.access.screens import refused_page

SECRET_BYTES = 32
SEEN_INTERVAL_S = 60.0
"""How exact the time of the last request is stored."""
MAX_DEVICES = 50
MAX_PORT_DIGITS = 5


@dataclass(slots=True)
class Devices:
    database: Database
    clock: Clock
    home_id: str
    """Tells this server from another one on the same host, for which a browser keeps cookies too."""
    configured_hosts: Callable[[], tuple[str, ...]]
    links: LoginLinks
    push: PushSender
    by_secret: dict[str, Device] = field(default_factory=dict)
    """By the hash of the secret."""
    endings: dict[str, asyncio.Event] = field(default_factory=dict)
    """Of the devices that have sent a request, by id."""
    trying: asyncio.Lock = field(default_factory=asyncio.Lock)
    """While an address that a browser has named is tried."""

    @classmethod
    async def open(
        cls, database: Database, clock: Clock, home: str, configured_hosts: Callable[[], tuple[str, ...]]
    ) -> Devices:
        known = await stored_devices(database, clock.now() - MAX_UNUSED_S)
        push = PushSender(SmHome(Path(home)), os.environ)
        return cls(database, clock, home_id(home), configured_hosts, LoginLinks(clock), push, known)

    @property
    def cookie(self) -> str:
        return f"sm_device_{self.home_id}"

    @property
    def host(self) -> str:
        """The name on loopback that browsers know as this server's alone: they send its cookies nowhere else."""
        return f"sm-{self.home_id}.localhost"

    def admits(self, host: str) -> bool:
        named = host.lower()
        own, colon, port = named.partition(":")
        is_own = own == self.host and (not colon or (is_number(port) and len(port) <= MAX_PORT_DIGITS))
        return is_own or named in self.configured_hosts()

    def device(self, secret: str) -> Device | None:
        device = self.by_secret.get(token_hash(secret))
        return device if device is not None and device.is_valid(self.clock.now()) else None

    async def used(self, device: Device) -> None:
        now = self.clock.now()
        if now - device.seen < SEEN_INTERVAL_S:
            return
        with suppress(SmError):  # a full disk locks no device out
            await self._store(self._replaced(device.id, seen=now))

    def ending(self, device: Device) -> asyncio.Event:
        return self.endings.setdefault(device.id, asyncio.Event())

    def page(self, refused: Refused, status: int) -> Response:
        return refused_page(refused, status)

    def listed(self) -> list[Device]:
        """Return those that may come in, the newest first."""
        now = self.clock.now()
        return sorted(
            (device for device in self.by_secret.values() if device.is_valid(now)),
            key=lambda device: (-device.created, device.id),
        )

    async def add(self, name: str, *, read_only: bool) -> tuple[str, Device]:
        """Let a device in; return its secret."""
        if len(self.listed()) >= MAX_DEVICES:
            raise error("too_many_devices", f"{MAX_DEVICES} devices are logged in", "sm web devices --revoke ID")
        secret, now = secrets.token_urlsafe(SECRET_BYTES), self.clock.now()
        device = Device(secrets.token_hex(4), name, now, now, read_only)
        await store_device(self.database, token_hash(secret), device)
        self.by_secret[token_hash(secret)] = device
        return secret, device

    async def revoke(self, device: Device) -> Device:
        """End what the device may do, with the streams that it has open, also where that cannot be stored."""
        gone = self._replaced(device.id, revoked=self.clock.now(), push=None)
        self.ending(device).set()
        await self._store(gone)
        return gone

    # --- notifications ------------------------------------------------------------------------------------------------

    def channels(self) -> tuple[PushChannel, ...]:
        """Return a channel for each device that is notified."""
        return tuple(
            PushChannel(
                device.id, device.name, self.push, partial(self.subscription, device.id), partial(self.drop, device.id)
            )
            for device in self.listed()
            if device.push is not None
        )

    def subscription(self, identity: str) -> PushSubscription | None:
        """Return how a device is notified, if it may still come in."""
        return next((device.push for device in self.listed() if device.id == identity), None)

    async def notify(self, device: Device, push: PushSubscription | None) -> Device:
        """Notify the device so from now on, or no longer; another device was the same browser if it was notified so."""
        changed = [self._replaced(device.id, push=push)]
        changed += [
            self._replaced(other.id, push=None)
            for other in self.listed()
            if push is not None and other.id != device.id and other.push and other.push.endpoint == push.endpoint
        ]
        for each in changed:
            await self._store(each)
        return changed[0]

    async def drop(self, identity: str, push: PushSubscription) -> None:
        """Forget how a device is notified, if that is still the way."""
        found = next((device for device in self.listed() if device.id == identity and device.push == push), None)
        if found is not None:
            await self.notify(found, None)

    # --- in memory and on disk ----------------------------------------------------------------------------------------

    def _replaced(self, identity: str, **changes: object) -> Device:
        key, device = self._known(identity)
        changed = self.by_secret[key] = replace(device, **changes)  # type: ignore[arg-type]  # fields of the value
        return changed

    def _known(self, identity: str) -> tuple[str, Device]:
        return next((key, device) for key, device in self.by_secret.items() if device.id == identity)

    async def _store(self, device: Device) -> None:
        await store_device(self.database, self._known(device.id)[0], device)


def home_id(home: str) -> str:
    return hashlib.sha256(home.encode("utf-8", "surrogateescape")).hexdigest()[:8]
