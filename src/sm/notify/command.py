"""A command of the user's: the notification comes as JSON on its standard input, never in its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sm.core.model.notification import UserNotification
from sm.core.ports.notifier import ChannelError
from sm.notify.process import run


class NotifiedEpisode(msgspec.Struct):
    kind: str
    session: str
    name: str
    since: float
    said: str
    quoted: str
    """Words of an agent or a tool, as they are but for secrets and control characters."""


class CommandInput(msgspec.Struct):
    """What the command reads: one line of JSON."""

    title: str
    text: str
    episodes: list[NotifiedEpisode]
    schema: int = 1


@dataclass(frozen=True, slots=True)
class CommandChannel:
    argv: tuple[str, ...]
    environ: Mapping[str, str]

    @property
    def name(self) -> str:
        return "command"

    async def send(self, sent: UserNotification) -> None:
        code, said = await run(self.argv, _input(sent), self.environ)
        if code:
            raise ChannelError(f"{self.argv[0]} ended with exit code {code}{said and ': ' + said}")


def _input(sent: UserNotification) -> bytes:
    episodes = [
        NotifiedEpisode(found.kind.value, found.session, found.name, found.since, found.said, found.quoted)
        for found in sent.episodes
    ]
    return msgspec.json.encode(CommandInput(sent.title, sent.text, episodes)) + b"\n"
