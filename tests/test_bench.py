"""The benchmark measures what it says. No bar is checked here: machines are noisy."""

import http.client

from bench import floor
from bench.__main__ import measured, report
from bench.days import Tally, day
from bench.numbers import Times
from bench.trivial_runs import TrivialTools
from sm.runner.workflow import IssueWork
from tests.runner.test_workflow import KeptSteps


async def test_a_figure_fills_its_rows_and_the_report_names_the_bars_that_did_not_hold():
    rows = await measured(["reading"], quick=True)
    assert [row.what for row in rows if "next reading" in row.what]
    assert all(row.measured for row in rows)
    text = report(rows)
    missed = [row.what for row in rows if row.holds is False]
    assert all(what in text.partition("did not hold")[2] for what in missed)
    assert all(f"| {row.what} | {row.bar} | {row.measured} |" in text for row in rows)


def test_percentiles_of_a_hundred_times():
    times = Times(tuple(number / 1000 for number in range(100, 0, -1)))
    assert (times.median, times.p90, times.p99, len(times)) == (0.0505, 0.091, 0.1, 100)


def test_the_bare_server_answers_hooks_on_one_connection():
    with floor.running() as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
        for _ in range(2):
            connection.request("POST", "/", b"{}")
            assert connection.getresponse().read() == b"{}"
        connection.close()


def test_a_day_counts_what_a_document_keeps_and_what_it_must_not_say():
    made = day(1)
    empty, whole = Tally(), Tally()
    empty.count(made, "")
    whole.count(made, "\n".join([*(text for _, texts in made.facts for text in texts), made.traps[0][1]]))
    assert (empty.recall, empty.broken) == (0.0, [])
    assert (whole.recall, whole.broken) == (1.0, [made.traps[0]])


def test_a_trivial_issue_passes_every_step():
    outcome = IssueWork(KeptSteps(), TrivialTools(), "R-1", "FEAT-001").outcome()
    assert (outcome.result, outcome.reason, outcome.notes) == ("delivered", "", ())
