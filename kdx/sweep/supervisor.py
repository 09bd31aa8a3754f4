"""Runs plans: claims runs, has a host start them, listens, and decides again once nothing else is left to start.

A look, which reads all runs of the plans and decides on each, takes time in proportion to their number. So the end of a
run starts another of the runs that the last look found, and a look follows once they are used up, or after a while.
"""

import json
import math
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from kdx.components.registry import texts_of
from kdx.errors import ChangedError, DatabaseError, KdxError, ServerError
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import Plan, PlannedRun
from kdx.run_files.files import files_beside, folder_of
from kdx.run_options import RunOptions
from kdx.store import evaluations, reading
from kdx.store.claims import STALLS
from kdx.store.database import Database
from kdx.store.records import FINAL, RunRecord, RunState
from kdx.store.status import in_progress
from kdx.sweep.blocked import IN_A_ROW
from kdx.sweep.covered import fits
from kdx.sweep.decide import Action, Decision, PlanLookups, decisions_in, leave_to_others
from kdx.sweep.hosts import Host, HostLost
from kdx.sweep.lease_holder import LeaseHolder
from kdx.sweep.messages import DONE, STOPPED, Work, describe_exit, error_of
from kdx.sweep.pace import Pace
from kdx.sweep.placement import ClaimOrder, Gpus, Placed
from kdx.sweep.plan_forecast import expected_seconds
from kdx.vocabulary import IfChanged

LOOK_AGAIN = 2.0  # seconds, while another kdx holds the remaining runs
LOOK_AT_LATEST = 10.0  # seconds between two looks at the database, at most
LOOK_WHEN_FULL = 300.0  # seconds more, while no run could start here; between two looks beside other work, at most
FORECAST_AT_LATEST = 60.0  # seconds between two readings of how long runs take, at most
HANG_GRACE = 30.0  # seconds that a hung worker has to reach a safe point
HOSTS = 3  # losses of all of a host's processes, with no run finished in between, before the sweep gives up


class Listener(Protocol):
    """Receives the events of a sweep; the command line shows them."""

    def decided(self, decisions: tuple[Decision, ...]) -> None:
        """Decisions were made, at the start, now and then, and once nothing is active."""

    def started(self, run: PlannedRun, attempt: int) -> None:
        """A run was claimed and handed to a worker."""

    def begins(self, run: PlannedRun, what: str) -> None:
        """A worker has come to something that it does before the first step, such as preparing data."""

    def progressed(self, run: PlannedRun, step: int, loss: float) -> None:
        """A worker has done another step."""

    def noted(self, run: PlannedRun, text: str) -> None:
        """A worker has a note on its run, such as that it resumes from an older checkpoint."""

    def ended(self, run: PlannedRun, record: RunRecord) -> None:
        """A worker has ended; the record shows how."""

    def evaluating(self, run: PlannedRun, count: int) -> None:
        """A worker makes n evaluations of a completed run."""

    def evaluated(self, run: PlannedRun, missing: int, problem: str | None) -> None:
        """A worker that made evaluations has ended; n are still missing, for the reason given if any."""

    def host_lost(self, problem: str) -> None:
        """All workers of the host were killed, and the host starts again."""

    def stopping(self) -> None:
        """The sweep was asked to stop, or cannot continue, and waits for its workers."""

    def hung(self, run: PlannedRun, seconds: float) -> None:
        """A worker gave no sign of life for n seconds and is being ended."""


@dataclass
class _Running:
    """A run that a worker of this sweep computes."""

    run: PlannedRun
    attempt: int | None
    """None: the run is completed, and its evaluations are being made."""
    to_make: tuple[ResolvedEvaluation, ...]
    placed: Placed | None
    """The GPU that it has; None: whatever it finds."""
    heard: float
    """When the worker last gave a sign of life, by the clock of the supervisor."""
    hung_since: float | None = None
    """When the worker was asked to end because it gave none."""
    cancelled: bool = False
    """Whether the worker was asked to end because somebody cancelled the run."""


@dataclass(frozen=True)
class Shared:
    """How a supervisor works that is one of several, on machines that may differ."""

    patience: float = 600.0
    """Seconds that a run waits for others that can resume it exactly, see `kdx.sweep.decide`."""
    wait: float = 0.0
    """Seconds that the supervisor waits for work when there is none."""


@dataclass
class Supervisor:
    """Runs plans on one host, with results in their database; several supervisors may share a plan."""

    plans: Callable[[], Sequence[Plan]]
    """Returns the plans as they are now, in the order of their turn; called before each decision."""
    database: Database
    workers: int
    listener: Listener
    host: Host
    """Starts processes; it is closed when the plans are done."""
    options: RunOptions = RunOptions()
    trains: bool = True
    """Whether runs are trained; else only evaluations of completed runs are made."""
    gpus: Gpus = field(default_factory=Gpus)
    """The GPUs, of which each run gets one."""
    deadline: float | None = None
    """When active runs are interrupted, by the clock. One of several starts runs until then; else no run starts that is
    expected to take longer."""
    shared: Shared | None = None
    """How it works as one of several. None: it refuses to share its runs with machines that differ, continues however
    many runs fail, and ends when its plans are done."""
    clock: Callable[[], float] = time.monotonic
    """Returns seconds."""

    def __post_init__(self) -> None:
        self._leases = LeaseHolder(self.database, clock=self.clock)
        self._stopping: int | None = None
        """The signal that stops it."""
        self._at_once = False
        self._workers_stop = False
        """Whether all workers were asked to reach a safe point and end."""
        self._hosts_lost = 0
        """Losses of the host since a run last finished."""
        self._trouble: KdxError | None = None
        self._active: dict[int, _Running] = {}
        self._failed_tries: Counter[int] = Counter()
        """Completed run → workers that ended with evaluations still missing; after `STALLS` it is not tried again."""
        self._listened = self.clock()
        self._looks = Pace(1.0, LOOK_AT_LATEST, self.clock)
        self._looks_while_busy = Pace(1.0, LOOK_WHEN_FULL, self.clock)
        self._expected: dict[str, float | None] = {}
        """Cell id → seconds of a whole run, None if unknown; read again now and then, since runs end."""
        self._forecasts = Pace(0.0, FORECAST_AT_LATEST, self.clock)
        self.out_of_time = False
        """Whether the deadline was reached with work left."""
        self.nothing_fits = False
        """Whether the sweep ended before its deadline because no run that is left would be done by then."""
        self.failed_in_a_row: dict[int, str] = {}
        """Run → how it failed, for runs that failed since one last came to its end."""
        self._plans: list[PlanLookups] = []
        """Each plan with the seeds that it needs, as of the last decision."""
        self._left_to_start: ClaimOrder[Decision] = ClaimOrder(())
        """What the last look found to start, without what was started since."""
        self._postponed: set[str] = set()
        """Cells and searches with a run that failed since the last look; the next one decides on their other runs."""
        self._look_is_due = True
        self._idle_since: float | None = None
        """When it had nothing to do for the first time since it last had something."""

    def run(self) -> int | None:
        """Run until nothing is left to do, and return the signal that stopped it before that, or None.

        The deadline stops it as SIGINT does, see `out_of_time` and `nothing_fits`.

        Raises:
            DatabaseError: workers could no longer write the database.
            AccessError: they may no longer read or write a file.
            StorageError: they could no longer write the disk.
            ChangedError: a run was started under other conditions, and the options refuse that. In each of these cases
                the active runs are interrupted.
            ServerError: the host's processes were killed again and again, or the system gives no process.
            ServerEndedError: the host ended without being told to, which should never happen.
        """
        try:
            while True:
                try:
                    if self._advance():
                        continue
                    return self._stopping
                except HostLost as lost:
                    self._recover(lost)
        except KeyboardInterrupt:
            self.host.signal(signal.SIGKILL)
            if self._stopping is None:
                raise
            return self._stopping
        finally:
            self.host.close(at_once=self._at_once)

    def stop(self, signum: int) -> None:
        """Stop claiming runs and let active ones reach a safe point; a second call ends at once. Signal-safe."""
        if self._stopping is None:
            self._stopping = signum
            self.host.wake()
        # A terminal that closes sends the signal several times: from its shell and from the system.
        elif signum != signal.SIGHUP and not self._at_once:
            self._at_once = True
            raise KeyboardInterrupt

    def dump(self) -> None:
        """Make every worker write the stacks of its threads to its log."""
        self.host.signal(signal.SIGUSR1)

    def _advance(self) -> bool:
        """Start runs, after a look if one is due, and listen for a while; return whether there is more to do."""
        self._look_is_due |= self._looks_while_busy.due
        if not self._look_is_due:
            with self.database.connected():
                self._start()
        used_up = len(self._active) < self.workers and not self._left_to_start
        looks = not self._active or ((self._look_is_due or used_up) and self._stopping is None)
        decisions = self._look() if looks else ()
        if not self._active:
            if self._trouble is not None:
                raise self._trouble
            if self.gave_up:
                return False
            if not self._unfinished(decisions):
                if self._waits_for_work():
                    return True
                self._stopping = None  # done when it was asked
                self.out_of_time = False
                return False
            if self._stopping is not None:
                return False
            if self.deadline is not None and not self._may_continue(decisions):
                self.nothing_fits, self._stopping = True, signal.SIGINT
                return False
        self._idle_since = None
        self._wait()
        return True

    def _look(self) -> tuple[Decision, ...]:
        """Decide on every run, end what was cancelled, and start runs; return the decisions."""
        plans = self.database.persist(self.plans)
        with self.database.connected():
            with self._looks.keep(), self._looks_while_busy.keep():
                decisions = self._decide(plans)
            self._look_is_due = False
            self._postponed.clear()
            to_start = [each for each in decisions if each.trains or each.action is Action.EVALUATE]
            # A GPU would never become empty if others went before those that need it alone.
            self._left_to_start = ClaimOrder(sorted(to_start, key=lambda each: not each.alone))
            self._end_cancelled(decisions)
            self._start()
        return decisions

    def _wait(self) -> None:
        """Listen until a run has ended, the sweep stops, or a look is due."""
        heard = False
        while not heard:
            seconds = LOOK_AGAIN if not self._active else 1.0
            heard = self._listen(min(seconds, self._left()) if self._stopping is None else seconds)
            self._end_hung()
            # Looks cost the database as much as all else that a supervisor does.
            busy = len(self._active) >= self.workers or self._left_to_start
            due = self.clock() >= self._looks.next + (LOOK_WHEN_FULL if busy else 0.0)
            renewed = self._leases.renew()
            claimed = sum(run.attempt is not None for run in self._active.values())
            # A lease is gone where its run was cancelled, or has ended; messages of ends may still wait to be heard.
            lost = not heard and renewed is not None and renewed < claimed
            self._look_is_due |= due or lost
            heard |= self._look_is_due or self._stopping is not None or self._left() <= 0

    @property
    def works(self) -> bool:
        """Whether a run is computed here."""
        return bool(self._active)

    @property
    def gave_up(self) -> bool:
        """Whether so many runs failed one after another that the fault may lie here, and no more are started."""
        return self.shared is not None and len(self.failed_in_a_row) >= IN_A_ROW

    def _waits_for_work(self) -> bool:
        """Wait a little for more to do; return False if it was asked to stop, or has waited long enough."""
        if self.shared is None or self._stopping is not None:
            return False
        now = self.clock()
        self._idle_since = now if self._idle_since is None else self._idle_since
        left = min(self._idle_since + self.shared.wait - now, self._left())
        if left <= 0:
            return False
        self._listen(min(LOOK_AGAIN, left))
        return True

    def _left(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return math.inf if self.deadline is None else self.deadline - self.clock()

    def _fits(self, decision: Decision) -> bool:
        """Return whether a run is expected to end before the deadline."""
        if self.deadline is None:
            return True
        if self.shared is None and (not self._expected or self._forecasts.due):
            with self._forecasts.keep():
                for each in self._plans:
                    self._expected |= self.database.persist(partial(expected_seconds, self.database, each.plan))
        return fits(decision, self._expected, self._left())

    def _may_continue(self, decisions: tuple[Decision, ...]) -> bool:
        """Return whether a run may start before the deadline: of this sweep, or one that another kdx may give up."""
        return any(
            (decision.action is Action.WAIT and not decision.awaits_look) or self._may_start(decision)
            for decision in decisions
        )

    def _decide(self, plans: Sequence[Plan]) -> tuple[Decision, ...]:
        """Return the decision on each run; of several plans that have it, the first with something to do."""
        seen = {id(lookups.plan): lookups for lookups in self._plans}
        self._plans = [seen.get(id(plan)) or PlanLookups(plan) for plan in plans]
        decisions: dict[int, Decision] = {}
        for lookups in self._plans:
            for decision in self.database.persist(partial(decisions_in, self.database, lookups.plan, lookups)):
                if decision.record is None and self.shared is not None:
                    continue  # somebody removed the sweep, or its cell has another id; the plans will show it
                if decision.record is None:
                    cell_id, seed = decision.run.cell.id, decision.run.seed
                    raise DatabaseError(
                        f"sweep `{lookups.plan.name}` plans cell {cell_id} with seed {seed}, but there is no such run",
                        place=self.database.name,
                        hint="kdx sweep GRID adds what is missing",
                    )
                run_id = decision.record.id
                if run_id not in decisions or decisions[run_id].action is Action.SKIP:
                    decisions[run_id] = decision
        if self.shared is not None:
            trained = [decision.record for decision in decisions.values() if decision.trains]
            resumed = [record.id for record in trained if record and record.attempt]
            decisions = leave_to_others(
                decisions,
                self.database.persist(lambda: in_progress(self.database, resumed)) if resumed else {},
                self._leases.name,
                patience=self.shared.patience,
                if_changed=self.options.if_changed,
            )
        decided = tuple(decisions.values())
        self.listener.decided(decided)
        return decided

    def _start(self) -> None:
        """Have the host start what may start now, up to the number of workers."""
        if self._left() <= 0 and self._stopping is None:
            self.out_of_time = True
            self.stop(signal.SIGINT)
        if self._stopping is not None or self._trouble is not None or self.gave_up:
            return
        waiting: list[Placed] = []
        without_gpu: list[Decision] = []
        while self._left_to_start and len(self._active) < self.workers:
            decision = next(self._left_to_start)
            run, record = decision.run, decision.record
            assert record is not None
            # A run is active still where its lease lapsed while this machine slept, and no other process claimed it.
            if record.id in self._active or not self._may_start(decision) or _group(run) in self._postponed:
                continue
            at_work = [running.placed for running in self._active.values() if running.placed]
            placed = self.gpus.place(at_work, waiting, alone=decision.alone)
            if placed is None and self.gpus.names:
                without_gpu.append(decision)
                continue
            attempt = None
            if decision.action is not Action.EVALUATE and (attempt := self._leases.claim(record)) is None:
                self._left_to_start.too_late()
                continue
            running = self._active[record.id] = _Running(run, attempt, decision.to_make, placed, heard=self.clock())
            if attempt is None:
                self.listener.evaluating(run, len(decision.to_make))
            else:
                self.listener.started(run, attempt)
            # The first time it takes seconds to start a process, in which no connection is held.
            self.database.disconnect()
            if not self.host.start(self._work(running, decision, record), self.options.hang_after):
                del self._active[record.id]
                self._give_up(record.id, running, "the sweep was stopped before it began")
                break
        self._left_to_start.put_back(without_gpu)

    def _give_up(self, run_id: int, running: _Running, reason: str) -> None:
        """End what a run's process had to do, for a reason that is no fault of its own."""
        if running.attempt is None:
            self.listener.evaluated(running.run, len(running.to_make), None)
        else:
            self._abandon(run_id, running, reason, stalled=False)

    def _may_start(self, decision: Decision) -> bool:
        """Return whether a run may be trained or evaluated here and now."""
        if decision.action is Action.EVALUATE:
            return decision.record is not None and self._failed_tries[decision.record.id] < STALLS
        return self.trains and decision.trains and self._fits(decision)

    def _work(self, running: _Running, decision: Decision, record: RunRecord) -> Work:
        """Return what a worker needs for a run."""
        run, cell, placed = running.run, running.run.cell, running.placed
        files = files_beside(self.database.location)
        return Work(
            run_id=record.id,
            attempt=running.attempt,
            lease_holder=self._leases.name,
            database=self.database.name,
            spec=cell.spec.text,
            seed=run.seed,
            folder=str(files / folder_of(record)),
            options=replace(self.options, if_changed=IfChanged.REFUSE) if decision.exactly else self.options,
            gpu=placed.gpu if placed else None,
            beside=placed is not None and not placed.alone,
            evaluations=tuple(json.dumps(dict(evaluation.changes)) for evaluation in decision.to_make),
            components=texts_of(cell.spec.components | _components_of(decision.to_make)),
            shorter=decision.shorter and (decision.shorter.id, str(files / folder_of(decision.shorter))),
            tests=run.search_id is None,
            rivals=run.rivals,
        )

    def _listen(self, seconds: float) -> bool:
        """Receive messages for up to `seconds`; return True once one calls for a decision."""
        deadline = self.clock() + seconds
        while (left := deadline - self.clock()) > 0:
            message = self.host.listen(left)
            if message is None:
                if self._stopping is not None:
                    self._stop_workers()
                return False
            if self._hear(message):
                return True
        return False

    def _hear(self, message: Mapping[str, Any]) -> bool:
        """Handle a message and return whether it calls for a decision."""
        running = self._active.get(message["run"])
        if running is None:
            return False
        running.heard = self.clock()
        match message["event"]:
            case "progress":
                self.listener.progressed(running.run, message["step"], message["loss"])
            case "begins":
                self.listener.begins(running.run, message["what"])
            case "note":
                self.listener.noted(running.run, message["text"])
            case "trouble":
                trouble = error_of(message)
                # If a run has to resume exactly, what differs here is recorded; another worker may be like the first.
                if self.shared is None or not isinstance(trouble, ChangedError):
                    # What one worker cannot write no other can.
                    self._trouble = self._trouble or trouble
                    self._stop_workers()
            case "exit":
                with self.database.connected():
                    self._ended(message["run"], self._active.pop(message["run"]), message["code"])
                return True
        return False

    def _stop_workers(self) -> None:
        """Ask all workers, once, to reach a safe point and end."""
        if not self._workers_stop:
            self._workers_stop = True
            self.host.signal(signal.SIGTERM)
            self.listener.stopping()

    def _ended(self, run_id: int, running: _Running, code: int) -> None:
        hung = f"hung: no sign of life for {self.options.hang_after:.0f} s"
        reason = describe_exit(code) if running.hung_since is None else hung
        if running.attempt is None:
            recorded = self.database.persist(lambda: evaluations.of_runs(self.database, [run_id]))
            missing = {evaluation.id for evaluation in running.to_make} - recorded.get(run_id, {}).keys()
            failed = bool(missing) and (code != STOPPED or running.hung_since is not None)
            self._failed_tries[run_id] += failed
            self.listener.evaluated(running.run, len(missing), reason if failed and code != DONE else None)
            self._hosts_lost = 0
            return
        # A worker that has done its work has recorded the end of its run. Another may have; then this changes nothing.
        if code == DONE:
            record = self._report_end(run_id, running)
        else:
            record = self._abandon(run_id, running, reason, stalled=code != STOPPED)
        if record.state in FINAL:
            self._hosts_lost = 0
            self.failed_in_a_row.clear()
        elif record.state is RunState.FAILED:
            self.failed_in_a_row[run_id] = record.error or ""

    def _abandon(self, run_id: int, running: _Running, reason: str, *, stalled: bool) -> RunRecord:
        """End the attempt of a run whose process has ended, and return the record of the run."""
        assert running.attempt is not None
        self._leases.abandon(run_id, running.attempt, reason, stalled=stalled)
        return self._report_end(run_id, running)

    def _report_end(self, run_id: int, running: _Running) -> RunRecord:
        """Report how a worker has ended, and return the record of the run."""
        record = self.database.persist(lambda: reading.load_run(self.database, run_id))
        # The run, and others whose conditions this machine lacks as well, are decided on anew.
        self._look_is_due |= record.state is RunState.INTERRUPTED
        # Runs that fail alike pause the others.
        if record.state is RunState.FAILED:
            self._postponed.add(_group(running.run))
        self.listener.ended(running.run, record)
        return record

    def _end_cancelled(self, decisions: tuple[Decision, ...]) -> None:
        """End workers whose run somebody cancelled: they can record nothing more, but a long test notices that late."""
        for decision in decisions:
            if decision.record is None or decision.record.state is not RunState.CANCELLED:
                continue
            running = self._active.get(decision.record.id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                self.host.signal(signal.SIGTERM, decision.record.id)

    def _end_hung(self) -> None:
        """End workers without progress; a lease alone would let a hung worker hold its run for ever."""
        now = self.clock()
        slept, self._listened = now - self._listened, now
        for run_id, running in self._active.items():
            if slept > LOOK_AGAIN + 5:
                # This process was stopped, perhaps with its workers, so their silence proves nothing.
                running.heard += slept
            if running.hung_since is None and now - running.heard > self.options.hang_after:
                running.hung_since = now
                self.listener.hung(running.run, now - running.heard)
                self.host.signal(signal.SIGUSR1, run_id)
                self.host.signal(signal.SIGTERM, run_id)
            elif running.hung_since is not None and now - running.hung_since > HANG_GRACE:
                self.host.signal(signal.SIGKILL, run_id)

    def _unfinished(self, decisions: tuple[Decision, ...]) -> bool:
        """Return whether there is more to do, here or in another kdx."""
        # Runs that are left to others are not waited for; nor is a seed that only may be needed.
        return any(
            self._may_start(decision)
            if decision.action is Action.EVALUATE
            else self.trains and (decision.trains or decision.action is Action.WAIT) and not decision.awaits_look
            for decision in decisions
        )

    def _recover(self, lost: HostLost) -> None:
        """Abandon the host's runs, which are started again unless that would not help."""
        for run_id, running in [*self._active.items()]:
            del self._active[run_id]
            self._give_up(run_id, running, lost.problem)
        if self._stopping is not None or self._trouble is not None:
            return
        if lost.final is not None:
            raise lost.final
        self._hosts_lost += 1
        if self._hosts_lost == HOSTS:
            raise ServerError(
                f"{lost.problem} {HOSTS} times in a row",
                hint="if memory ran out (see dmesg), use fewer --workers; kdx resume continues from checkpoints",
            )
        self.listener.host_lost(lost.problem)


def _group(run: PlannedRun) -> str:
    """Return the id of the search of a run, or else of its cell."""
    return run.search_id or run.cell.id


def _components_of(evaluations: Iterable[ResolvedEvaluation]) -> dict[str, str]:
    return {word: sha256 for evaluation in evaluations for word, sha256 in evaluation.request.components.items()}
