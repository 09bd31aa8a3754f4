"""A sweep on this machine: claims runs, has them forked, listens, and asks `decide` again after every event."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kdx.axes import IfChanged
from kdx.errors import DatabaseError, KdxError, ServerEndedError, ServerError
from kdx.grid.identity import canonical
from kdx.grid.plan import Plan, PlannedRun
from kdx.store import leases, reading
from kdx.store.database import Database
from kdx.store.records import FINAL, RunRecord
from kdx.sweep.decide import Action, Decision, decide
from kdx.sweep.files import folder_of, resume_step
from kdx.sweep.orders import STOPPED, Order, receive, send, start, told
from kdx.sweep.owner import Presence, owner, presence

LEASE = 60.0  # seconds
RENEW_EVERY = 10.0  # seconds
LOOK_AGAIN = 2.0  # seconds, while another kdx holds what is left
HANG_AFTER = 600.0  # seconds without a sign of life, after which a worker counts as hung
HANG_GRACE = 30.0  # seconds that a hung worker has to reach a safe point all the same
SERVERS = 3  # processes to fork from that are killed, with no run finished in between, before the sweep gives up
ENDS_WITHIN = 10.0  # seconds for such a process to end, with its workers at their safe points

# What the server does not let end it; blocked until it says so itself.
_TO_ALL = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1}


class Listener(Protocol):
    """Hears what happens in a sweep; the command line shows it."""

    def decided(self, decisions: tuple[Decision, ...]) -> None:
        """At the start and after every event."""

    def started(self, run: PlannedRun, attempt: int) -> None:
        """A run was claimed and handed to a worker."""

    def progressed(self, run: PlannedRun, step: int, loss: float) -> None:
        """A worker has done another step."""

    def noted(self, run: PlannedRun, text: str) -> None:
        """A worker has something to say of its run, such as that it goes on from an older checkpoint."""

    def ended(self, run: PlannedRun, record: RunRecord) -> None:
        """A worker has ended; the record tells how."""

    def server_killed(self, how: str) -> None:
        """The process that workers are forked from was killed, and they with it; another is started."""

    def stopping(self) -> None:
        """The sweep was asked to stop, or cannot go on, and waits for its workers."""

    def hung(self, run: PlannedRun, seconds: float) -> None:
        """A worker gave no sign of life for so long and is being ended."""


@dataclass
class _Running:
    """A run that a worker of this sweep has."""

    run: PlannedRun
    attempt: int
    card: str | None
    """The GPU that it has, alone or with others."""
    heard: float
    """When its worker last gave a sign of life, by the monotonic clock."""
    hung_since: float | None = None
    """When it was asked to end because it gave none."""


@dataclass
class LocalSweep:
    """One plan, on one machine, into the database that it is registered in."""

    plan: Plan
    database: Database
    address: str
    """Of the database, as workers open it."""
    files: Path
    """Folder of the runs' checkpoints and logs."""
    workers: int
    listener: Listener
    owner: str = field(default_factory=owner)
    hang_after: float = HANG_AFTER
    """Seconds."""
    if_changed: IfChanged = IfChanged.REFUSE
    """What is done with a run that began under other conditions."""
    cards: tuple[str, ...] = ()
    """GPUs, as `CUDA_VISIBLE_DEVICES` names them; each run gets one. Empty: runs take what they find."""

    def __post_init__(self) -> None:
        self._stopping: int | None = None
        self._at_once = False
        self._killed = 0
        """How many servers were killed since a run was last finished."""
        self._trouble: KdxError | None = None
        self._active: dict[int, _Running] = {}
        self._looked = time.monotonic()
        self._server: subprocess.Popen[bytes] | None = None
        self._wake, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)

    def run(self) -> int | None:
        """Until nothing is left to do here; the signal that stopped it before that, or None.

        Raises:
            DatabaseError: workers could no longer write the database.
            AccessError: they may no longer read or write a file.
            StorageError: they could no longer write the disk.
            ChangedError: a run began under other conditions, and that is to be refused. In each of these cases the
                runs at work are interrupted.
            ServerError: the process that workers are forked from was killed again and again, or the system gives no
                process.
            ServerEndedError: that process ended of its own accord, as it never should.
        """
        self._renewed = time.monotonic()
        try:
            while True:
                try:
                    if self._goes_on():
                        continue
                    return self._stopping
                except _ServerGone as gone:
                    self._go_on_without(gone)
        except KeyboardInterrupt:
            self._signal(signal.SIGKILL)
            if self._stopping is None:
                raise
            return self._stopping
        finally:
            self._close()

    def stop(self, signum: int) -> None:
        """Claim nothing more and let the runs stop at a safe point; asked twice, end at once. Safe in a handler."""
        if self._stopping is None:
            self._stopping = signum
            os.write(self._wake_end, b"!")
        # A terminal that closes says so several times: by its shell and by the system.
        elif signum != signal.SIGHUP and not self._at_once:
            self._at_once = True
            raise KeyboardInterrupt

    def dump(self) -> None:
        """Have every worker write the stacks of its threads to its log."""
        self._signal(signal.SIGUSR1)

    def _goes_on(self) -> bool:
        """Decides, starts what is to be started, and listens for a while; whether there is more to do."""
        decisions = self._decide()
        if self._stopping is None and self._trouble is None:
            self._start(decisions)
        if not self._active:
            if self._trouble is not None:
                raise self._trouble
            if not _unfinished(decisions):
                self._stopping = None  # done when it was asked
                return False
            if self._stopping is not None:
                return False
        self._listen(LOOK_AGAIN if not self._active else 1.0)
        self._end_hung()
        if time.monotonic() - self._renewed > RENEW_EVERY:
            leases.renew(self.database, self.owner, LEASE)
            self._renewed = time.monotonic()
        return True

    def _decide(self) -> tuple[Decision, ...]:
        decisions = decide(self.plan, self._records(), presence, partial(resume_step, self.files))
        for decision in decisions:
            if decision.record is None:
                cell, seed = decision.run.key
                raise DatabaseError(
                    f"sweep `{self.plan.name}` plans cell {cell} with seed {seed}, but there is no such run",
                    place=self.database.name,
                    hint="kdx sweep GRID adds what is missing",
                )
        self.listener.decided(decisions)
        return decisions

    def _start(self, decisions: tuple[Decision, ...]) -> None:
        for decision in decisions:
            if len(self._active) >= self.workers:
                return
            record = decision.record
            assert record is not None
            if decision.action not in (Action.START, Action.CONTINUE):
                continue
            if record.id in self._active:
                # Its lease lapsed while this machine slept, yet nobody took it: it is still ours.
                continue
            gone = (record.owner,) if record.owner and presence(record.owner) is Presence.GONE else ()
            attempt = leases.claim(self.database, record.id, self.owner, LEASE, gone)
            if attempt is None:
                continue
            run, card = decision.run, self._card()
            order = Order(
                run_id=record.id,
                attempt=attempt,
                owner=self.owner,
                database=self.address,
                spec=canonical(run.cell.spec),
                seed=run.seed,
                folder=str(self.files / folder_of(record)),
                if_changed=self.if_changed,
                card=card,
            )
            self._active[record.id] = _Running(run, attempt, card, heard=time.monotonic())
            self.listener.started(run, attempt)
            self._hand_over(order)

    def _card(self) -> str | None:
        """The GPU with the fewest runs."""
        taken = Counter(running.card for running in self._active.values())
        return min(self.cards, key=taken.__getitem__, default=None)

    def _hand_over(self, order: Order) -> None:
        """To the server, which is started when the first run needs it."""
        try:
            if self._server is None:
                self._start_server()
            # One that was stopped reads nothing, and what it has not read is all that a socket holds.
            _, ready, _ = select.select([self._wake], [self._socket], [], self.hang_after)
            if ready:
                send(self._socket, start(order), socket.MSG_DONTWAIT)
            elif self._stopping is not None:
                running = self._active.pop(order.run_id)
                self._abandon(order.run_id, running, "the sweep was stopped before it began", stalled=False)
            else:
                raise self._gone(at_once=True)
        except OSError as error:
            raise self._gone(error) from error

    def _start_server(self) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _TO_ALL)
            try:
                self._server = subprocess.Popen(
                    [sys.executable, "-m", "kdx.sweep.server", str(there.fileno())],
                    pass_fds=[there.fileno()],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    env=environment,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._socket = here

    def _listen(self, seconds: float) -> None:
        """Takes events until one calls for a decision, `seconds` at most."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            sources: list[Any] = [self._wake, *([self._socket] if self._server else [])]
            ready, _, _ = select.select(sources, [], [], left)
            if self._wake in ready:
                os.read(self._wake, 64)
                self._signal(signal.SIGTERM)
                self.listener.stopping()
                return
            if self._server and self._socket in ready:
                message = receive(self._socket)
                if message is None:
                    raise self._gone()
                if self._hear(message):
                    return

    def _hear(self, message: Mapping[str, Any]) -> bool:
        """Whether the event calls for a decision."""
        running = self._active.get(message["run"])
        if running is None:
            return False
        running.heard = time.monotonic()
        match message["event"]:
            case "progress":
                self.listener.progressed(running.run, message["step"], message["loss"])
            case "note":
                self.listener.noted(running.run, message["text"])
            case "trouble":
                self._give_up(told(message))
            case "exit":
                self._ended(message["run"], self._active.pop(message["run"]), message["code"])
                return True
        return False

    def _give_up(self, trouble: KdxError) -> None:
        """What one worker cannot write, none can: the others stop where they can go on later."""
        if self._trouble is None:
            self._trouble = trouble
            self._signal(signal.SIGTERM)
            self.listener.stopping()

    def _ended(self, run_id: int, running: _Running, code: int) -> None:
        hung = f"hung: no sign of life for {self.hang_after:.0f} s"
        reason = _how(code) if running.hung_since is None else hung
        # Of a worker that recorded its own end the run is `running` no more; then this changes nothing.
        if self._abandon(run_id, running, reason, stalled=code != STOPPED).state in FINAL:
            self._killed = 0

    def _abandon(self, run_id: int, running: _Running, reason: str, *, stalled: bool) -> RunRecord:
        """What is recorded of the run now."""
        leases.abandon(self.database, run_id, self.owner, running.attempt, reason, stalled=stalled)
        record = self._records()[running.run.key]
        self.listener.ended(running.run, record)
        return record

    def _end_hung(self) -> None:
        """A heartbeat proves a process, not its progress: one that does nothing would hold its run for ever."""
        now = time.monotonic()
        slept, self._looked = now - self._looked, now
        for run_id, running in self._active.items():
            if slept > LOOK_AGAIN + 5:
                # This process was stopped, and its workers perhaps with it: their silence proves nothing.
                running.heard += slept
            if running.hung_since is None and now - running.heard > self.hang_after:
                running.hung_since = now
                self.listener.hung(running.run, now - running.heard)
                self._signal(signal.SIGUSR1, run_id)
                self._signal(signal.SIGTERM, run_id)
            elif running.hung_since is not None and now - running.hung_since > HANG_GRACE:
                self._signal(signal.SIGKILL, run_id)

    def _records(self) -> dict[tuple[str, int], RunRecord]:
        """By cell and seed, not by the sweep's name: under that, another kdx may have registered another plan."""
        return reading.recorded(self.database, {cell.id for cell in self.plan.cells})

    def _signal(self, signum: int, run_id: int | None = None) -> None:
        """To the worker of a run, or to all."""
        if self._server:
            # That the server is gone is told where it is listened to; one that was stopped has to be killed.
            with contextlib.suppress(OSError):
                send(self._socket, {"do": "signal", "signal": signum, "run": run_id}, socket.MSG_DONTWAIT)

    def _gone(self, error: OSError | None = None, *, at_once: bool = False) -> "_ServerGone":
        """That the server has ended, does not heed, or could not be started."""
        if self._server is None:
            return _ServerGone(None, f"could not be started: {error and error.strerror}")
        code = self._end_server(0.0 if at_once else ENDS_WITHIN)
        return _ServerGone(code, f"was {_how(code)}" if code < 0 else _how(code))

    def _go_on_without(self, gone: "_ServerGone") -> None:
        """Gives up the runs that the server had; another is started for them, unless that is of no use."""
        for run_id, running in [*self._active.items()]:
            del self._active[run_id]
            # No fault of theirs.
            self._abandon(run_id, running, f"the process that it was forked from {gone}", stalled=False)
        if self._stopping is not None or self._trouble is not None:
            return
        problem = f"the process that workers are forked from {gone}"
        if gone.code is None:
            raise ServerError(problem, hint="fewer --workers, or a higher limit (ulimit -u), then kdx resume")
        if gone.code >= 0:
            raise ServerEndedError(
                f"{problem}, and they with it",
                hint="its traceback is above; kdx resume goes on from their checkpoints",
            )
        self._killed += 1
        if self._killed == SERVERS:
            raise ServerError(
                f"{problem} {SERVERS} times in a row",
                hint="where memory ran out (dmesg tells), take fewer --workers; kdx resume goes on from checkpoints",
            )
        self.listener.server_killed(str(gone))

    def _end_server(self, seconds: float) -> int:
        """Ends the server, whose workers have so long to come to a safe point; its exit code."""
        assert self._server is not None
        server, self._server = self._server, None
        self._socket.close()
        try:
            return server.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            server.kill()  # its workers die with it
            return server.wait()

    def _close(self) -> None:
        if self._server:
            self._end_server(1.0 if self._at_once else ENDS_WITHIN)
        os.close(self._wake)
        os.close(self._wake_end)


class _ServerGone(Exception):
    """The process that workers are forked from is there no more; how that came."""

    def __init__(self, code: int | None, how: str) -> None:
        super().__init__(how)
        self.code = code
        """Its exit code: of a signal negative, as of subprocess; None where it could not be started."""


def _how(code: int) -> str:
    """How a process ended, from its exit code."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # the real-time signals but two have no name
        return f"killed by signal {-code}"


def _unfinished(decisions: tuple[Decision, ...]) -> bool:
    return any(decision.action is not Action.SKIP for decision in decisions)
