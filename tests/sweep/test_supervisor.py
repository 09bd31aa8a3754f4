"""A sweep on this machine: real processes, a real database."""

import math
import os
import signal
import threading
from pathlib import Path

import psycopg
import pytest
from clock import Clock
from grids import MIXED, TINY
from heard import Heard
from played_host import PlayedHost, complete
from waiting import wait_until

from kdx.errors import ChangedError, DatabaseError, StorageError
from kdx.grid.load import load_grid
from kdx.run_options import RunOptions
from kdx.store import claims, reading, recording
from kdx.store.claims import claim
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import LOST, RunState
from kdx.sweep.blocked import IN_A_ROW
from kdx.sweep.decide import Action
from kdx.sweep.hosts import HostLost
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.messages import STOPPED, Work, trouble
from kdx.sweep.placement import Gpus
from kdx.sweep.supervisor import HANG_GRACE, LOOK_WHEN_FULL, Shared, Supervisor
from kdx.vocabulary import IfChanged


def sweep(database: Database, text: str, heard: Heard, workers: int = 2, host=None, **how) -> Supervisor:
    grid = database.location.parent / "grid.yaml"
    grid.write_text(text)
    plan = load_grid(grid)
    files = database.location.with_suffix(".files")
    recording.register(database, plan)
    host = host or ForkServer()
    how = {"clock": host.clock, **how} if isinstance(host, PlayedHost) else how
    local = Supervisor(lambda: (plan,), database, workers, heard, host, **how)
    local.plan, local.files = plan, files
    return local


def records(database: Database, local: Supervisor):
    return reading.load_sweep(database, local.plan.name).runs


@pytest.mark.slow
def test_a_failing_and_a_diverging_run_hurt_nobody_and_are_recorded_as_what_they_are(database, data_home, figure):
    heard = Heard()
    local = sweep(database, MIXED, heard)
    assert local.run() is None
    learns, fails, diverges = records(database, local)
    assert learns.state is RunState.COMPLETED
    assert learns.test_score is not None and learns.valid_score is not None and learns.valid_step in (10, 20, 30)
    assert fails.state is RunState.FAILED and "out of memory" in fails.error
    assert "Traceback" in reading.attempts(database, fails.id)[0].traceback
    assert diverges.state is RunState.DIVERGED and "loss" in diverges.error
    assert {record.id for record in heard.ended_runs} == {learns.id, fails.id, diverges.id}

    # What a completed run leaves: rows for every recorded step, and its best weights alone.
    assert [step for step, _ in reading.curve(database, learns.id, "train/loss")] == [1, 10, 20, 30]
    assert len(reading.curve(database, learns.id, "valid/perplexity")) == 3
    kept = [path.name for path in (local.files / f"{learns.cell_id}-0-0").glob("*.ckpt")]
    assert len(kept) == 1 and kept[0].startswith(f"best-{learns.valid_step:09d}.")

    # The same sweep again runs nothing.
    again = Heard()
    assert sweep(database, MIXED, again).run() is None
    assert again.started_runs == []
    losses = [loss for _, loss in reading.curve(database, diverges.id, "train/loss")]
    nans = sum(map(math.isnan, losses))
    figure(
        f"{fails.state} with its traceback, {diverges.state} with {nans} of {len(losses)} losses no number, "
        f"{learns.state}"
    )


@pytest.mark.slow
def test_a_run_that_goes_back_to_an_older_checkpoint_says_so(database, data_home, figure):
    class Stops(Heard):
        """After some steps, or when something is said of a run."""

        def progressed(self, run, step, loss):
            self.first = getattr(self, "first", step)
            self.stop(step > self.first)

        def noted(self, run, text):
            super().noted(run, text)
            self.stop(True)

        def stop(self, now):
            if now and local._stopping is None:
                local.stop(signal.SIGINT)

    steps = []
    for _ in range(2):
        local = sweep(database, TINY % {"steps": 10**6, "seeds": 1}, Stops())
        assert local.run() == signal.SIGINT
        steps.append(records(database, local)[0].progress_step)
    assert 0 < steps[0] < steps[1]
    (run,) = records(database, local)
    folder = local.files / f"{run.cell_id}-0-0"
    (newest,) = folder.glob(f"step-{steps[1]:09d}.*.ckpt")
    newest.write_bytes(b"half")
    again = Stops()
    local = sweep(database, TINY % {"steps": 10**6, "seeds": 1}, again)
    assert local.run() == signal.SIGINT
    note = f"resumes from step {steps[0]}, not {steps[1]}: step-{steps[1]:09d}….ckpt was damaged; set aside"
    assert again.notes == [(0, note)]
    assert note in (folder / "log.txt").read_text().splitlines()
    assert [attempt.resumed_step for attempt in reading.attempts(database, run.id)] == [0, steps[0], steps[0]]
    figure(note)


@pytest.mark.slow
def test_a_killed_worker_is_tried_again_and_the_others_go_on(database, data_home):
    class Kills(Heard):
        done = False

        def progressed(self, run, step, loss):
            super().progressed(run, step, loss)
            if run.seed == 0 and not self.done:
                self.done = True
                (victim,) = {int(Path(p).parent.name) for p in map(str, workers_of(database, run.seed))}
                os.kill(victim, signal.SIGKILL)

    heard = Kills()
    local = sweep(database, TINY % {"steps": 300, "seeds": 2}, heard)
    assert local.run() is None
    first, second = records(database, local)
    assert first.state is second.state is RunState.COMPLETED
    assert (first.attempt, second.attempt) == (2, 1)
    lost = reading.attempts(database, first.id)[0]
    assert lost.outcome == "lost"


def workers_of(database: Database, seed: int) -> list[Path]:
    """/proc folders of the processes that write the log of the run with this seed."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/1"):
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith(str(database.location.with_suffix(".files"))) and f"-{seed}-0/" in target:
            found.append(descriptor.parent)
    return found


@pytest.fixture
def fake(monkeypatch):
    """Puts a played host, on which each run ends by a function, in the place of the fork server."""
    return lambda end: monkeypatch.setitem(globals(), "ForkServer", lambda: PlayedHost(Clock(), end))


def test_a_worker_that_always_dies_fails_its_run_in_the_end(database, fake, figure):
    fake(lambda claimed: -signal.SIGSEGV)
    heard = Heard()
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, heard)
    assert local.run() is None
    assert [attempt for _, attempt in heard.started_runs] == [1, 2, 3]
    assert [record.state for record in heard.ended_runs] == [RunState.INTERRUPTED] * 2 + [RunState.FAILED]
    assert heard.ended_runs[-1].error == "killed by SIGSEGV"
    figure(f"{len(heard.started_runs)} attempts, then {heard.ended_runs[-1].state}: {heard.ended_runs[-1].error}")


@pytest.mark.parametrize(("workers", "given"), [(2, ["3", "1"]), (5, ["3", "1", "3", "1", "3"])])
def test_runs_at_work_share_the_gpus_evenly(database, fake, workers, given):
    fake(complete)
    local = sweep(database, TINY % {"steps": 10, "seeds": 5}, Heard(), workers=workers)
    local.gpus = Gpus(("3", "1"), on_each=3)
    assert local.run() is None
    assert [work.gpu for work, _ in local.host.started[:workers]] == given


def test_a_gpu_is_given_again_once_its_run_has_ended(database, fake):
    gpus = {}

    def end(claimed):
        gpus[claimed.seed] = claimed.gpu
        return None if claimed.seed == 0 else complete(claimed)

    class Stops(Heard):
        def ended(self, run, record):
            super().ended(run, record)
            if len(self.ended_runs) == 3:
                local.stop(signal.SIGTERM)

    fake(end)
    local = sweep(database, TINY % {"steps": 10, "seeds": 4}, Stops())
    local.gpus = Gpus(("0", "1"))
    assert local.run() == signal.SIGTERM
    assert gpus == {0: "0", 1: "1", 2: "1", 3: "1"}


def test_a_run_that_lacked_memory_beside_others_is_tried_once_more_alone(database, fake):
    given = []

    def end(claimed):
        at_work = [running.run.seed for running in local._active.values()]
        given.append((claimed.seed, claimed.attempt, claimed.beside, at_work))
        if (claimed.seed, claimed.attempt) != (1, 1):
            return complete(claimed)
        with open_database(claimed.database, write=True) as opened:
            writer = RunWriter(opened, claimed.run_id, claimed.lease_holder, claimed.attempt)
            writer.interrupt(0, error="out of memory: CUDA out of memory (beside other runs on GPU 0)")
        return STOPPED

    fake(end)
    heard = Heard()
    local = sweep(database, TINY % {"steps": 10, "seeds": 4}, heard, workers=3)
    local.gpus = Gpus(("0",), on_each=3)
    assert local.run() is None
    again = next(place for place, one in enumerate(given) if one[:2] == (1, 2))
    assert given[again] == (1, 2, False, [1])
    assert all(beside for *_, beside, _ in given[:again])
    assert {record.state for record in records(database, local)} == {RunState.COMPLETED}
    (lacked,) = (record for record in heard.ended_runs if record.state is RunState.INTERRUPTED)
    assert lacked.lacked_memory_beside_others


def test_a_plan_that_another_kdx_replaced_still_comes_to_its_end(database, fake):
    def replaces(claimed):
        smaller = load_grid(database.location.parent / "grid.yaml", given=["seeds=[7]"])
        recording.register(database, smaller)
        return complete(claimed)

    fake(replaces)
    heard = Heard()
    local = sweep(database, TINY % {"steps": 10, "seeds": 2}, heard)
    assert local.run() is None
    assert [record.state for record in heard.ended_runs] == [RunState.COMPLETED] * 2


def test_a_run_whose_lease_lapsed_while_the_machine_slept_is_not_started_twice(database, fake, figure):
    def sleeps(claimed):
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE run SET lease_until = 0 WHERE state = 'running'")
        return None if claimed.seed == 0 else complete(claimed)

    class StopsAfterTwo(Heard):
        def ended(self, run, record):
            super().ended(run, record)
            if len(self.ended_runs) == 2:
                local.stop(signal.SIGTERM)

    fake(sleeps)
    heard = StopsAfterTwo()
    local = sweep(database, TINY % {"steps": 10, "seeds": 3}, heard, workers=3)
    assert local.run() == signal.SIGTERM
    assert [(seed, attempt) for (_, seed), attempt in heard.started_runs] == [(0, 1), (1, 1), (2, 1)]
    twice = sum(attempt > 1 for _, attempt in heard.started_runs)
    figure(f"the leases of {len(heard.started_runs)} runs lapsed, {twice} started twice")


def test_a_run_that_gives_no_sign_of_life_is_ended_and_tried_again(database):
    clock, heard = Clock(), Heard()
    host = PlayedHost(clock, lambda claimed: None if (claimed.seed, claimed.attempt) == (1, 1) else complete(claimed))
    local = sweep(database, TINY % {"steps": 10, "seeds": 3}, heard, workers=3, host=host, clock=clock)
    local.options = RunOptions(hang_after=20.0)
    began = clock()
    assert local.run() is None
    assert heard.hung_runs == [1] and 20.0 < clock() - began < 30.0
    hung, *_ = (record for record in heard.ended_runs if record.state is RunState.INTERRUPTED)
    assert hung.seed == 1
    assert reading.attempts(database, hung.id)[0].outcome == LOST
    assert all(record.state is RunState.COMPLETED for record in records(database, local))


def test_a_hung_worker_that_heeds_no_signal_is_killed(database):
    class Deaf(PlayedHost):
        def signal(self, signum, run_id=None):
            signals.append((signum, self.clock() - began))
            if signum == signal.SIGKILL:
                super().signal(signum, run_id)

    clock, signals = Clock(), []
    began = clock()
    host = Deaf(clock, lambda claimed: None if claimed.attempt == 1 else complete(claimed))
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, Heard(), host=host, clock=clock)
    local.options = RunOptions(hang_after=20.0)
    assert local.run() is None
    assert [signum for signum, _ in signals] == [signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL]
    assert HANG_GRACE < signals[2][1] - signals[1][1] < HANG_GRACE + 10


def test_the_silence_of_workers_while_this_machine_slept_proves_nothing(database):
    class Sleeps(PlayedHost):
        def listen(self, seconds):
            if self.clock() - began == 15.0:
                self.clock.now += 3600.0
            return super().listen(seconds)

    clock, heard = Clock(), Heard()
    began = clock()
    host = Sleeps(clock, complete, seconds=3625.0)
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, heard, host=host, clock=clock)
    local.options = RunOptions(hang_after=30.0)
    assert local.run() is None
    assert not hasattr(heard, "hung_runs") and [record.attempt for record in heard.ended_runs] == [1]


def test_a_disk_that_fails_one_worker_stops_the_sweep_and_fails_no_run(database, fake):
    def end(claimed):
        local.host.messages.append(trouble(claimed.run_id, StorageError("full", place="/somewhere", hint="free some")))
        return STOPPED

    fake(end)
    heard = Heard()
    local = sweep(database, TINY % {"steps": 10, "seeds": 3}, heard, workers=1)
    with pytest.raises(StorageError, match="/somewhere: full"):
        local.run()
    assert heard.told_to_stop
    states = {record.seed: record.state for record in records(database, local)}
    assert states == {0: RunState.INTERRUPTED, 1: RunState.PENDING, 2: RunState.PENDING}


class Lost(PlayedHost):
    """Is lost with its first runs."""

    lost = False

    def listen(self, seconds):
        if self.lost:
            return super().listen(seconds)
        self.lost = True
        self.works.clear()
        raise HostLost("the host was killed")


def test_runs_of_a_host_that_was_lost_go_on_in_another(database):
    heard = Heard()
    local = sweep(database, TINY % {"steps": 10, "seeds": 3}, heard, host=Lost(Clock(), complete))
    assert local.run() is None
    assert heard.hosts_lost == ["the host was killed"]
    assert [(record.state, record.stalls) for record in records(database, local)] == [(RunState.COMPLETED, 0)] * 3


def test_a_terminal_that_closes_says_so_twice_and_is_heard_once(database, fake):
    class Closes(Heard):
        def started(self, run, attempt):
            local.stop(signal.SIGHUP)
            local.stop(signal.SIGHUP)

    fake(lambda claimed: None)
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, Closes())
    assert local.run() == signal.SIGHUP
    assert not local._at_once


def test_a_sweep_that_is_stopped_while_its_host_is_lost_has_been_stopped(database):
    class Stops(Lost):
        def listen(self, seconds):
            local.stop(signal.SIGTERM)
            return super().listen(seconds)

    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, Heard(), host=Stops(Clock(), complete))
    assert local.run() == signal.SIGTERM


def test_a_sweep_that_is_done_when_it_is_stopped_is_done(database, fake):
    class StopsAtTheEnd(Heard):
        def ended(self, run, record):
            local.stop(signal.SIGINT)

    fake(complete)
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, StopsAtTheEnd())
    assert local.run() is None


def test_a_sweep_that_is_stopped_twice_ends_its_workers_and_waits_for_nothing(database, fake):
    class StopsTwice(Heard):
        def ended(self, run, record):
            local.stop(signal.SIGINT)

        def stopping(self):
            local.stop(signal.SIGINT)

    fake(lambda claimed: None if claimed.seed == 0 else complete(claimed))
    heard = StopsTwice()
    local = sweep(database, TINY % {"steps": 10, "seeds": 4}, heard, workers=2)
    assert local.run() == signal.SIGINT
    assert len(heard.started_runs) < 4


def test_a_run_that_is_planned_but_not_there_is_told_and_not_waited_for(database):
    local = sweep(database, TINY % {"steps": 10, "seeds": 2}, Heard())
    with database.write() as connection:
        connection.exec_driver_sql("DELETE FROM run WHERE seed = 1")
    with pytest.raises(DatabaseError, match="with seed 1, but there is no such run"):
        local.run()


TWO_CELLS = TINY.replace("name: tiny", "name: tiny\naxes: {kernel: [exponential, rbf]}")


@pytest.fixture
def expect(monkeypatch):
    """Puts a function, from kernel to the seconds of a run or None, in the place of the forecast."""

    def expected(seconds_of):
        def of_plan(database, plan):
            return {cell.id: seconds_of(cell.labels.get("kernel")) for cell in plan.cells}

        monkeypatch.setattr("kdx.sweep.supervisor.expected_seconds", of_plan)

    return expected


def within(database, text, heard, seconds, host=None):
    """A sweep that has n seconds by a clock of its own."""
    local = sweep(database, text, heard, workers=1, host=host, **({} if host else {"clock": Clock()}))
    local.deadline = local.clock() + seconds
    return local


def test_no_run_begins_that_would_not_be_done_in_time_but_a_shorter_one_does(database, fake, expect):
    fake(complete)
    expect({"exponential": 601.0, "rbf": 1.0}.get)
    heard = Heard()
    local = within(database, TWO_CELLS % {"steps": 10, "seeds": 2}, heard, 600.0)
    assert local.run() == signal.SIGINT
    assert local.nothing_fits and not local.out_of_time
    rbf = local.plan.cells[1].id
    assert [key for key, _ in heard.started_runs] == [(rbf, 0), (rbf, 1)]
    states = {record.cell_id: record.state for record in records(database, local)}
    assert states == {local.plan.cells[0].id: RunState.PENDING, rbf: RunState.COMPLETED}


def test_where_nothing_fits_nothing_is_begun_unless_others_may_resume_it(database, fake, expect):
    fake(complete)
    expect(lambda kernel: 3600.0)
    heard = Heard()
    local = within(database, TINY % {"steps": 10, "seeds": 2}, heard, 600.0)
    assert local.run() == signal.SIGINT and local.nothing_fits
    assert heard.started_runs == []
    assert shared(within(database, TINY % {"steps": 10, "seeds": 2}, heard, 600.0)).run() is None
    assert len(heard.started_runs) == 2


def test_forecasts_follow_what_was_completed_meanwhile(database, fake, expect):
    """At first nobody knows how long a run takes; after the first one it is known that no other fits."""
    fake(complete)
    heard = Heard()
    expect(lambda kernel: 3600.0 if heard.ended_runs else None)
    local = within(database, TINY % {"steps": 10, "seeds": 3}, heard, 600.0)
    assert local.run() == signal.SIGINT and local.nothing_fits
    assert [seed for (_, seed), _ in heard.started_runs] == [0]


def test_with_a_deadline_a_sweep_waits_for_runs_of_another_no_longer_than_that(database):
    heard = Heard()
    local = within(database, TINY % {"steps": 10, "seeds": 1}, heard, 3.0, PlayedHost(Clock(), complete))
    (run,) = records(database, local)
    assert claim(database, run.id, "somebody elsewhere", 600.0)
    assert local.run() == signal.SIGINT and local.out_of_time
    assert heard.started_runs == [] and local.clock() == local.deadline


@pytest.mark.slow
def test_a_cancelled_run_stops_and_goes_on_from_its_checkpoint_once_somebody_asks(database, data_home, tmp_path):
    text = TINY % {"steps": 200, "seeds": 2}

    class Ends(Heard):
        """Stops the sweep, then cancels the first run of the next one."""

        done = False

        def progressed(self, run, step, loss):
            super().progressed(run, step, loss)
            # At once, so that most of the run is left.
            if run.seed == 0 and not self.done:
                self.done = True
                self.end()

    heard = Ends()
    heard.end = lambda: local.stop(signal.SIGINT)
    local = sweep(database, text, heard)
    assert local.run() == signal.SIGINT
    stopped, _ = records(database, local)

    heard = Ends()
    heard.end = lambda: claims.cancel(database, [stopped.id])
    local = sweep(database, text, heard)
    assert local.run() is None
    first, second = records(database, local)
    assert (first.state, second.state) == (RunState.CANCELLED, RunState.COMPLETED)
    assert [each.state for each in heard.ended_runs if each.seed == 0] == [RunState.CANCELLED]
    # What a cancelled run has not recorded by then, of a second at most, is lost.
    assert stopped.progress_step <= first.progress_step < 200

    # A sweep leaves it alone; somebody has to ask for it.
    idle = Heard()
    assert sweep(database, text, idle).run() is None
    assert idle.started_runs == []
    recording.reset(database, [first.id], (RunState.CANCELLED,))
    again = Heard()
    assert sweep(database, text, again).run() is None
    ended, _ = records(database, local)
    assert ended.state is RunState.COMPLETED and min(again.steps) > stopped.progress_step

    with open_database(tmp_path / "other.db", write=True, create=True) as other:
        unbroken = sweep(other, TINY % {"steps": 200, "seeds": 1}, Heard())
        assert unbroken.run() is None
        (reference,) = records(other, unbroken)
        for metric in ("train/loss", "valid/loss", "test/loss"):
            assert reading.curve(database, ended.id, metric) == reading.curve(other, reference.id, metric)


def fail(claimed: Work, error: str = "ValueError: no") -> int:
    with open_database(claimed.database, write=True) as database:
        RunWriter(database, claimed.run_id, claimed.lease_holder, claimed.attempt).fail(error, "", 1)
    return 1


def test_of_a_cell_whose_runs_fail_alike_no_more_are_begun_until_one_is_tried_again(database, fake):
    fake(lambda claimed: fail(claimed, f"ValueError: at {claimed.seed}"))
    text = TINY % {"steps": 10, "seeds": 5}
    heard = Heard()
    local = sweep(database, text, heard, workers=1)
    assert local.run() is None
    assert [record.state for record in records(database, local)] == [RunState.FAILED] * 2 + [RunState.PENDING] * 3
    idle = Heard()
    assert sweep(database, text, idle).run() is None and idle.started_runs == []
    assert [str(one.pause) for one in idle.decisions if one.pause] == [
        "2 runs of its cell failed alike: ValueError: at …"
    ] * 3
    first, *_ = records(database, local)
    recording.reset(database, [first.id], (RunState.FAILED,))
    fake(complete)
    assert sweep(database, text, Heard()).run() is None
    assert [record.state for record in records(database, local)].count(RunState.COMPLETED) == 4


def test_runs_that_fail_in_their_own_way_or_beside_a_success_pause_nothing(database, fake):
    fake(lambda claimed: complete(claimed) if claimed.seed == 0 else fail(claimed))
    local = sweep(database, TINY % {"steps": 10, "seeds": 4}, Heard(), workers=1)
    assert local.run() is None
    assert [record.state for record in records(database, local)].count(RunState.FAILED) == 3


def shared(local: Supervisor, **how) -> Supervisor:
    local.shared = Shared(**how)
    return local


KERNELS = ["exponential", "rbf", "linear", "polynomial"]
FOUR_CELLS = TINY.replace("name: tiny", f"name: tiny\naxes: {{kernel: [{', '.join(KERNELS)}]}}")


def test_a_worker_whose_runs_fail_one_after_another_begins_no_more(database, fake):
    began = []

    def end(claimed):
        began.append(claimed.run_id)
        return complete(claimed) if len(began) == 2 else fail(claimed)

    fake(end)
    local = shared(sweep(database, FOUR_CELLS % {"steps": 10, "seeds": 3}, Heard(), workers=1))
    assert local.run() is None and local.gave_up
    assert began[2:] == [*local.failed_in_a_row] and len(began) == 2 + IN_A_ROW
    assert len(set(began)) == len(began)
    # A sweep that is not one of several tries all.
    fake(fail)
    heard = Heard()
    assert sweep(database, FOUR_CELLS % {"steps": 11, "seeds": 3}, heard, workers=1).run() is None
    assert len(heard.started_runs) == 4 * 2, "a cell is paused after two that failed alike"


def test_a_worker_waits_for_work_as_long_as_it_is_to(database):
    clock = Clock()
    host, began = PlayedHost(clock, complete), clock()
    local = shared(sweep(database, TINY % {"steps": 10, "seeds": 1}, Heard(), host=host, clock=clock), wait=4.0)
    assert local.run() is None and clock() - began == 4.0

    class Stops(Heard):
        def decided(self, decisions):
            if all(one.record.state is RunState.COMPLETED for one in decisions):
                local.stop(signal.SIGTERM)

    local = shared(sweep(database, TINY % {"steps": 10, "seeds": 1}, Stops(), host=host, clock=clock), wait=600.0)
    assert local.run() is None and clock() - began == 4.0, "it was done when it was asked"


def test_a_run_that_was_begun_under_other_conditions_is_left_and_the_others_are_done(database, fake):
    def end(claimed):
        """Runs of even seeds were begun elsewhere."""
        options.append((claimed.seed, claimed.options.if_changed))
        if claimed.seed % 2:
            return complete(claimed)
        with open_database(claimed.database, write=True) as opened:
            writer = RunWriter(opened, claimed.run_id, claimed.lease_holder, claimed.attempt)
            writer.interrupt(0, refused="device A → B")
        local.host.messages.append(trouble(claimed.run_id, ChangedError("it changed", changes="device A → B")))
        return STOPPED

    class Stops(Heard):
        """Stops once each run was tried, for a worker that may restart them waits ten minutes for others."""

        def decided(self, decisions):
            super().decided(decisions)
            if len(self.started_runs) == 3 and local.options.if_changed is not IfChanged.REFUSE:
                local.stop(signal.SIGTERM)

    fake(end)
    options = []
    heard = Stops()
    local = shared(sweep(database, TINY % {"steps": 10, "seeds": 5}, heard, workers=1))
    local.options = RunOptions(if_changed=IfChanged.RESTART)
    for seed in (0, 2, 4):
        run = records(database, local)[seed]
        writer = RunWriter(database, run.id, "there", claim(database, run.id, "there", 60.0))
        writer.begin({"device": "A"}, "data", "code")
        writer.interrupt(5)
    assert local.run() == signal.SIGTERM
    assert options == [(0, IfChanged.REFUSE), (1, IfChanged.RESTART), (3, IfChanged.RESTART)]
    states = [record.state for record in records(database, local)]
    assert states == [RunState.INTERRUPTED, RunState.COMPLETED] * 2 + [RunState.INTERRUPTED]
    assert [each.left for each in heard.decisions if each.left] == ["other conditions here: device A → B"] * 3

    # One that refuses to restart them waits for nobody.
    heard = Stops()
    local = shared(sweep(database, TINY % {"steps": 10, "seeds": 5}, heard, workers=1))
    assert local.run() is None
    assert [each.action for each in heard.decisions if each.left] == [Action.LEAVE] * 3

    # Somebody else may try; a sweep that is not one of several says so and ends.
    local = sweep(database, TINY % {"steps": 10, "seeds": 5}, Heard(), workers=1)
    with pytest.raises(ChangedError, match="it changed"):
        local.run()


def test_a_run_that_somebody_removed_is_nothing_to_do_for_a_worker(database, fake):
    fake(complete)
    local = shared(sweep(database, TINY % {"steps": 10, "seeds": 2}, Heard()))
    with database.write() as connection:
        connection.exec_driver_sql("DELETE FROM run WHERE seed = 1")
    assert local.run() is None
    assert [seed for (_, seed), _ in local.listener.started_runs] == [0]


def test_several_plans_are_done_in_their_order_and_what_they_share_once(database, fake):
    fake(complete)
    local = sweep(database, TINY % {"steps": 10, "seeds": 2}, Heard(), workers=1)
    other = sweep(database, (TINY % {"steps": 10, "seeds": 3}).replace("name: tiny", "name: more"), Heard())
    other.host.close(at_once=True)
    local.plans = lambda: (other.plan, local.plan)
    assert local.run() is None
    assert [seed for (_, seed), _ in local.listener.started_runs] == [0, 1, 2]
    assert len(local.listener.decisions) == 3


def test_a_plan_that_is_added_is_begun_while_another_is_under_way(database, fake):
    def end(claimed):
        if len(plans) == 1:
            added = sweep(database, (TINY % {"steps": 11, "seeds": 1}).replace("name: tiny", "name: more"), Heard())
            added.host.close(at_once=True)
            plans.append(added.plan)
            return None
        local.stop(signal.SIGTERM)
        return complete(claimed)

    fake(end)
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, Heard(), workers=2)
    plans = [local.plan]
    local.plans = lambda: tuple(plans)
    assert local.run() == signal.SIGTERM
    assert len(local.listener.started_runs) == 2


def test_seeds_that_wait_for_runs_of_a_paused_cell_are_not_waited_for(database, fake):
    fake(lambda claimed: fail(claimed))
    text = TINY % {"steps": 10, "seeds": "{min: 3, max: 6, until: decided}"}
    text += "\naxes: {kernel: [exponential, rbf]}\ntables: [{name: t, rows: [kernel], baseline: exponential}]\n"
    heard = Heard()
    assert sweep(database, text, heard, workers=1).run() is None
    assert len(heard.started_runs) == 4 and any(one.awaits_look for one in heard.decisions)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [pytest.param(2, 0.05, id="each look takes too long"), pytest.param(1, 0.0, id="no other run could begin")],
)
def test_while_its_runs_go_on_a_sweep_looks_no_more_than_it_has_to(database, workers, seconds):
    clock, ended = Clock(), []

    def end(claimed):
        ended.append(clock())
        return complete(claimed)

    class Looks(Heard):
        looks = 0

        def decided(self, decisions):
            self.looks += 1
            clock.now += seconds

    heard = Looks()
    host = PlayedHost(clock, end, seconds=4.5)  # the least pause is a second
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, heard, workers, host=host, clock=clock)
    assert local.run() is None
    assert clock() == ended[0] + seconds, "an end is heard at once"
    assert heard.looks == 2, "before the run and after it"


def test_the_end_of_a_run_starts_another_without_a_look_at_all_of_them(database, monkeypatch):
    """However many runs a sweep has, a run costs as much."""
    read = []
    of_all, of_one = reading.recorded, reading.by_ids
    monkeypatch.setattr(reading, "recorded", lambda *given: read.append(of_all(*given)) or read[-1])
    monkeypatch.setattr(reading, "by_ids", lambda *given: read.append(of_one(*given)) or read[-1])
    host, heard = PlayedHost(Clock(), complete), Heard()
    assert sweep(database, TINY % {"steps": 10, "seeds": 40}, heard, workers=2, host=host).run() is None
    assert len(heard.ended_runs) == 40
    # The first look, one when nothing is left to start, and one when all has ended; beside these, each run at its end.
    assert sorted(map(len, read)) == [1] * 40 + [40] * 3


def test_a_heartbeat_that_finds_a_lease_gone_makes_a_full_sweep_look(database):
    class Cancels(Heard):
        def started(self, run, attempt):
            super().started(run, attempt)
            claims.cancel(database, [1])

    clock, heard = Clock(), Cancels()
    host, began = PlayedHost(clock, lambda claimed: None), clock()
    local = sweep(database, TINY % {"steps": 10, "seeds": 1}, heard, workers=1, host=host, clock=clock)
    assert local.run() is None and clock() - began < LOOK_WHEN_FULL
    assert [one.state for one in heard.ended_runs] == [RunState.CANCELLED]


@pytest.fixture
def on_a_server(postgresql_server, tmp_path):
    """A database of its own on a server, and a way to count the sessions in it."""
    postgresql_server.execute("CREATE DATABASE supervised")
    with open_database(postgresql_server.address("supervised"), write=True, create=True) as opened:
        yield opened
    postgresql_server.execute("DROP DATABASE supervised WITH (FORCE)")


def test_a_sweep_connects_a_few_times_a_run_and_not_at_all_while_a_host_starts_it(
    on_a_server, postgresql_server, monkeypatch, tmp_path
):
    connects, starts = [], []
    connect = psycopg.connect
    supervisor = threading.current_thread()

    def counted(*words, **named):
        if threading.current_thread() is supervisor and named["dbname"] == "supervised":
            connects.append(named)
        return connect(*words, **named)

    class Host(PlayedHost):
        """Ends a run when it is started, in a thread of its own, and counts the sessions that are open before."""

        def start(self, work, within):
            with postgresql_server.connected() as connection:
                count = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'supervised'"
                # A session ends a moment after its client.
                wait_until(lambda: connection.execute(count).fetchone() == (0,))
            starts.append(work)
            ending = threading.Thread(target=complete, args=(work,))
            ending.start()
            ending.join()
            self.messages.append({"event": "exit", "run": work.run_id, "code": 0})
            return True

    (tmp_path / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": 4})
    plan = load_grid(tmp_path / "grid.yaml")
    recording.register(on_a_server, plan)
    monkeypatch.setattr(psycopg, "connect", counted)
    local = Supervisor(lambda: (plan,), on_a_server, 1, Heard(), Host(clock := Clock(), complete), clock=clock)
    assert local.run() is None
    assert len(starts) == 4
    assert len(connects) <= 2 * 4 + 1, (
        "to decide and claim, and at the end of each run; and to see that nothing is left"
    )
