"""Web push: a browser that was let in is one more channel, which its own push service reaches while no page is open.

The service of the browser's maker carries it and cannot read it; `deliver_push.py` encrypts it and sends it. A device
that is not notified any more gets nothing, also of what was waiting for it.
"""

from __future__ import annotations

import asyncio
import base64
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from sm.core.errors import SmError, error
from sm.core.model.device import PushSubscription
from sm.core.model.notification import UserNotification, ended_run
from sm.core.ports.notifier import ChannelError, OutOfReachError
from sm.files import read_regular
from sm.notify import deliver_push
from sm.notify.process import run
from sm.paths import SmHome, create_private

MAX_TEXT_BYTES = 2_800
"""Services take 4,096 bytes in all, encrypted and with a head."""
MAX_TITLE_BYTES = 500
MAX_KEY_BYTES = 4_096
"""Of its file."""


class GoneError(OutOfReachError):
    """The browser has given its subscription up: nothing reaches it by that again."""


class PushText(msgspec.Struct):
    """What the page's worker reads."""

    title: str
    text: str
    session: str
    """The session whose page a click opens; empty for the fleet's."""
    run: str = ""
    """The run that has ended, likewise."""


@dataclass(frozen=True, slots=True)
class PushSender:
    home: SmHome
    environ: Mapping[str, str]
    """Of the server: the program gets what is allowed of it."""
    program: tuple[str, ...] = (sys.executable, "-I", deliver_push.__file__)

    async def public_key(self) -> str:
        """Return what a browser has to know of this server's key, which is made now if there is none."""
        return await asyncio.to_thread(_public_key, self.home)

    async def send(self, to: PushSubscription, sent: UserNotification) -> None:
        try:
            key = await asyncio.to_thread(_private_key, self.home)
        except SmError as problem:
            raise ChannelError(problem.refused.message) from problem
        payload = msgspec.json.encode(_text(sent)).decode()
        given = {"endpoint": to.endpoint, "p256dh": to.p256dh, "auth": to.auth, "key": key, "payload": payload}
        code, _ = await run(self.program, msgspec.json.encode(given), self.environ)
        if code == deliver_push.GONE:
            raise GoneError(deliver_push.PROBLEMS[code])
        if code:
            raise ChannelError(deliver_push.PROBLEMS.get(code, f"the delivery failed (exit code {code})"))


@dataclass(frozen=True, slots=True)
class PushChannel:
    device: str
    called: str
    sender: PushSender
    subscription: Callable[[], PushSubscription | None]
    """Of the device, at this moment."""
    gone: Callable[[PushSubscription], Awaitable[None]] = field(repr=False)

    @property
    def name(self) -> str:
        return f"push to {self.called} ({self.device})"

    async def send(self, sent: UserNotification) -> None:
        to = self.subscription()
        if to is None:
            raise OutOfReachError("this device is not notified any more")
        try:
            await self.sender.send(to, sent)
        except GoneError:
            await self.gone(to)
            raise


def _text(sent: UserNotification) -> PushText:
    about = {(episode.session, ended_run(episode)) for episode in sent.episodes}
    session, run = about.pop() if len(about) == 1 else ("", "")
    return PushText(_cut(sent.title, MAX_TITLE_BYTES), _cut(sent.text, MAX_TEXT_BYTES), session, run)


def _cut(text: str, most: int) -> str:
    """Return the text within so many bytes, as it is in JSON."""
    shown = text
    while len(msgspec.json.encode(shown)) > most:
        shown = shown[: len(shown) * 9 // 10]
    return text if shown == text else f"{shown}…"


def _public_key(home: SmHome) -> str:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415  # an extra
        from py_vapid import Vapid  # noqa: PLC0415
    except ImportError as problem:
        hint = "pip install 'agent-sm[web]' into the environment of sm"
        raise error("no_push", "What encrypts for browsers is not installed", hint) from problem
    if not home.push_key.exists():
        new = Vapid()
        new.generate_keys()
        create_private(home.push_key, new.private_pem())
    point = Vapid.from_pem(_private_key(home).encode()).public_key.public_bytes(
        Encoding.X962, PublicFormat.UncompressedPoint
    )
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def _private_key(home: SmHome) -> str:
    """Return this server's private key; SmError if it is missing or others could have read it."""
    hint = f"remove {home.push_key}, then let each device notify itself again"
    try:
        content, found = read_regular(home.push_key, MAX_KEY_BYTES)
        text = content.decode("ascii")
    except (OSError, ValueError) as problem:
        raise error("no_push", f"Cannot read {home.push_key}", hint) from problem
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise error("no_push", f"Others can read {home.push_key}", hint)
    return text
