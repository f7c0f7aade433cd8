"""`sm web`: the link in a browser, in the terminal or as a code; and who is logged in."""

import asyncio
import os
import pty
import re
import stat
import sys

import pytest

from tests.web.browser import Visitor, logged_in

LINK = re.compile(r"http://sm-[0-9a-f]{8}\.localhost:\d+/login\?code=[\w-]{43}")


async def press(desk, url):
    base, _, path = url.partition("/login")
    return await Visitor(desk.api, base).press(f"/login{path}")


async def test_web_prints_a_link_that_lets_one_browser_in(desk):
    ran = await desk.run("web")
    assert (ran.code, ran.err) == (0, "open it in a browser: it lets one browser in, once, within five minutes\n")
    [url] = ran.out.splitlines()
    assert LINK.fullmatch(url)
    assert int(url.partition("/login")[0].rpartition(":")[2]) == desk.port
    assert (await press(desk, url)).status_code == 303
    assert (await press(desk, url)).status_code == 403


async def test_web_as_json_says_what_the_link_gives(desk):
    found = (await desk.run("web", "--read-only", "--name", "phone", "--json")).data
    assert set(found) == {"url", "elsewhere", "expires", "read_only"}
    assert (found["read_only"], found["elsewhere"]) == (True, [])
    await press(desk, found["url"])
    [device] = desk.api.devices.listed()
    assert (device.name, device.read_only) == ("phone", True)


async def test_the_links_of_configured_hosts_are_printed_too(tmp_path):
    from tests.cli.rig import desk_with_server

    async with desk_with_server(tmp_path, hosts=("laptop.example.net", "box:8443")) as desk:
        local, *elsewhere = (await desk.run("web")).out.splitlines()
        code = local.partition("code=")[2]
        hosts = ("laptop.example.net", "box:8443")
        assert elsewhere == [f"https://{host}/login?code={code}" for host in hosts]
        coded = await desk.run("web", "--qr", env={"COLUMNS": "80"})
        assert coded.out.splitlines()[-1].startswith("https://laptop.example.net/login?code=")
        assert "server.hosts" not in coded.err


async def test_the_code_is_drawn_where_it_has_room(desk):
    ran = await desk.run("web", "--qr", env={"COLUMNS": "80"})
    *code, url = ran.out.splitlines()
    assert LINK.fullmatch(url)
    assert len({len(line) for line in code}) == 1
    assert set("".join(code)) <= set("█▀▄ ")
    assert len(code[0]) <= 60
    assert "server.hosts" in ran.err
    narrow = await desk.run("web", "--qr", env={"COLUMNS": "30"})
    assert LINK.fullmatch(narrow.out.strip())
    assert "columns" in narrow.err


def decoded_code(lines):
    """The dark modules of the drawing, without its border, as rows of 0 and 1."""
    rows = []
    for line in lines:
        upper = [character in " ▄" for character in line]
        lower = [character in " ▀" for character in line]
        rows += [upper, lower]
    return rows


async def test_the_code_is_that_of_the_link(desk):
    import segno

    *code, url = (await desk.run("web", "--qr", env={"COLUMNS": "80"})).out.splitlines()
    wanted = [[bool(module) for module in row] for row in segno.make(url, error="l", micro=False).matrix_iter(border=2)]
    assert decoded_code(code)[: len(wanted)] == wanted


async def test_devices_lists_and_logs_out(desk):
    assert (await desk.run("web", "devices")).err == "no browser is logged in; sm web lets one in\n"
    visitor = await logged_in(desk.api, name="phone", read_only=True)
    head, row = (await desk.run("web", "devices")).out.splitlines()
    assert head.split() == ["NAME", "ID", "RIGHTS", "NOTIFIED", "SEEN", "SINCE"]
    assert row.split()[::2][0] == "phone"
    assert "read-only" in row
    [device] = (await desk.run("web", "devices", "--json")).data
    ran = await desk.run("web", "devices", "--revoke", device["id"])
    assert (ran.code, ran.err) == (0, f"logged out: phone ({device['id']})\n")
    assert (await visitor.get("/sessions")).status_code == 401
    again = await desk.run("web", "devices", "--revoke", device["id"], "--json")
    assert (again.code, again.error["code"]) == (1, "not_found")


@pytest.mark.parametrize("identity", ["", "a/b", "x"])
async def test_an_id_that_is_none_logs_no_one_out(desk, identity):
    await logged_in(desk.api)
    ran = await desk.run("web", "devices", "--revoke", identity)
    assert (ran.code, "sm web devices" in ran.err) == (1, True)
    assert len(desk.api.devices.listed()) == 1


@pytest.mark.parametrize(
    "arguments", [["web"], ["web", "--json"], ["web", "devices"], ["web", "devices", "--revoke", "x"]]
)
async def test_an_agent_lets_no_browser_in(desk, arguments):
    session = await desk.api.new("s1")
    ran = await desk.run(*arguments, session=session)
    assert ran.code == 1
    assert "may let no browser in" in ran.err + ran.out
    assert desk.api.devices.links.known == {}


async def on_a_terminal(desk, *arguments, env):
    """Run it with a terminal as its output; return what it has shown."""
    main, side = pty.openpty()
    process = await desk.start(*arguments, env=env, stdout=side, stderr=side)
    os.close(side)
    shown = b""
    while True:
        try:
            part = await asyncio.to_thread(os.read, main, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    await process.wait()
    os.close(main)
    return shown.decode()


@pytest.fixture
def opener(tmp_path):
    """A browser that writes down what it was to open."""
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> {opened}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program, opened


@pytest.mark.parametrize(
    ("arguments", "env", "is_opened"),
    [
        ([], {"DISPLAY": ":7"}, True),
        (["--no-open"], {"DISPLAY": ":7"}, False),
        ([], {"DISPLAY": ":7", "SSH_CONNECTION": "a b c d"}, False),
        ([], {"DISPLAY": ":7", "SSH_TTY": "/dev/pts/1"}, False),
        ([], {}, sys.platform == "darwin"),
    ],
)
async def test_the_link_is_opened_where_somebody_sees_a_browser(desk, opener, arguments, env, is_opened):
    program, opened = opener
    shown = await on_a_terminal(desk, "web", *arguments, env={**env, "BROWSER": f"{program} %s", "TERM": "xterm"})
    [url] = LINK.findall(shown)
    for _ in range(50 if is_opened else 5):
        if opened.exists():
            break
        await asyncio.sleep(0.02)
    assert (opened.read_text().split() if opened.exists() else []) == ([url] if is_opened else [])
    assert ("opened in your browser" in shown) is is_opened


async def test_without_the_library_for_codes_the_error_says_how_to_get_it(desk):
    blocked = "import sys; sys.modules['segno'] = None; from sm.cli import main; sys.argv[0] = 'sm'; main()"
    ran = await desk.run("web", "--qr", command=(sys.executable, "-I", "-c", blocked))
    assert (ran.code, ran.out) == (1, "")
    assert "hint: pip install 'agent-sm[web]'" in ran.err
    assert desk.api.devices.links.known == {}
