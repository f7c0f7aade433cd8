class FakeClock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 1_770_014_730.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> float:
        self.time += seconds
        return self.time
