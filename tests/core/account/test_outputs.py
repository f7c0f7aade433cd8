"""The line of an output that tells what went wrong."""

import pytest

from sm.core.account.outputs import complaint, without_random

LOG = "\n".join(
    f"2026-08-30T02:0{n}:1{n}.52{n}Z {'WARN' if n % 3 else 'INFO'} pump.read id={n}77 dur={n}2ms" for n in range(8)
)


@pytest.mark.parametrize(
    "line",
    [
        "Bind for 0.0.0.0:6742 failed: port is already allocated",
        'relation "pump_archive" does not exist',
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 27",
        "FAILED tests/test_pump.py::test_x - AssertionError: expected 3 rows, got 2",
        "pump_v3.proto: File not found",
        "error[E0308]: mismatched types",
        "Schema of pump differs at /items/3",
    ],
)
def test_a_complaint_among_the_lines_of_a_log(line):
    assert complaint(f"{LOG}\n{line}\n{LOG}") == line
    assert complaint(f"{line}\n{LOG}") == line


def test_counts_and_traces_are_no_complaint():
    output = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nKeyError: 'rows'\n3 passed"
    assert complaint(output) == "KeyError: 'rows'"
    assert complaint("src/a.c:3:5: error: expected ';'\nmake: *** [all] Error 2") == "src/a.c:3:5: error: expected ';'"


def test_a_line_that_announces_one_takes_it_along():
    assert complaint("error:\n  the lock file is out of date") == "error: the lock file is out of date"


def test_nothing_to_tell():
    assert complaint("") == complaint("\n \n") == ""


def test_a_long_output_is_looked_at_from_both_ends():
    assert complaint("\n".join([LOG] * 1000) + "\nfatal: no such ref") == "fatal: no such ref"


@pytest.mark.parametrize("secret", ["hunter2", "kP9xQ2vT7bR4mZ8wL3nC6yHd", "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG"])
def test_what_looks_random_is_left_out(secret):
    assert secret not in complaint(f"error: refused, sent -u deploy:{secret}")


@pytest.mark.parametrize(
    "name",
    [
        "test_pump_read_keeps_valve_31",
        "MergeVoyageBatchAllSafely2",
        "src/pump/readValveTotals.test.ts",
        "0a1b2c3d4e5f",
        "9c6e1f0a7b2d4e8f9c6e1f0a7b2d4e8f9c6e1f0a",
    ],
)
def test_names_and_hashes_are_kept(name):
    assert without_random(f"error in {name}") == f"error in {name}"
