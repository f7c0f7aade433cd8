class FakeClock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 1_770_014_730.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> float:
        self.time += seconds
        return self.time


LOOP_END_S = 299.0
"""A loop that is closed waits so long, and in earnest, for its threads to end (3.12 and newer)."""


def run_on_virtual_time(loop):
    """Let an event loop's time pass only while nothing else can happen: a wait takes no time, and none is too short."""
    passed, select = [0.0], loop._selector.select

    def skip(timeout=None):
        if timeout is None or timeout >= LOOP_END_S:
            return select(timeout)
        events = select(0)
        if not events and timeout:
            passed[0] += timeout
        return events

    loop.time = lambda: passed[0]
    loop._selector.select = skip
