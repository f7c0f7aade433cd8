import io
import json
import logging
import stat
import subprocess
import sys

import pytest
import structlog

from sm.core.errors import error
from sm.log import PrivateFile, configure, described, redacted
from sm.paths import SmHome

SECRET = "sk-ant-api03-TESTTESTTESTTESTTESTTEST"


@pytest.fixture
def place(tmp_path):
    """A configured log; everything is as before afterwards."""
    root = logging.getLogger()
    before, level, loud = list(root.handlers), root.level, logging.raiseExceptions
    structure = structlog.get_config()
    configure(SmHome(tmp_path))
    yield SmHome(tmp_path)
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    logging.raiseExceptions = loud
    structlog.configure(**structure)


def lines(place):
    return [json.loads(line) for line in place.server_log.read_text().splitlines()]


def raised(problem):
    try:
        raise problem
    except type(problem) as caught:
        return caught


def test_a_line_is_one_json_object_with_a_utc_time(place):
    structlog.get_logger("sm.x").info("delivered", target="a1", size=3)
    (line,) = lines(place)
    assert (line["event"], line["target"], line["size"], line["level"]) == ("delivered", "a1", 3, "info")
    assert line["timestamp"].endswith("Z")


def test_the_file_is_its_owners_alone(place):
    assert stat.S_IMODE(place.server_log.stat().st_mode) == 0o600


def test_of_a_body_only_the_length_is_written(place):
    """Case A76."""
    log = structlog.get_logger()
    log.info("delivered", target="a1", text="the words", tool_input={"command": "the words"}, prompt=b"the words")
    log.info("nested", payload=["the words"], about={"message": "the words", "lines": 3})
    assert "the words" not in place.server_log.read_text()
    first, second = lines(place)
    assert (first["target"], first["text_length"], first["prompt_length"]) == ("a1", 9, 9)
    assert second["about"] == {"message_length": 9, "lines": 3}


def test_an_object_is_named_but_not_quoted(place):
    structlog.get_logger().info("event", what=Quoting(), raw=b"the words")
    assert "the words" not in place.server_log.read_text()
    assert lines(place)[0]["what"] == "<Quoting>"


class Quoting:
    def __repr__(self):
        return "the words"


def test_a_secret_is_blanked_wherever_it_stands(place):
    structlog.get_logger().warning(f"odd {SECRET}", detail=f"x {SECRET} y", listed=[{"k": SECRET}])
    logging.getLogger("uvicorn").error("got %s", SECRET)
    assert SECRET not in place.server_log.read_text()
    assert lines(place)[0]["detail"] == "x [REDACTED:anthropic] y"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SECRET, "anthropic"),
        ("sk-proj-" + "a" * 30, "openai"),
        ("ghp_" + "a" * 36, "github"),
        ("github_pat_" + "a" * 30, "github"),
        ("AKIAABCDEFGHIJKLMNOP", "aws"),
        ("xoxb-1234567890-abc", "slack"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "private-key"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "private-key"),
        ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "bearer"),
    ],
)
def test_shapes_of_secrets(text, kind):
    assert f"[REDACTED:{kind}]" in redacted(f"before {text}")
    assert redacted(f"before {text}").startswith("before ")


def test_ordinary_text_stays():
    text = "task-ant-hill risk-free session c74cc080-94b9-4841-b82f-a62cfb8efdc0 ghp_short bearer of news"
    assert redacted(text) == text


def test_an_exception_says_where_but_does_not_quote(place):
    try:
        int("the words")
    except ValueError:
        structlog.get_logger().exception("failed", session="a1")
    assert "the words" not in place.server_log.read_text()
    found = lines(place)[0]["error"]
    assert found["type"] == "ValueError"
    assert found["at"][-1].startswith("test_log.py:")


def test_an_exception_of_the_system_or_our_own_says_what_is_wrong():
    assert "No space left" in described(raised(OSError(28, "No space left")))["said"]
    assert described(raised(error("code", "Session a1 not found")))["said"] == "Session a1 not found"


def test_an_exception_may_declare_its_text_free_of_bodies():
    class Loud(Exception):  # noqa: N818
        loggable = True

    assert described(raised(Loud("tmux paste-buffer: no server")))["said"] == "tmux paste-buffer: no server"
    assert described(raised(RuntimeError("the words")))["said"] == "(9 characters)"


def test_groups_and_causes_are_described_too():
    cause = raised(ValueError("x"))
    group = ExceptionGroup("two", [KeyError("the words"), OSError(2, "No such file")])
    group.__cause__ = cause
    found = described(raised(group))
    assert [error["type"] for error in found["errors"]] == ["KeyError", "FileNotFoundError"]
    assert found["after"]["type"] == "ValueError"


def test_other_libraries_are_in_the_same_file_without_what_they_quote(place):
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: ValueError('the words')")
    logging.getLogger("uvicorn").debug("quiet")
    assert [line["event"] for line in lines(place)] == ["Task exception was never retrieved"]


def test_nothing_below_info_is_written(place):
    structlog.get_logger().debug("detail")
    assert lines(place) == []


def test_a_person_reads_the_same_on_stderr(place, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    configure(place, console=True)
    structlog.get_logger().info("delivered", target="a1", text="the words")
    assert "delivered" in shown.getvalue()
    assert "the words" not in shown.getvalue()
    assert "\x1b" not in shown.getvalue()


def test_configuring_again_writes_each_line_once(place):
    configure(place)
    structlog.get_logger().info("once")
    assert len(lines(place)) == 1


def test_the_file_is_rotated_by_size_and_each_part_is_private(tmp_path):
    handler = PrivateFile(tmp_path / "server.log", max_bytes=200)
    for _ in range(50):
        handler.emit(logging.makeLogRecord({"msg": "x" * 50}))
    handler.close()
    parts = sorted(path.name for path in tmp_path.iterdir())
    assert parts == ["server.log", "server.log.1", "server.log.2", "server.log.3"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def sound(path):
    """The records of a log that are whole JSON, by their event, and how many lines are not."""
    found, torn = [], 0
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line)["event"])
        except ValueError:
            torn += 1
    return found, torn


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_that_was_cut_off_takes_no_other_with_it(place, end):  # C31
    for handler in logging.getLogger().handlers:
        handler.close()
    place.server_log.write_text(f'{{"event": "before"}}\n{{"event":"message queued","lev{end}')
    configure(place)
    structlog.get_logger().info("after")
    assert sound(place.server_log) == (["before", "after"], 1)
    configure(place)
    structlog.get_logger().info("again")
    assert sound(place.server_log) == (["before", "after", "again"], 1)
    assert "\n\n" not in place.server_log.read_text()


def test_what_was_lost_to_a_full_disk_leaves_every_other_line_whole(tmp_path):  # C31
    code = """
import json, logging, resource, sys
from pathlib import Path
from sm.log import PrivateFile
handler = PrivateFile(Path(sys.argv[1]))
def write(numbers):
    for number in numbers:
        text = json.dumps({"event": number, "more": "x" * 300})
        handler.emit(logging.LogRecord("x", 20, "f", 1, text, (), None))
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
write(range(10)), limit(4000), write(range(10, 60)), limit(resource.RLIM_INFINITY), write(range(60, 70))
handler.close()
"""
    path = tmp_path / "log"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    found, _ = sound(path)
    assert found[:10] == list(range(10))
    assert found[-10:] == list(range(60, 70))


def test_what_cannot_be_written_is_neither_raised_nor_shown(tmp_path, capsys):
    handler = PrivateFile(tmp_path / "server.log")
    handler.stream.close()
    handler.handle(logging.makeLogRecord({"msg": "the words"}))
    assert capsys.readouterr().err == ""
