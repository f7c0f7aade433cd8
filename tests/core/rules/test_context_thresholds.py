from dataclasses import replace

import pytest

from sm.core.model import context_warnings
from sm.core.model.capacity import Threshold
from sm.core.model.context import ContextReading, Level, Monitor, Policy, Source, ToolWork, ToolWorkKind
from sm.core.rules.context_thresholds import counted, decide, estimate, level, measured, without_usage

USABLE = 167_000


def at(tokens, *, window=200_000, usable=USABLE, monitor=None):
    reading = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, window=window)
    return measured(monitor or Monitor(), reading, usable)


def told(monitor, policy=None, *, now=10.0, handed_off=False):
    return decide(monitor, policy or Policy(), now, handed_off=handed_off)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(100_199, Level.OK), (100_200, Level.WARNING), (133_599, Level.WARNING), (133_600, Level.CRITICAL)],
)
def test_thresholds_are_a_share_of_the_usable_context(tokens, expected):
    assert level(at(tokens), Policy()) is expected


def test_the_warning_is_worded_as_the_contract_says():
    assert (
        told(at(104_011))
        .owed[0]
        .startswith(
            "[sm context] Context at 104,011 tokens (~62%). "
            "Consider writing a handoff doc and running `sm handoff <path>`.\n"
        )
    )


def test_the_critical_warning_is_worded_as_the_contract_says():
    assert (
        told(at(140_000))
        .owed[0]
        .startswith(
            "[sm context] Context critically high. Write your handoff doc NOW and run `sm handoff <path>`. "
            "Compaction is imminent.\n"
        )
    )


def test_a_jump_over_both_thresholds_crosses_both_and_sends_the_critical_one_alone():
    monitor = told(at(150_000))
    assert monitor.crossed_levels == {Level.WARNING, Level.CRITICAL}
    assert len(monitor.owed) == 1
    assert "critically" in monitor.owed[0]


def test_a_falling_number_resets_nothing_and_warns_of_nothing():
    crossed = told(at(150_000))
    fallen = told(at(110_000, monitor=crossed), now=11.0)
    assert (fallen.crossed, fallen.owed) == (crossed.crossed, crossed.owed)


def test_an_open_critical_warning_repeats_at_its_pace_and_ends_with_a_handoff():
    open_warning = Monitor(**{**_fields(told(at(150_000))), "owed": ()})
    assert told(open_warning, now=69.0).owed == ()
    assert told(open_warning, now=70.0).owed == (context_warnings.critical_notice(),)
    assert told(open_warning, now=70.0, handed_off=True).owed == ()
    assert told(open_warning, Policy(remind_every=0), now=999.0).owed == ()


def _fields(monitor):
    return {name: getattr(monitor, name) for name in Monitor.__slots__}


def test_a_crossing_with_a_handoff_pending_latches_and_says_nothing():
    monitor = told(at(150_000), handed_off=True)
    assert monitor.crossed_levels == {Level.WARNING, Level.CRITICAL}
    assert monitor.owed == ()


def test_an_unknown_window_gives_tokens_and_no_percentage():
    monitor = at(120_000, window=None, usable=None)
    assert (monitor.projected, monitor.percent, level(monitor, Policy())) == (120_000, None, Level.OK)


def test_a_reading_past_the_assumed_window_proves_it_wrong():
    monitor = at(265_118)
    assert (monitor.percent, level(monitor, Policy())) == (None, Level.CRITICAL)


@pytest.mark.parametrize(
    ("tokens", "expected"), [(149_999, Level.OK), (150_000, Level.WARNING), (200_000, Level.CRITICAL)]
)
def test_a_share_of_a_context_of_unknown_size_gives_way_to_the_usual_numbers(tokens, expected):  # C12
    policy = Policy(warning=Threshold(share=0.6), critical=Threshold(share=0.8))
    assert level(at(tokens, window=None, usable=None), policy) is expected


@pytest.mark.parametrize(
    ("usable", "warned", "critical"),
    [(167_000, 100_200, 133_600), (967_000, 150_000, 200_000), (None, 150_000, 200_000)],
)
def test_of_a_share_and_a_number_whichever_comes_first_holds(usable, warned, critical):  # C18
    for tokens, expected in (
        (warned - 1, Level.OK),
        (warned, Level.WARNING),
        (critical - 1, Level.WARNING),
        (critical, Level.CRITICAL),
    ):
        assert level(at(tokens, window=1_000_000, usable=usable), Policy()) is expected


def test_absolute_thresholds_need_no_window():
    policy = Policy(warning=Threshold(tokens=100_000), critical=Threshold(tokens=130_000))
    monitor = told(at(100_000, window=None, usable=None), policy)
    assert monitor.owed[0].startswith("[sm context] Context at 100,000 tokens. Consider")


def test_a_ceiling_in_tokens_is_critical_whatever_the_window():
    assert level(at(300_000, window=1_000_000, usable=967_000), Policy(max_tokens=300_000)) is Level.CRITICAL


def test_the_running_call_is_estimated_until_the_exact_value_comes():
    policy = Policy()
    monitor = counted(at(1_000), "Bash", ToolWork(ToolWorkKind.BASH, 1_000), policy)
    assert (monitor.projected, monitor.tool_calls) == (1_300, 1)
    assert dict(monitor.breakdown) == {"Bash": 300}
    assert at(1_350, monitor=monitor).projected == 1_350
    assert at(1_000, monitor=monitor).projected == 1_300


def test_without_the_clients_counts_only_what_the_tools_returned_is_counted():
    monitor = Monitor()
    for tokens, boundary in ((20_000, None), (90_000, None), (3_000, (90_000, 2_500)), (21_000, None)):
        reading = replace(at(tokens).reading, boundary=boundary)
        monitor = measured(monitor, without_usage(reading, monitor.reading), USABLE)
        monitor = counted(monitor, "Edit", ToolWork(ToolWorkKind.EDIT), Policy())
    # Two calls of 300 before the compaction left 2,500, two after it.
    assert (monitor.reading.source, monitor.reading.exact, monitor.reading.lower_bound) == (
        Source.ESTIMATE,
        False,
        True,
    )
    assert (monitor.projected, dict(monitor.breakdown)) == (3_100, {"Edit": 1_200})


@pytest.mark.parametrize(
    ("work", "tokens"),
    [
        (ToolWork(ToolWorkKind.READ, 12), 120),
        (ToolWork(ToolWorkKind.GREP, 4), 20),
        (ToolWork(ToolWorkKind.GLOB, 3), 60),
        (ToolWork(ToolWorkKind.EDIT), 300),
        (ToolWork(ToolWorkKind.AGENT), 2_000),
        (ToolWork(ToolWorkKind.FETCH), 1_500),
        (ToolWork(ToolWorkKind.SEARCH), 1_000),
        (ToolWork(), 100),
    ],
)
def test_each_kind_of_call_has_its_weight(work, tokens):  # C19: the base weighs calls of no other kind
    assert estimate(work, Policy()) == tokens


def test_counts_that_a_reading_lacks_are_kept():
    counts = ContextReading(tokens=5, projected=5, compactions=2, messages=7, output_tokens=9, malformed=1)
    reading = at(6, monitor=measured(Monitor(), counts, USABLE)).reading
    assert (reading.compactions, reading.messages, reading.output_tokens, reading.malformed) == (2, 7, 9, 1)


def test_without_a_reading_the_number_of_calls_warns_once():
    monitor = Monitor(tool_calls=500)
    warned = told(monitor)
    assert warned.owed[0].startswith("[sm context] 500 tool calls in this context")
    assert told(warned, now=20.0) == warned
    assert told(Monitor(tool_calls=499)).owed == ()


def test_where_nothing_can_be_read_the_weights_alone_warn():  # C19
    monitor = Monitor()
    for _ in range(30):
        monitor = told(counted(monitor, "Read", ToolWork(ToolWorkKind.READ, 500), Policy()))
    assert (monitor.reading.projected, monitor.projected, monitor.source) == (None, 150_000, Source.ESTIMATE)
    assert monitor.owed[0].startswith("[sm context] Context at 150,000 tokens. Consider")
    exact = at(20_000, monitor=monitor)
    assert (exact.projected, exact.source) == (20_000, exact.reading.source)


def test_what_cannot_be_read_any_more_stays_as_it_was_and_is_out_of_date():
    before = counted(at(90_000), "Edit", ToolWork(ToolWorkKind.EDIT), Policy())
    gone = measured(before, ContextReading(), USABLE)
    assert (gone.projected, gone.stale, gone.usable) == (90_300, True, USABLE)


def test_switched_off_it_says_nothing():
    assert told(at(150_000), Policy(enabled=False)).owed == ()


def test_a_warning_is_not_owed_once_the_critical_level_was_crossed():
    crossed = Monitor(
        crossed=((Level.CRITICAL, 1.0),), reading=ContextReading(tokens=1, projected=140_000), usable=200_000
    )
    policy = Policy()
    assert level(crossed, policy) is Level.WARNING
    assert decide(crossed, policy, 5.0, handed_off=False) is crossed


@pytest.mark.parametrize(
    ("warning", "share", "lowered"),
    [
        (Threshold(0.6, 150_000), 0.3, Threshold(0.225, 150_000)),
        (Threshold(0.6, 150_000), 0.9, Threshold(0.6, 150_000)),
        (Threshold(tokens=1_000), 0.4, Threshold(0.3, 1_000)),
    ],
)
def test_a_share_for_one_session_is_its_threshold_to_hand_off_with_the_warning_below_it(warning, share, lowered):
    policy = Policy(enabled=False, warning=warning).handing_off_at(share)
    assert (policy.enabled, policy.critical, policy.warning) == (True, Threshold(share), lowered)
    assert Policy(warning=warning).handing_off_at(None) == Policy(warning=warning)
