"""A browser as the server sees one: it opens the link that `sm web` makes, presses the button and keeps its cookie.

For tests without a real browser: `logged_in(api)`. For those with one: `served(tmp_path)` is a server on a real port,
and `login_link(api, port)` an address to open in it.
"""

import asyncio
import contextlib
import re
from dataclasses import dataclass, field

from sm.api.browsers import csrf_of
from tests.api.rig import House, house

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@contextlib.asynccontextmanager
async def served(root, **more):
    """Yield the server's inside and its port on loopback. Its sessions' clients have not started the browser."""
    async with house(root, **more) as api, api.listening() as port:
        client = await asyncio.create_subprocess_exec("sleep", "3600")
        api.engine.ports.panes.pid = client.pid
        try:
            yield api, port
        finally:
            client.kill()
            await client.wait()


async def login_path(api, **wanted):
    """Return a link as `sm web` gets it, from `/` on."""
    status, link = await api.call("POST", "/web/links", body=wanted)
    assert status == 201, link
    return link["path"]


async def login_link(api, port, **wanted):
    """Return a link for a browser on this machine."""
    return f"http://{api.devices.host}:{port}{await login_path(api, **wanted)}"


@dataclass
class Visitor:
    """A browser at one address of the server, without JavaScript: it keeps cookies, as browsers do."""

    api: House
    base: str = "http://127.0.0.1:9"
    cookies: dict = field(default_factory=dict)

    @property
    def host(self):
        return self.base.partition("://")[2]

    @property
    def secret(self):
        return self.cookies[self.api.devices.cookie]

    @property
    def own_headers(self):
        """What our page sends with all that is no GET."""
        return {"Origin": self.base, "Sec-Fetch-Site": "same-origin", "X-SM-CSRF": csrf_of(self.secret)}

    async def send(self, method, path, content=None, **headers):
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Host": self.host, **({"Cookie": cookie} if cookie else {}), **headers}
        async with self.api.client() as client:
            answer = await client.request(method, path, content=content, headers=sent)
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    async def get(self, path, **headers):
        return await self.send("GET", path, **{"Accept": "text/html,*/*", "Sec-Fetch-Site": "none", **headers})

    async def call(self, method, path, content=None, **headers):
        """A call of the page's JavaScript."""
        kind = {"Content-Type": "application/json"} if content is not None else {}
        return await self.send(method, path, content, **{**self.own_headers, **kind, **headers})

    async def press(self, path, **headers):
        """Open the link and press its button; return the answer to the form."""
        shown = await self.get(path)
        assert shown.status_code == 200, shown.text
        code = re.search(r'name="code" value="([^"]*)"', shown.text)[1]
        origin = {"Origin": self.base, "Sec-Fetch-Site": "same-origin"}
        return await self.send("POST", "/login", f"code={code}", **{**FORM, **origin, **headers})


async def logged_in(api, base="http://127.0.0.1:9", **wanted):
    """Return a browser that was let in; `wanted` as in the body of POST /web/links."""
    visitor = Visitor(api, base)
    answer = await visitor.press(await login_path(api, **wanted))
    assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text
    return visitor
