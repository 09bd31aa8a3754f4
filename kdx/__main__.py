"""`python -m kdx` is `kdx`."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run `kdx.cli.app.main`; Ctrl-C ends it from the start, since imports take a while and have nothing to undo."""
    if sys.platform != "linux":
        # Its workers are forked and end with their parent (prctl), its messages keep their bounds (SOCK_SEQPACKET), and
        # a database is held by a descriptor without a name (O_PATH).
        print(f"error: kdx runs on Linux, not on {sys.platform}\n  hint: WSL or a container has one", file=sys.stderr)
        sys.exit(2)
    signals: list[int] = []

    def end(signum: int, frame: FrameType | None) -> None:
        signals.append(signum)
        sys.exit(128 + signum)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
        signal.signal(signal.SIGINT, end)
    try:
        # late: a signal may come while the rest is imported
        from kdx.cli.app import main as run

        run()
    except BaseException:
        # A library may raise anything from an import that a signal broke off.
        if signals:
            sys.exit(128 + signals[0])
        raise


if __name__ == "__main__":
    main()
