"""Every route, with names, numbers and bodies that make no sense: an error in words, never a fault of ours (C31)."""

from typing import Annotated, Literal, get_args, get_origin

import msgspec
import pytest

from sm.api import bodies
from sm.web.routes import JSON_ROUTES as ROUTES
from tests.api.rig import USER

ODD = {
    "NUL": "%00",
    "NUL inside": "/tmp/a%00b",
    "a long name": "/tmp/" + "x" * 300,
    "a long path": "/x" * 3000,
    "relative": "../../etc",
    "home": "~nobody/x",
    "newline": "/tmp/a%0Ab",
    "half a surrogate pair": "%ED%A0%80",
    "no UTF-8": "%FF%FE",
    "a device": "/dev/null/x",
    "pattern": "**/*[",
    "number": "9" * 40,
    "negative": "-1",
    "superscript": "%C2%B2",
    "empty": "",
}
PARAMETERS = ("dir", "channel", "waiting", "lines", "words", "session", "context", "raw", "step", "limit", "wait")
TEXTS = ["\0", "/tmp/a\0b", "/tmp/" + "x" * 300, "/x" * 3000, "..", "", "~nobody", "-", "\n", "9" * 40]
LEFT_OUT = {"/stop", "/events"}
"""The first ends the server, the second does not end."""
SESSION = "/sessions/{session}"
BODIES = {
    ("POST", "/sessions"): bodies.NewSessionBody,
    ("PATCH", SESSION): bodies.RenameBody,
    ("POST", f"{SESSION}/restore"): bodies.RestoreBody,
    ("POST", f"{SESSION}/messages"): bodies.MessageBody,
    ("POST", "/messages"): bodies.AddressedMessageBody,
    ("POST", f"{SESSION}/handoff"): bodies.HandoffBody,
    ("POST", f"{SESSION}/children"): bodies.ChildBody,
    ("POST", f"{SESSION}/clear"): bodies.ClearBody,
    ("POST", f"{SESSION}/report"): bodies.ReportBody,
    ("POST", f"{SESSION}/waits"): bodies.WaitBody,
    ("POST", f"{SESSION}/reminders"): bodies.ReminderBody,
    ("POST", f"{SESSION}/client"): bodies.ClientBody,
    ("POST", f"{SESSION}/client/exit"): bodies.ExitBody,
    ("POST", f"{SESSION}/order"): bodies.OrderBody,
    ("POST", "/archive/prune"): bodies.PruneBody,
    ("POST", f"{SESSION}/link"): bodies.LinkBody,
    ("POST", "/link/claude"): bodies.OwnLinkBody,
    ("POST", "/asks/{ask}"): bodies.AskAnswerBody,
    ("POST", "/notifications/run-ended"): bodies.RunEndedBody,
    ("POST", "/web/links"): bodies.WebLinkBody,
    ("PUT", "/web/push"): bodies.PushBody,
}
SOUND = {str: "x", float: 60.0, int: 1, bool: False, list[str]: ["sh"], dict[str, str]: {}}


def routes():
    for route in ROUTES:
        for method in sorted(route.methods - {"HEAD"}):
            if route.path not in LEFT_OUT:
                yield method, route.path


async def asked(api, method, path, **more):
    status, answer = await api.call(method, path, USER, **more)
    assert status < 500 or answer["code"] != "internal", (method, path[:100], str(more)[:200], answer)


@pytest.mark.parametrize(("method", "path"), list(routes()))
async def test_no_odd_name_or_parameter_is_a_fault(api, method, path):
    session = await api.new("a")
    known = path.replace("{session}", session)
    for value in ODD.values():
        if "{" in path:
            await asked(api, method, path.replace(f"{{{path.partition('{')[2].partition('}')[0]}}}", value))
        if method == "GET":
            for name in PARAMETERS if not path.endswith("/log") else ():  # each starts a process
                await asked(api, method, f"{known}?{name}={value}")


@pytest.mark.parametrize("value", ["%00", "/tmp/a%00b", "a%00"])
@pytest.mark.parametrize("path", ["/handoffs?dir={}", "/search?words={}", "/handoffs?x={}"])
async def test_a_nul_in_the_query_is_a_bad_request(api, path, value):
    status, answer = await api.call("GET", path.format(value))
    assert (status, answer["code"]) == (400, "bad_request")


def plain(kind):
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def sound(kind):
    """A body of that kind with everything in it, as far as a member has a plain value."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.required and isinstance(field.type, type(msgspec.Struct)):
            found[field.encode_name] = sound(field.type)
        elif field.required and get_origin(field.type) is Literal:
            found[field.encode_name] = get_args(field.type)[0]
        elif field.required and plain(field.type) in SOUND:
            found[field.encode_name] = SOUND[plain(field.type)]
    return found


def test_every_body_is_tried():
    kinds = {kind for kind in vars(bodies).values() if isinstance(kind, type) and kind.__module__ == bodies.__name__}
    nested = {
        bodies.ForegroundBody,
        bodies.LaunchBody,
        bodies.DoneBody,
        bodies.ContextBody,
        bodies.AskBody,
        bodies.ShareBody,
        bodies.PushKeys,
    }
    assert kinds - set(BODIES.values()) - nested == set()


@pytest.mark.parametrize(("method", "path"), list(BODIES))
async def test_no_odd_text_in_a_body_is_a_fault(api, method, path):
    session = await api.new("a")
    kind = BODIES[method, path]
    known = path.replace("{session}", session)
    whole = {name: session if value == "x" and name != "born" else value for name, value in sound(kind).items()}
    _, answer = await api.call(method, known, USER, body=whole)
    assert "Bad body" not in str(answer)
    for field in msgspec.structs.fields(kind):
        for text in TEXTS if "str" in str(field.type) else ():
            value = (
                {"X": text, text: "x"} if "dict" in str(field.type) else [text] if "list" in str(field.type) else text
            )
            await asked(api, method, known, body={**whole, field.encode_name: value})
