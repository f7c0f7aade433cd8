"""Who may call a route: the table in `app.py` gives each one an `Authority`, which is checked before its own code runs.

The user may call all of them, from a browser those that the table opens to one. A session acts for itself and on its
children. What hangs on a body, or on what is stored, only the route's own code can decide; the table then says it in
words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sm.api.browsers import READING
from sm.api.inside import check_inside, check_outside
from sm.api.routes import target
from sm.api.security import Caller, caller_of
from sm.core.errors import SmError, error
from sm.core.model.session import Session

Endpoint = Callable[[Request], Awaitable[Response]]


def owns(caller: Caller, session: Session) -> bool:
    """The user owns every session, a session itself and its children."""
    return caller.is_user or caller.session in {session.id, session.parent}


def only_user(request: Request) -> None:
    if not caller_of(request).is_user:
        raise error("forbidden", "A session may not do this", "ask the user who runs sm")


def only_local_user(request: Request) -> None:
    only_user(request)
    if caller_of(request).device is not None:
        raise not_from_browser()


def not_from_browser(what: str = "This") -> SmError:
    hint = "use the command line on the machine where sm runs"
    return error("not_from_browser", f"{what} is not for a browser", hint)


def _only_self(request: Request) -> None:
    """For what concerns one's own context: a parent may not, the user may."""
    if not is_self(request):
        raise error("not_self", "A session may do this for itself only", "ask the user who runs sm")


def is_self(request: Request) -> bool:
    """True for the user, and for the session that the path names."""
    session, caller = target(request).session, caller_of(request)
    return caller.is_user or caller.session == session.id


def _only_owner(request: Request) -> None:
    if not owns(caller_of(request), target(request).session):
        raise error("not_self", "A session may do this for itself and its children only", "ask the user who runs sm")


def _only_above(request: Request) -> None:
    """For what no session may do to itself, as ending it."""
    session, caller = target(request).session, caller_of(request)
    if not caller.is_user and caller.session != session.parent:
        raise error("forbidden", "A session may do this to its own children only", "ask the user who runs sm")


def _only_device(request: Request) -> None:
    only_user(request)
    if caller_of(request).device is None:
        raise error("forbidden", "Only a browser that is logged in may do this, for itself", "sm web lets one in")


def _anybody(_: Request) -> None:
    """Every caller that the guard has let in."""


@dataclass(frozen=True, slots=True)
class Authority:
    words: str
    """Who may, as the reference says it."""
    check: Callable[[Request], None] = _anybody
    """Raises SmError for anybody else."""


USER = Authority("the user", only_user)
SELF = Authority("the user, the session itself", _only_self)
OWNER = Authority("the user, the session itself, its parent", _only_owner)
ABOVE = Authority("the user, the session's parent", _only_above)
ANYBODY = Authority("the user, any session")
DEVICE_OR_USER = Authority("the user, a device of theirs", only_user)
OWN_DEVICE = Authority("a device, for itself alone, a read-only one too", _only_device)
OPEN = Authority("everybody, without a token")


def decided(words: str) -> Authority:
    """The route's own code checks it."""
    return Authority(words)


class ApiRoute(Route):
    """One method of one path, with who may call it."""

    def __init__(
        self,
        method: str,
        path: str,
        endpoint: Endpoint,
        may: Authority,
        *,
        from_anywhere: bool = False,
        from_browser: bool = False,
    ) -> None:
        self.may = may
        self.from_anywhere = from_anywhere
        """A session's token alone is enough, though it changes something: see `inside.py`."""
        self.from_browser = from_browser
        """A device may call it where the user may. What names a program or any file, is a program's own part, or
        decides who gets in is for the machine's own user alone."""
        super().__init__(path, self._checked(endpoint), methods=[method])

    def _checked(self, endpoint: Endpoint) -> Endpoint:
        """Return the route's code behind the checks of who calls it, and then from where."""

        @wraps(endpoint)
        async def checked(request: Request) -> Response:
            if self.may is not OPEN:
                await self._check_browser(request)
                self.may.check(request)
                if not self.from_anywhere:
                    await check_inside(request)
            return await endpoint(request)

        return checked

    async def _check_browser(self, request: Request) -> None:
        caller = caller_of(request)
        if caller.stranger:
            raise error("unauthorized", "A valid bearer token is needed")
        if caller.device is None:
            return
        if not self.from_browser:
            raise not_from_browser()
        if request.method in READING:
            return
        if caller.device.read_only and self.may is not OWN_DEVICE:
            raise error("read_only", "This device is read-only", "sm web without --read-only gives another link")
        await check_outside(request)
