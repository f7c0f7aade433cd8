"""Who gets in from a browser: the link, the device, what it may do, and how it is put out."""

from tests.web.browser import Visitor, logged_in, login_path


async def test_a_link_lets_a_browser_in_at_the_press_of_its_button(api):
    visitor = await logged_in(api)
    answer = await visitor.get("/sessions")
    assert (answer.status_code, answer.json()) == (200, [])


async def test_the_cookie_is_for_this_server_alone_and_no_script_reads_it(api):
    visitor = Visitor(api)
    answer = await visitor.press(await login_path(api))
    name, _, rest = answer.headers["set-cookie"].partition("=")
    value, *attributes = [part.strip() for part in rest.split(";")]
    assert name == f"sm_device_{api.devices.home_id}"
    assert len(value) == 43
    assert {part.lower() for part in attributes} == {"httponly", "samesite=strict", "path=/", "max-age=34560000"}
