"""Runs plans: claims runs, has a host start them, listens, and calls `decide` again after every event."""

import json
import math
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kdx.components.registry import texts_of
from kdx.errors import ChangedError, DatabaseError, KdxError, ServerError
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import Plan, PlannedRun
from kdx.run_files.files import folder_of
from kdx.run_options import RunOptions
from kdx.store import evaluations, reading, recording
from kdx.store.database import Database
from kdx.store.records import FINAL, RunRecord, RunState
from kdx.sweep.budget import fits
from kdx.sweep.claim_order import ClaimOrder
from kdx.sweep.decide import Action, Decision
from kdx.sweep.decisions import decisions_in
from kdx.sweep.failing import IN_A_ROW, PausedCells
from kdx.sweep.gpus import Gpus, Placed
from kdx.sweep.held_leases import HeldLeases
from kdx.sweep.hosts.host import Host, HostLost
from kdx.sweep.left_to_others import LeftToOthers
from kdx.sweep.messages import STOPPED, ClaimedRun, FinishedRun, Work, describe_exit, error_of
from kdx.sweep.pace import Pace
from kdx.sweep.seeds import NeededSeeds
from kdx.tune.known_trial import Rivals
from kdx.tune.trial_plan import TrialPlan
from kdx.vocabulary import IfChanged

LOOK_AGAIN = 2.0  # seconds, while another kdx holds the remaining runs
LOOK_AT_LATEST = 10.0  # seconds between two looks at the database, at most
LOOK_WHEN_FULL = 300.0  # seconds more, while no run could begin here
HANG_GRACE = 30.0  # seconds that a hung worker has to reach a safe point
HOSTS = 3  # losses of all of a host's processes, with no run finished in between, before the sweep gives up


Predict = Callable[[Sequence[Plan]], Mapping[str, float | None]]
"""Tells, of cells of these plans, cell id → how many seconds a whole run of the cell takes, by what is recorded now;
None: nobody knows."""


class Listener(Protocol):
    """Receives the events of a sweep; the command line shows them."""

    def decided(self, decisions: tuple[Decision, ...]) -> None:
        """Decisions were made, at the start and after every event."""

    def started(self, run: PlannedRun, attempt: int) -> None:
        """A run was claimed and handed to a worker."""

    def progressed(self, run: PlannedRun, step: int, loss: float) -> None:
        """A worker has done another step."""

    def noted(self, run: PlannedRun, text: str) -> None:
        """A worker has a note on its run, such as that it resumes from an older checkpoint."""

    def ended(self, run: PlannedRun, record: RunRecord) -> None:
        """A worker has ended; the record shows how."""

    def evaluating(self, run: PlannedRun, count: int) -> None:
        """A worker makes so many evaluations of a completed run."""

    def evaluated(self, run: PlannedRun, missing: int, problem: str | None) -> None:
        """A worker that made evaluations has ended; so many are still not made, for that reason if there is one."""

    def host_lost(self, problem: str) -> None:
        """All workers of the host were killed, and the host starts again."""

    def stopping(self) -> None:
        """The sweep was asked to stop, or cannot go on, and waits for its workers."""

    def hung(self, run: PlannedRun, seconds: float) -> None:
        """A worker gave no sign of life for so many seconds and is being ended."""


@dataclass
class _Running:
    """A run that a worker of this sweep computes."""

    plan: Plan
    """The plan that asks for it."""
    run: PlannedRun
    attempt: int | None
    """None: the run is completed, and its evaluations are being made."""
    placed: Placed | None
    """On which GPU it is; None: on whatever it finds."""
    heard: float
    """When the worker last gave a sign of life, by the clock of the supervisor."""
    hung_since: float | None = None
    """When the worker was asked to end because it gave none."""
    cancelled: bool = False
    """Whether the worker was asked to end because somebody cancelled the run."""


@dataclass(frozen=True)
class Shared:
    """How a supervisor works that is one of several, on machines that may differ."""

    left: LeftToOthers
    """Which runs it leaves to others that can go on exactly, and for how long."""
    wait: float = 0.0
    """Seconds that it waits for work when there is none."""


class _Kept:
    """What is found for one plan and stays from decision to decision."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.needed = NeededSeeds(plan)
        self.paused = PausedCells()


@dataclass
class Supervisor:
    """Runs plans on one host, with results in their database; several supervisors may share a plan."""

    plans: Callable[[], Sequence[Plan]]
    """The plans as they are now, the first one first; asked before each decision."""
    database: Database
    address: str
    """Address with which workers open the database."""
    files: Path
    """Folder of the runs' checkpoints and logs."""
    workers: int
    listener: Listener
    host: Host
    """The host, which is closed when the plan is done."""
    options: RunOptions = RunOptions()
    trains: bool = True
    """Whether runs are trained, or only evaluations made of those that are completed."""
    gpus: Gpus = field(default_factory=Gpus)
    """The GPUs, of which each run gets one."""
    deadline: float | None = None
    """When active runs are interrupted, by the clock; no run is begun that would not be done by then, as far as it is
    predicted."""
    predict: Predict = lambda plans: {}
    shared: Shared | None = None
    """How it works as one of several. None: it refuses to share its runs with machines that differ, goes on however
    many runs fail, and ends when its plans are done."""
    clock: Callable[[], float] = time.monotonic
    """What tells the seconds that pass."""

    def __post_init__(self) -> None:
        self._leases = HeldLeases(self.database, clock=self.clock)
        self._stopping: int | None = None
        self._stop_passed_on = False
        self._at_once = False
        self._hosts_lost = 0
        """How often in a row the host was lost since a run was last finished."""
        self._trouble: KdxError | None = None
        self._active: dict[int, _Running] = {}
        self._tried: set[int] = set()
        """Completed runs whose evaluations were begun here; what is missing of one then is not tried again."""
        self._listened = self.clock()
        self._looks = Pace(1.0, LOOK_AT_LATEST, self.clock)
        self._predicted: Mapping[str, float | None] | None = None
        self.out_of_time = False
        """Whether the deadline was reached with work left."""
        self.nothing_fits = False
        """Whether the sweep ended before its deadline because no run that is left would be done by then."""
        self.failed_in_a_row: dict[int, str] = {}
        """Run → how it failed, for those that failed since a run last came to its end."""
        self._kept: list[_Kept] = []
        self._idle_since: float | None = None

    def run(self) -> int | None:
        """Runs until nothing is left to do; returns the signal that stopped it before that, or None.

        The deadline stops it as SIGINT does, see `out_of_time` and `nothing_fits`.

        Raises:
            DatabaseError: workers could no longer write the database.
            AccessError: they may no longer read or write a file.
            StorageError: they could no longer write the disk.
            ChangedError: a run began under other conditions, and the options refuse that. In each of these cases the
                active runs are interrupted.
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
        """Stops claiming runs and lets active ones reach a safe point; a second call ends at once. Signal-safe."""
        if self._stopping is None:
            self._stopping = signum
            self.host.wake()
        # A terminal that closes sends the signal several times: from its shell and from the system.
        elif signum != signal.SIGHUP and not self._at_once:
            self._at_once = True
            raise KeyboardInterrupt

    def dump(self) -> None:
        """Makes every worker write the stacks of its threads to its log."""
        self.host.signal(signal.SIGUSR1)

    def _advance(self) -> bool:
        """Decides, starts runs, and listens for a while; returns whether there is more to do."""
        plans = self.database.persist(self.plans)
        with self.database.connected():
            with self._looks.keep():
                decided = self._decide(plans)
            decisions = tuple(decision for _, decision in decided)
            if self._left() <= 0 and self._stopping is None:
                self.out_of_time = True
                self.stop(signal.SIGINT)
            self._end_cancelled(decisions)
            if self._stopping is None and self._trouble is None and not self.gave_up:
                self._start(decided)
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
            if self.deadline is not None and not self._may_go_on(decisions):
                self.nothing_fits, self._stopping = True, signal.SIGINT
                return False
        self._idle_since = None
        self._wait()
        return True

    def _wait(self) -> None:
        """Listens until it is time to decide again: a run has ended, it is to stop, or a look is due."""
        heard = False
        while not heard:
            seconds = LOOK_AGAIN if not self._active else 1.0
            heard = self._listen(min(seconds, self._left()) if self._stopping is None else seconds)
            self._end_hung()
            heard |= self._lost_a_lease() or self._looks_again() or self._stopping is not None or self._left() <= 0

    def _looks_again(self) -> bool:
        """Whether a look at the database is due, which costs it as much as all other work of a supervisor."""
        full = len(self._active) >= self.workers
        return self.clock() >= self._looks.next + (LOOK_WHEN_FULL if full else 0.0)

    def _lost_a_lease(self) -> bool:
        """Renews the leases, if it is time; whether there are fewer than runs, since one was cancelled or has ended."""
        renewed = self._leases.renew()
        return renewed is not None and renewed < sum(one.attempt is not None for one in self._active.values())

    @property
    def works(self) -> bool:
        """Whether a run is being computed here."""
        return bool(self._active)

    @property
    def gave_up(self) -> bool:
        """Whether so many runs failed one after another that the fault may lie here, and it begins no more."""
        return self.shared is not None and len(self.failed_in_a_row) >= IN_A_ROW

    def _waits_for_work(self) -> bool:
        """Waits a little for more to do, unless it was asked to stop, or has waited long enough."""
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

    def _seconds(self) -> Mapping[str, float | None]:
        """What is predicted, asked for again once a run has ended."""
        if self._predicted is None:
            plans = [one.plan for one in self._kept]
            self._predicted = self.database.persist(lambda: self.predict(plans))
        return self._predicted

    def _may_go_on(self, decisions: tuple[Decision, ...]) -> bool:
        """Whether a run may begin before the deadline: one of this sweep, or one that another kdx may give up."""
        seconds = self._seconds()
        return any(
            decision.action is Action.EVALUATE
            or (decision.action is Action.WAIT and not decision.awaits_look)
            or (decision.action in (Action.START, Action.CONTINUE) and fits(decision, seconds, self._left()))
            for decision in decisions
        )

    def _decide(self, plans: Sequence[Plan]) -> tuple[tuple[Plan, Decision], ...]:
        """Each decision with the plan that asks for it; of several on one run, the first that has something to do."""
        self._kept = [next((one for one in self._kept if one.plan is plan), None) or _Kept(plan) for plan in plans]
        decided = self._decide_each()
        again = [one.record.id for _, one in decided if one.action is Action.REPEAT and one.record is not None]
        if again and self.trains and self.database.persist(lambda: recording.repeat(self.database, again)):
            decided = self._decide_each()
        self.listener.decided(tuple(decision for _, decision in decided))
        return decided

    def _decide_each(self) -> tuple[tuple[Plan, Decision], ...]:
        found: dict[int, tuple[Plan, Decision]] = {}
        for kept in self._kept:
            for decision in self._decisions(kept):
                if decision.record is None and self.shared is not None:
                    continue  # somebody removed the sweep, or its cell has another id; the plans will show it
                if decision.record is None:
                    cell, seed = decision.run.key
                    raise DatabaseError(
                        f"sweep `{kept.plan.name}` plans cell {cell} with seed {seed}, but there is no such run",
                        place=self.database.name,
                        hint="kdx sweep GRID adds what is missing",
                    )
                before = found.get(decision.record.id)
                if before is None or before[1].action is Action.SKIP:
                    found[decision.record.id] = kept.plan, decision
        if self.shared is None:
            return tuple(found.values())
        decisions = {run_id: decision for run_id, (_, decision) in found.items()}
        left = self.database.persist(partial(self.shared.left, self.database, decisions, self._leases.holder))
        return tuple((found[run_id][0], decision) for run_id, decision in left.items())

    def _decisions(self, kept: "_Kept") -> tuple[Decision, ...]:
        decide = partial(decisions_in, self.database, kept.plan, self.files, kept.needed, kept.paused)
        return self.database.persist(decide)

    def _start(self, decided: Sequence[tuple[Plan, Decision]]) -> None:
        seconds = self._seconds() if self.deadline is not None else {}
        waiting: list[Placed] = []
        """The places of runs that are to be alone, on GPUs that are becoming empty."""
        # A GPU would never become empty if others went first.
        order = ClaimOrder(sorted(decided, key=lambda each: not each[1].alone))
        for plan, decision in order:
            if len(self._active) >= self.workers:
                return
            run, record = decision.run, decision.record
            assert record is not None
            if decision.action is Action.EVALUATE:
                if not self._evaluate(plan, decision, record, waiting):
                    return
                continue
            if decision.action not in (Action.START, Action.CONTINUE) or not self.trains:
                continue
            if self.deadline is not None and not fits(decision, seconds, self._left()):
                continue
            if record.id in self._active:
                # Its lease lapsed while this machine slept, but no other process claimed it.
                continue
            placed = self._place(run, waiting, alone=decision.alone)
            if placed is None and self.gpus.names:
                continue
            attempt = self._leases.claim(record)
            if attempt is None:
                order.too_late()
                continue
            claimed = ClaimedRun(
                run_id=record.id,
                attempt=attempt,
                lease_holder=self._leases.holder,
                database=self.address,
                spec=run.cell.spec.text,
                seed=run.seed,
                folder=str(self.files / folder_of(record)),
                options=replace(self.options, if_changed=IfChanged.REFUSE) if decision.exactly else self.options,
                gpu=placed.gpu if placed else None,
                beside=placed is not None and not placed.alone,
                evaluations=_settings(plan.evaluations_of(run.cell.id)),
                components=texts_of(run.cell.spec.components),
                tests=not isinstance(plan, TrialPlan),
                rivals=rivals.text() if (rivals := _rivals(plan, run)) else None,
            )
            running = self._active[record.id] = _Running(plan, run, attempt, placed, heard=self.clock())
            self.listener.started(run, attempt)
            if not self._host_starts(claimed):
                del self._active[record.id]
                self._abandon(record.id, running, "the sweep was stopped before it began", stalled=False)
                return

    def _place(self, run: PlannedRun, waiting: list[Placed], *, alone: bool = False) -> Placed | None:
        """A place on a GPU; None: there is none now, and one that is to be alone waits for one."""
        alone = alone or not self.gpus.shared
        at_work = [one.placed for one in self._active.values() if one.placed] + waiting
        gpu = self.gpus.place(run.cell, at_work, alone=alone)
        if gpu is not None:
            return Placed(gpu, run.cell.id, alone)
        if alone and (gpu := self.gpus.least_used(at_work)) is not None:
            waiting.append(Placed(gpu, run.cell.id, alone))
        return None

    def _evaluate(self, plan: Plan, decision: Decision, record: RunRecord, waiting: list[Placed]) -> bool:
        """Has a worker make the evaluations that a completed run lacks; False: woken before that could be done."""
        if record.id in self._active or record.id in self._tried:
            return True
        run = decision.run
        placed = self._place(run, waiting)
        if placed is None and self.gpus.names:
            return True
        self._tried.add(record.id)
        finished = FinishedRun(
            run_id=record.id,
            database=self.address,
            spec=run.cell.spec.text,
            seed=run.seed,
            folder=str(self.files / folder_of(record)),
            evaluations=_settings(decision.missing),
            gpu=placed.gpu if placed else None,
            components=texts_of(run.cell.spec.components),
        )
        self._active[record.id] = _Running(plan, run, None, placed, heard=self.clock())
        self.listener.evaluating(run, len(decision.missing))
        if self._host_starts(finished):
            return True
        del self._active[record.id]
        return False

    def _host_starts(self, work: Work) -> bool:
        """See `kdx.sweep.hosts.host.Host.start`; the first time it takes seconds, in which no connection is held."""
        self.database.disconnect()
        return self.host.start(work, self.options.hang_after)

    def _listen(self, seconds: float) -> bool:
        """Receives messages for at most `seconds`, until one calls for a decision; whether one did."""
        deadline = self.clock() + seconds
        while (left := deadline - self.clock()) > 0:
            message = self.host.listen(left)
            if message is None:
                if self._stopping is not None and not self._stop_passed_on:
                    self._stop_passed_on = True
                    self.host.signal(signal.SIGTERM)
                    self.listener.stopping()
                return False
            if self._hear(message):
                return True
        return False

    def _hear(self, message: Mapping[str, Any]) -> bool:
        """Handles a message and returns whether it calls for a decision."""
        running = self._active.get(message["run"])
        if running is None:
            return False
        running.heard = self.clock()
        match message["event"]:
            case "progress":
                self.listener.progressed(running.run, message["step"], message["loss"])
            case "measured":
                self.gpus.measured(running.run.cell, message["memory"])
                return self.gpus.shared
            case "note":
                self.listener.noted(running.run, message["text"])
            case "trouble":
                trouble = error_of(message)
                # Of a run that is to go on exactly, it is recorded what differs here; another worker may be like it.
                if not (self.shared is not None and isinstance(trouble, ChangedError)):
                    self._give_up(trouble)
            case "exit":
                with self.database.connected():
                    self._ended(message["run"], self._active.pop(message["run"]), message["code"])
                return True
        return False

    def _give_up(self, trouble: KdxError) -> None:
        """Stops all workers at safe points, since a file that one worker cannot write no other can."""
        if self._trouble is None:
            self._trouble = trouble
            self.host.signal(signal.SIGTERM)
            self.listener.stopping()

    def _ended(self, run_id: int, running: _Running, code: int) -> None:
        self._predicted = None
        hung = f"hung: no sign of life for {self.options.hang_after:.0f} s"
        reason = describe_exit(code) if running.hung_since is None else hung
        # Of a worker that recorded its own end the run is `running` no more; then this changes nothing.
        if running.attempt is None:
            made = self.database.persist(lambda: evaluations.recorded(self.database, [running.run.cell.id]))
            there = made.get(run_id, {})
            missing = {one.id for one in running.plan.evaluations_of(running.run.cell.id)} - there.keys()
            self.listener.evaluated(running.run, len(missing), reason if missing and code != STOPPED else None)
            self._hosts_lost = 0
            return
        record = self._abandon(run_id, running, reason, stalled=code != STOPPED)
        if record.state in FINAL:
            self._hosts_lost = 0
            self.failed_in_a_row.clear()
        elif record.state is RunState.FAILED:
            self.failed_in_a_row[run_id] = record.error or ""

    def _abandon(self, run_id: int, running: _Running, reason: str, *, stalled: bool) -> RunRecord:
        """What is recorded of the run now."""
        assert running.attempt is not None
        self._leases.abandon(run_id, running.attempt, reason, stalled=stalled)
        found = self.database.persist(lambda: reading.recorded(self.database, [running.run.cell.id]))
        record = found[running.run.key]
        self.listener.ended(running.run, record)
        return record

    def _end_cancelled(self, decisions: tuple[Decision, ...]) -> None:
        """Ends workers whose run somebody cancelled: they can write nothing more of it, which a test notices late."""
        for decision in decisions:
            if decision.record is None or decision.record.state is not RunState.CANCELLED:
                continue
            running = self._active.get(decision.record.id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                self.host.signal(signal.SIGTERM, decision.record.id)

    def _end_hung(self) -> None:
        """Ends workers without progress; a lease alone would let a hung worker hold its run for ever."""
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
        """Whether there is more to do, here or in another kdx."""
        return any(
            decision.record is not None and decision.record.id not in self._tried
            if decision.action is Action.EVALUATE
            # What others are to do is not waited for; a seed that may be needed is not waited for by itself.
            else decision.action not in (Action.SKIP, Action.LEAVE) and not decision.awaits_look and self.trains
            for decision in decisions
        )

    def _recover(self, lost: HostLost) -> None:
        """Abandons the host's runs, which are started again unless that would not help."""
        for run_id, running in [*self._active.items()]:
            del self._active[run_id]
            # No fault of theirs.
            if running.attempt is None:
                self._tried.discard(run_id)
                continue
            self._abandon(run_id, running, lost.of_a_run, stalled=False)
        if self._stopping is not None or self._trouble is not None:
            return
        if lost.final is not None:
            raise lost.final
        self._hosts_lost += 1
        if self._hosts_lost == HOSTS:
            raise ServerError(
                f"{lost.problem} {HOSTS} times in a row",
                hint="where memory ran out (dmesg tells), take fewer --workers; kdx resume goes on from checkpoints",
            )
        self.listener.host_lost(lost.problem)


def _rivals(plan: Plan, run: PlannedRun) -> Rivals | None:
    return plan.rivals.get(run.key) if isinstance(plan, TrialPlan) else None


def _settings(asked: Iterable[ResolvedEvaluation]) -> tuple[str, ...]:
    return tuple(json.dumps(dict(one.changes)) for one in asked)
