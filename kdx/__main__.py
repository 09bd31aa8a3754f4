"""`python -m kdx` is `kdx`."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """As `kdx.cli.app.main`, with Ctrl-C heeded from the start: imports take a while, and have nothing to undo."""
    if sys.platform != "linux":
        # Its workers are forked and end with their parent (prctl), its messages keep their bounds (SOCK_SEQPACKET), and
        # a database is held by a descriptor without a name (O_PATH).
        print(f"error: kdx runs on Linux, not on {sys.platform}\n  hint: WSL or a container has one", file=sys.stderr)
        sys.exit(2)
    asked: list[int] = []

    def end(signum: int, frame: FrameType | None) -> None:
        asked.append(signum)
        sys.exit(128 + signum)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
        signal.signal(signal.SIGINT, end)
    try:
        # late: a signal may come while the rest is imported
        from kdx.cli.app import main as run

        run()
    except BaseException:
        # Of an import that was broken off, a library may tell whatever it likes.
        if asked:
            sys.exit(128 + asked[0])
        raise


if __name__ == "__main__":
    main()
