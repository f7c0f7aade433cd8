"""Usage limits of the accounts, and the sessions that wait for their end."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend, target
from sm.engine.usage_limits import Account, account_of
from sm.wire import AccountView, LimitsAnswer, UsedShareView, limit_view, limited_session, session_view


async def show(request: Request) -> Response:
    """Each account with a running session: its limit, what it has used as far as that is known, and who waits."""
    engine = backend(request).engine
    accounts = sorted({account_of(session) for session in engine.sessions.living() if session.config})
    rules = engine.ports.policies.resume_rules()
    return answer(LimitsAnswer(rules.resume, rules.patience, [_account(request, account) for account in accounts]))


def _account(request: Request, account: Account) -> AccountView:
    engine = backend(request).engine
    known = engine.usage_limits.limit_of(account)
    own = [session for session in engine.sessions.living() if account_of(session) == account]
    waiting = [limited_session(session) for session in own if session.limit is not None]
    shares = engine.usage_limits.shares.get(account, {}).values()
    used = [UsedShareView(share.kind, share.percent, share.resets_at) for share in shares]
    return AccountView(*account, limit_view(known[1] if known else None), used, waiting)


async def resume(request: Request) -> Response:
    """Let the session continue now that its limit has reset, unless its client may still do so by itself."""
    actor = target(request)
    await backend(request).engine.usage_limits.resume(actor.session.id)
    return answer(session_view(actor.session))
