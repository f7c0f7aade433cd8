"""The line of an output that tells what went wrong."""

import pytest

from sm.digest.outputs import error_lines, without_random

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
    assert error_lines(f"{LOG}\n{line}\n{LOG}") == line
    assert error_lines(f"{line}\n{LOG}") == line


USUAL = {
    "ninja": (
        """\
[3/9] Building
FAILED: obj/pump.o
cc -c -o obj/pump.o src/pump.c
src/pump.c:41:9: error: use of undeclared identifier 'valve'
1 error generated.
ninja: build stopped: subcommand failed.""",
        "src/pump.c:41:9: error: use of undeclared identifier 'valve'",
    ),
    "ld": (
        """\
/usr/bin/ld: pump.o: in function `main':
pump.c:(.text+0x1a): undefined reference to `open_valve'
collect2: error: ld returned 1 exit status
make: *** [Makefile:7: pump] Error 1""",
        "pump.c:(.text+0x1a): undefined reference to `open_valve'",
    ),
    "vitest": (
        """\
 FAIL  src/pump.test.ts > opens
AssertionError: expected 'shut' to be 'open'
 ❯ src/pump.test.ts:12:20

 Test Files  1 failed (1)
      Tests  1 failed | 8 passed (9)
   Duration  1.2s""",
        "AssertionError: expected 'shut' to be 'open'",
    ),
    "jest": (
        """\
FAIL src/pump.test.js
  ● pump > opens

    expect(received).toBe(expected)

    Expected: 4
    Received: 3

      at Object.<anonymous> (src/pump.test.js:5:9)

Tests:       1 failed, 3 passed, 4 total""",
        "Expected: 4 Received: 3",
    ),
    "cargo test": (
        """\
running 2 tests
test tests::opens ... FAILED

---- tests::opens stdout ----
thread 'tests::opens' panicked at src/lib.rs:10:9:
assertion `left == right` failed
  left: 3
 right: 4
test result: FAILED. 1 passed; 1 failed; 0 ignored

error: test failed, to rerun pass `--lib`""",
        "thread 'tests::opens' panicked at src/lib.rs:10:9: assertion `left == right` failed",
    ),
    "cargo build": (
        """\
error[E0308]: mismatched types
 --> src/main.rs:4:18
  |
4 |     let x: i32 = valve;
error: aborting due to 1 previous error
error: could not compile `pump` (bin "pump") due to 1 previous error""",
        "error[E0308]: mismatched types",
    ),
    "go test": (
        """\
--- FAIL: TestOpen (0.31s)
    pump_test.go:88: opened 9 of 10
FAIL
exit status 1
FAIL	pump/valve	0.34s
FAIL""",
        "pump_test.go:88: opened 9 of 10",
    ),
    "go build": (
        """\
# pump/valve
valve/open.go:12:2: undefined: errors.Join""",
        "valve/open.go:12:2: undefined: errors.Join",
    ),
    "gradle": (
        """\
> Task :compileJava FAILED
/p/src/Pump.java:3: error: ';' expected
    int x
         ^
1 error

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':compileJava'.
> Compilation failed; see the compiler error output for details.

BUILD FAILED in 1s""",
        "/p/src/Pump.java:3: error: ';' expected",
    ),
    "maven": (
        """\
[INFO] Compiling 3 files
[ERROR] COMPILATION ERROR :
[ERROR] /p/src/Pump.java:[3,5] cannot find symbol
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache:compile on project pump: Compilation failure""",
        "/p/src/Pump.java:[3,5] cannot find symbol",
    ),
    "npm": (
        """\
npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR! see below
npm ERR! A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log""",
        "ERESOLVE unable to resolve dependency tree",
    ),
    "npm run": (
        """\
src/pump.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.
npm ERR! code ELIFECYCLE
npm ERR! errno 2
npm ERR! pump@1.0.0 build: `tsc`
npm ERR! Exit status 2""",
        "src/pump.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    ),
    "eslint": (
        """\
/p/src/pump.js
  3:5  error  'valve' is not defined  no-undef

✖ 1 problem (1 error, 0 warnings)""",
        "3:5  error  'valve' is not defined  no-undef",
    ),
    "rspec": (
        """\
Failures:

  1) Pump opens
     Failure/Error: expect(pump.state).to eq(:open)

       expected: :open
            got: :shut

Finished in 0.01 seconds
2 examples, 1 failure

rspec ./spec/pump_spec.rb:5 # Pump opens""",
        "expected: :open got: :shut",
    ),
    "dotnet": (
        """\
Pump.cs(5,13): error CS0103: The name 'valve' does not exist in the current context [/p/Pump.csproj]

Build FAILED.

    0 Warning(s)
    1 Error(s)""",
        "Pump.cs(5,13): error CS0103: The name 'valve' does not exist in the current context [/p/Pump.csproj]",
    ),
    "pytest": (
        """\
    def test_open():
>       assert pump.rows == 4
E       assert 3 == 4

tests/test_pump.py:5: AssertionError
FAILED tests/test_pump.py::test_open - assert 3 == 4
1 failed, 7 passed in 0.12s""",
        "FAILED tests/test_pump.py::test_open - assert 3 == 4",
    ),
    "javac": (
        """\
Pump.java:7: error: cannot find symbol
  symbol: class Valve
1 error""",
        "Pump.java:7: error: cannot find symbol",
    ),
    "git merge": (
        """\
Auto-merging pump.py
CONFLICT (content): Merge conflict in pump.py
Automatic merge failed; fix conflicts and then commit the result.""",
        "CONFLICT (content): Merge conflict in pump.py",
    ),
    "terraform": (
        """\
╷
│ Error: Unsupported argument
│
│   on main.tf line 3, in resource "x" "y":
╵""",
        "Error: Unsupported argument",
    ),
    "phpunit": (
        """\
There was 1 failure:

1) PumpTest::testOpen
Failed asserting that 'shut' matches 'open'.

/p/tests/PumpTest.php:12

FAILURES!
Tests: 9, Assertions: 31, Failures: 1.""",
        "Failed asserting that 'shut' matches 'open'.",
    ),
    "mocha": (
        """\
  1 passing (5ms)
  1 failing

  1) Pump opens:
     AssertionError [ERR_ASSERTION]: 3 == 4
      at Context.<anonymous> (test/pump.js:7:12)""",
        "AssertionError [ERR_ASSERTION]: 3 == 4",
    ),
    "docker compose": (
        """\
web-1  | Traceback (most recent call last):
web-1  |   File "a.py", line 3, in <module>
web-1  | ModuleNotFoundError: No module named 'pump'
web-1 exited with code 1""",
        "ModuleNotFoundError: No module named 'pump'",
    ),
    "elixir": (
        """\
  1) test opens (PumpTest)
     ** (KeyError) key :valve not found in: %{}

3 tests, 1 failure""",
        "** (KeyError)",
    ),
}


@pytest.mark.parametrize(("output", "told"), USUAL.values(), ids=USUAL.keys())
def test_the_error_is_told_and_not_the_sum_of_it(output, told):
    assert told in error_lines(output)


def test_counts_and_traces_are_no_complaint():
    output = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nKeyError: 'rows'\n3 passed"
    assert error_lines(output) == "KeyError: 'rows'"
    assert (
        error_lines("src/a.c:3:5: error: expected ';'\nmake: *** [all] Error 2") == "src/a.c:3:5: error: expected ';'"
    )


def test_a_line_that_announces_one_takes_it_along():
    assert error_lines("error:\n  the lock file is out of date") == "error: the lock file is out of date"


def test_nothing_to_tell():
    assert error_lines("") == error_lines("\n \n") == ""


def test_a_long_output_is_looked_at_from_both_ends():
    assert error_lines("\n".join([LOG] * 1000) + "\nfatal: no such ref") == "fatal: no such ref"


@pytest.mark.parametrize("secret", ["hunter2", "kP9xQ2vT7bR4mZ8wL3nC6yHd", "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG"])
def test_what_looks_random_is_left_out(secret):
    assert secret not in error_lines(f"error: refused, sent -u deploy:{secret}")


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
