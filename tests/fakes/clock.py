class FakeClock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 1_770_014_730.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> float:
        self.time += seconds
        return self.time


def run_on_virtual_time(loop):
    """Let an event loop's time pass only while nothing else can happen: a wait takes no time, and none is too short.

    A loop that ends waits in earnest for its threads (with a timeout from 3.12 on).
    """
    passed, select = [0.0], loop._selector.select

    def skip(timeout=None):
        if timeout is None or loop._executor_shutdown_called:
            return select(timeout)
        events = select(0)
        if not events and timeout:
            passed[0] += timeout
        return events

    loop.time = lambda: passed[0]
    loop._selector.select = skip
