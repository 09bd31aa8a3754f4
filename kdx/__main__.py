"""Runs `kdx` as `python -m kdx`."""

import gc
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run `kdx.cli.app.main`; Ctrl-C ends it from the start, since imports take a while and have nothing to undo."""
    if sys.platform != "linux":
        # kdx needs forked workers that end with their parent (prctl), sockets that keep message boundaries
        # (SOCK_SEQPACKET), and a descriptor of the database that does not open it (O_PATH).
        print(f"error: kdx runs on Linux, not on {sys.platform}\n  hint: WSL or a container has one", file=sys.stderr)
        sys.exit(2)
    signals: list[int] = []

    def end(signum: int, frame: FrameType | None) -> None:
        signals.append(signum)
        sys.exit(128 + signum)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise the parent has it ignored
        signal.signal(signal.SIGINT, end)
    # Imports and commands make many objects and few cycles: with Python's 700, collecting takes a sixth of their time.
    gc.disable()  # until a command has its imports
    gc.set_threshold(100_000)
    try:
        # Imported here, so that a signal during the import is handled.
        from kdx.cli.app import main as run

        run()
    except BaseException:
        # A library may raise any exception if a signal interrupts its import.
        if signals:
            sys.exit(128 + signals[0])
        raise


if __name__ == "__main__":
    main()
