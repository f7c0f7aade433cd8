"""Usage limits of the accounts: leaves every session of a limited account alone, and lets their work continue after it.

An account is a configuration directory of a client. A limit that one of its sessions meets is shared with the others if
it is proven. Once it has reset, each client has `limits.patience` seconds to continue by itself; then the sessions are
woken one after the other. All that has to survive a restart is in the sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sm.core import events as ev
from sm.core.errors import error
from sm.core.ids import as_argument
from sm.core.model.session import Session, Status
from sm.core.model.usage_limit import MODEL_LIMIT, ResumeRules, UsageLimit, UsedShare
from sm.core.ports.clock import Clock
from sm.core.ports.policies import Policies
from sm.core.ports.provider import TranscriptEvidence
from sm.engine.actor import Actor
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

CLOCK_CHECK_INTERVAL_S = 30.0
"""The loop's own clock stops while the machine sleeps, so the timer looks at the system's this often."""
RETRY_INTERVAL_S = 0.5
"""Between two looks at a session whose client is not ready to be woken yet."""
READY = frozenset({Status.IDLE, Status.WORKING, Status.SILENT, Status.BLOCKED, Status.COMPACTING})
"""Statuses of a client that is up, and of which it is known what it does."""
ANSWERED = ev.ToolUsed | ev.TurnEnded
MAX_RESUME_DELAY_S = 86_400.0
"""After the reset: work that has waited longer, as in a session that was not restored, waits for its user."""
USED_UP = 100.0
"""Per cent."""
MINUTE_S = 60.0

Account = tuple[str, str]
"""Provider and configuration directory."""


@dataclass(slots=True)
class UsageLimits:
    sessions: Sessions
    clock: Clock
    providers: Mapping[str, TranscriptEvidence]
    policies: Policies
    shares: dict[Account, dict[str, UsedShare]] = field(default_factory=dict)
    """What each account has used, as its clients last reported it."""
    woken_at: dict[Account, float] = field(default_factory=dict)
    """When a session of the account was woken last."""
    lifted_at: dict[Account, float] = field(default_factory=dict)
    """When a limited account was last seen to be answered."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    # --- what events mean for the other sessions of the account -----------------------------------------------------

    def follow(self, before: Session, after: Session, event: ev.Event) -> None:
        """Take note of a committed event."""
        if isinstance(event, ev.SessionLaunched):
            self._greet(after)
        if before.limit == after.limit:
            return
        self.changed.set()
        if after.limit is not None and after.limit.proven and isinstance(event, ev.TurnFailed):
            self._share(after, after.limit)
        elif before.limit is not None and before.limit.tried and isinstance(event, ANSWERED):
            self.lifted_at[account_of(after)] = event.at
        if after.limit is not None:
            self._refine(after, after.limit)

    def _refine(self, session: Session, limit: UsageLimit) -> None:
        """Tell it the exact end where the client has reported that before its hook, which names the minute alone."""
        for share in self.shares.get(account_of(session), {}).values():
            if 0 < (share.resets_at or 0.0) - (limit.resets_at or 0.0) < MINUTE_S:
                self._tell_end(self.sessions.actor(session.id), share)

    def _tell_end(self, actor: Actor, share: UsedShare) -> None:
        """Tell a session that has met that limit when it ends, unless it knows."""
        limit, current = actor.session.limit, actor.session.conversation
        if limit is None or current is None or share.percent < USED_UP or not share.resets_at:
            return
        if limit.kind in {share.kind, "usage"} and limit.resets_at != share.resets_at:
            at, resets_at = self.clock.now(), share.resets_at
            actor.put(ev.LimitTold(at=at, conversation=current.id, kind=share.kind, resets_at=resets_at))

    def _share(self, session: Session, limit: UsageLimit) -> None:
        for actor in self._of_account(account_of(session)):
            if actor.session.id != session.id and _applies(limit, session, actor.session):
                actor.put(ev.LimitShared(at=self.clock.now(), limit=limit))

    def _greet(self, session: Session) -> None:
        """Leave a client alone that is started while its account is limited."""
        known = self.limit_of(account_of(session))
        if known is not None and session.limit is None and _applies(known[1], known[0], session):
            self.sessions.actor(session.id).put(ev.LimitShared(at=self.clock.now(), limit=known[1]))

    def limit_of(self, account: Account) -> tuple[Session, UsageLimit] | None:
        """Return the proven limit of an account that ends last, with a session that has it; None without one now."""
        now = self.clock.now()
        held = [(session, session.limit) for session in self.sessions.all() if account_of(session) == account]
        limits = [
            (session, limit)
            for session, limit in held
            if limit is not None and limit.proven and not self._is_lifted(account, limit)
        ]
        current = [(session, limit) for session, limit in limits if limit.ends_at(now) > now]
        return max(current, key=lambda known: known[1].ends_at(now), default=None)

    def reported(self, session: Session, shares: Sequence[UsedShare], *, by_client: bool) -> None:
        """Take note of what its account has used, and of the exact end of a limit it has met.

        `by_client`: the client itself says so, and not only somebody with its token; then it holds for the account.
        """
        account = account_of(session)
        told = self._of_account(account) if by_client else [self.sessions.actor(session.id)]
        self.shares.setdefault(account, {}).update((share.kind, share) for share in shares)
        for share in shares:
            for actor in told:
                self._tell_end(actor, share)

    def _of_account(self, account: Account) -> list[Actor]:
        actors = self.sessions.actors.values()
        return [actor for actor in actors if not actor.session.ended and account_of(actor.session) == account]

    # --- the timer --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            self.changed.clear()
            pause = RETRY_INTERVAL_S
            with logged("usage limits not followed"):
                pause = await self._end_due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.changed.wait()

    async def _end_due(self) -> float:
        """End each limit whose time has come; return the seconds until the next one."""
        rules, pauses = self.policies.resume_rules(), [CLOCK_CHECK_INTERVAL_S]
        for actor, limit in sorted(self._limited(), key=lambda waiting: waiting[1].since):
            account, now = account_of(actor.session), self.clock.now()
            wait = self._due(account, limit, rules) - now
            if 0 < wait <= rules.patience and await self._is_cancelled(actor.session, limit):
                wait = 0.0  # the client does not continue by itself
            if wait <= 0 and _restarts_work(actor.session, limit):
                wait = self.woken_at.get(account, 0.0) + rules.stagger - now
            if wait <= 0 and (actor.session.status not in READY or _works_unseen(actor.session, limit)):
                wait = RETRY_INTERVAL_S
            if wait > 0:
                pauses.append(wait)
                continue
            with logged("usage limit not ended", session=actor.session.id):  # the others do not wait for it
                await self._end(actor, limit, rules.resume)
        return min(pauses)

    def _limited(self) -> Iterator[tuple[Actor, UsageLimit]]:
        for actor in tuple(self.sessions.actors.values()):
            limit = actor.session.limit
            if limit is not None and not limit.asks and not actor.session.ended:
                yield actor, limit

    def _due(self, account: Account, limit: UsageLimit, rules: ResumeRules) -> float:
        if self._is_lifted(account, limit):
            return self.lifted_at[account]
        return limit.ends_at(self.clock.now()) + rules.patience

    def _is_lifted(self, account: Account, limit: UsageLimit) -> bool:
        """Whether the account was answered while the limit should last, as after the user has bought more."""
        return limit.since < self.lifted_at.get(account, 0.0) < limit.ends_at(self.clock.now())

    async def _end(self, actor: Actor, limit: UsageLimit, resume: str) -> None:
        session = actor.session
        wakes = limit.interrupted and resume != "off" and not session.adopted
        wakes = wakes and not await self._is_answered(session, limit)
        if wakes and (resume == "ask" or await self._is_cancelled(session, limit)):
            await actor.ask(ev.ResumeAsked(at=self.clock.now()))
            return
        now = self.clock.now()
        recent = now < max(limit.ends_at(now), limit.since) + MAX_RESUME_DELAY_S
        restarts_work = _restarts_work(session, limit)
        await self._over(actor, limit, resumes=wakes and recent)
        if restarts_work:
            self.woken_at[account_of(session)] = now

    async def _is_cancelled(self, session: Session, limit: UsageLimit) -> bool:
        """Whether the user has ended the client's wait: then it is theirs to continue."""
        provider = self.providers[session.provider]
        return bool(limit.transcript) and await asyncio.to_thread(provider.wait_cancelled, limit.transcript)

    async def _is_answered(self, session: Session, limit: UsageLimit) -> bool:
        """Whether the client has continued by itself while no hook reached the server, as while it was down."""
        provider = self.providers[session.provider]
        return bool(limit.transcript) and await asyncio.to_thread(provider.answered, limit.transcript)

    async def _over(self, actor: Actor, limit: UsageLimit, *, resumes: bool) -> None:
        transcript, provider = limit.transcript, self.providers[actor.session.provider]
        wakes = resumes and limit.interrupted
        task = await asyncio.to_thread(provider.task, transcript) if wakes and transcript else ""
        await actor.ask(ev.LimitEnded(at=self.clock.now(), resumes=wakes, text=task))

    # --- commands ---------------------------------------------------------------------------------------------------

    async def resume(self, session: str) -> None:
        """Let a session's work continue now, since its user says so.

        Refused before the reset, and as long as the client may still continue by itself: it would do so a second time.
        """
        actor = self.sessions.actor(session)
        limit, named = actor.session.limit, f"Session {actor.session.name}"
        name = as_argument(actor.session.name, actor.session.id)
        if actor.session.ended:
            raise error("ended", f"{named} has ended", f"sm restore {name} brings it back")
        if limit is None:
            raise error("not_limited", f"{named} waits for no usage limit", "sm limits")
        if not limit.asks:
            await self._check_reset(actor.session, limit, name)
        await self._over(actor, limit, resumes=True)

    async def _check_reset(self, session: Session, limit: UsageLimit, name: str) -> None:
        now, named = self.clock.now(), f"Session {session.name}"
        ends = limit.ends_at(now)
        if ends > now and not self._is_lifted(account_of(session), limit):
            reset = "is expected to reset" if limit.resets_at is None else "resets"
            hint = f"If it is over already, prompt the agent yourself: sm attach {name}"
            raise error("not_reset", f"{named} waits for a usage limit that {reset} at {_local_time(ends)}", hint)
        until = ends + self.policies.resume_rules().patience
        if limit.interrupted and not limit.left and now < until and not await self._is_cancelled(session, limit):
            text = f"{named} may continue by itself until {_local_time(until)}, and would do so a second time"
            hint = f"Wait until then, or end the client's own wait: Escape in sm attach {name}"
            raise error("client_continues", text, hint)


def _local_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%d %b %H:%M:%S}"


def account_of(session: Session) -> Account:
    return session.provider, session.config


def _applies(limit: UsageLimit, met_by: Session, other: Session) -> bool:
    """Whether another session of the account meets it too: a limit of one model leaves sessions of others alone."""
    return limit.kind != MODEL_LIMIT or model_of(met_by) == model_of(other)


def model_of(session: Session) -> str | None:
    current = session.conversation
    return (current.monitor.reading.model if current is not None else None) or session.model


def _restarts_work(session: Session, limit: UsageLimit) -> bool:
    """Whether the end of the limit makes its client send requests at once."""
    rotates = session.rotation is not None and session.rotation.active
    return limit.interrupted or rotates or session.outbox.waiting > 0


def _works_unseen(session: Session, limit: UsageLimit) -> bool:
    """Whether its client is at work on a prompt of which no hook has told: the next hook shows what that is."""
    return limit.interrupted and session.status in {Status.WORKING, Status.SILENT, Status.COMPACTING}
