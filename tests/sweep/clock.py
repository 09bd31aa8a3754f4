"""A clock that a test moves by hand."""


class Clock:
    """Tells the seconds like `time.monotonic`, and stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
