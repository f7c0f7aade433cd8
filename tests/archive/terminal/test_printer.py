"""A log printed in a process of its own: whole, its last lines, one context, its bytes."""

import contextlib
import os

import pytest

from sm.archive.terminal import printer
from sm.archive.terminal.printer import LogPrinter, PrintRequest, output
from sm.archive.terminal.renderer import ContextStart, rendered
from sm.core.ids import token_hash
from sm.processes import descendants

TOKEN = "Zk3_vT0xQm-1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1u"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal") / "0a1b2c3d.log"
    path.write_bytes(b"".join(b"line %d of many that this terminal has shown\r\n\r\n" % n for n in range(3_000)))
    return path


def order(log, **values):
    return PrintRequest(str(log), 0, log.stat().st_size, **values)


def text_of(order):
    return b"".join(output(order)).decode()


@pytest.fixture(scope="module")
def whole(log):
    return text_of(order(log))


def test_all_lines(log, whole):
    assert whole == "".join(f"{line}\n" for line in rendered([log.read_bytes()]))


@pytest.mark.parametrize("count", [1, 100, 4_000, 5_998, 20_000])
def test_the_last_lines_are_those_of_the_whole(log, whole, count, monkeypatch):
    """Of a log larger than the window that is searched first, which holds some of the counts and not the others."""
    monkeypatch.setattr(printer, "FIRST_WINDOW_BYTES", 100_000)
    assert log.stat().st_size > printer.FIRST_WINDOW_BYTES
    assert text_of(order(log, lines=count)) == "".join(whole.splitlines(keepends=True)[-count:])


def test_bytes_as_they_are(log):
    assert b"".join(output(order(log, raw=True))) == log.read_bytes()


def test_a_context_is_painted_from_before_its_start(tmp_path):
    log = tmp_path / "a.log"
    first = b"banner\r\nfirst okapi\r\nbox"
    log.write_bytes(first + b"\x1b[1A\r\x1b[Kzebra")
    second = PrintRequest(
        str(log), len(first), log.stat().st_size, paint=0, starts=[ContextStart(len(first), wiped=False)]
    )
    assert text_of(second) == "banner\nzebra\nbox\n"


def test_our_own_tokens_are_known_by_their_hashes(tmp_path):
    log = tmp_path / "a.log"
    log.write_text(f"it is {TOKEN}")
    assert text_of(order(log, token_hashes=[token_hash(TOKEN)])) == "it is [REDACTED:sm-token]\n"


async def test_it_runs_in_a_process_of_its_own_which_ends_with_the_reading(log):
    printing, before = LogPrinter(), set(descendants(os.getpid()))
    pieces = [piece async for piece in printing.output(order(log, lines=3))]
    assert b"".join(pieces).decode() == text_of(order(log, lines=3))
    async with contextlib.aclosing(printing.output(order(log))) as reading:
        await anext(reading)
    assert set(descendants(os.getpid())) <= before
