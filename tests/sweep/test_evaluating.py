"""Evaluations are made at the end of a run or long afterwards, of the same weights, with the same bits."""

import fcntl
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from grids import TINY
from heard import Heard

from kdx.grid.load import load_grid
from kdx.run_files.files import final_weights
from kdx.store import evaluations, reading, recording
from kdx.store.claims import STALLS
from kdx.store.database import Database, open_database
from kdx.store.records import EvaluationRecord, RunState
from kdx.sweep import evaluating, worker
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.messages import Work
from kdx.sweep.supervisor import Supervisor
from kdx.training.stopping import Stopped, StopRequest

STREAMS = """
name: streams
task: prediction
position: product
memory: 8
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 12, batch_tokens: 256, length: 16, warmup: 3, validate_every: 6, learning_rate: 1e-2}
"""
LONGER = "evaluations:\n  longer: {length: [16, 32, 64]}\n  other: {memory: 0, split: valid}\n"


def supervisor(database: Database, text: str, heard: Heard, *, trains: bool = True) -> Supervisor:
    grid = database.location.parent / "grid.yaml"
    grid.write_text(text)
    plan = load_grid(grid)
    recording.register(database, plan)
    return Supervisor(lambda: (plan,), database, 2, heard, ForkServer(), trains=trains)


def ran(database: Database, text: str, *, trains: bool = True) -> Heard:
    heard = Heard()
    assert supervisor(database, text, heard, trains=trains).run() is None
    return heard


def made(database: Database) -> dict[int, dict[str, EvaluationRecord]]:
    return evaluations.of_runs(database, [run.id for run in reading.load_sweep(database).runs])


def numbers(database: Database) -> dict[str, dict[str, float]]:
    """Settings' id → metrics, of the first run."""
    return {key: one.metrics for key, one in made(database)[1].items()}


@pytest.mark.slow
def test_the_same_bits_come_at_the_end_of_a_run_and_long_afterwards(tmp_path, data_home):
    found = []
    for name, first in (("at the end", STREAMS + LONGER), ("afterwards", STREAMS)):
        (tmp_path / name).mkdir()
        with open_database(tmp_path / name / "runs.db", write=True, create=True) as database:
            ran(database, first)
            heard = ran(database, STREAMS + LONGER)
            # A changed `evaluations:` starts no training.
            assert heard.started_runs == [] and heard.steps == []
            assert getattr(heard, "evaluating_runs", []) == ([] if "evaluations" in first else [(0, 4)])
            found.append(numbers(database))
            of_run = reading.load_sweep(database)
            own = of_run.metrics[of_run.runs[0].id]
            contexts = {one.settings["length"]: one.longest_context for one in made(database)[1].values()}
    assert found[0] == found[1] and len(found[0]) == 4
    # The length of the training again is the run's own test, bit for bit.
    (as_test,) = (one for key, one in found[0].items() if key.startswith("44136fa3"))
    assert {f"test/{name}": value for name, value in as_test.items()}.items() <= own.items()
    assert len({tuple(one.values()) for one in found[0].values()}) == 4
    assert contexts == {16: 16, 32: 40, 64: 64}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (TINY % {"steps": 20, "seeds": 1}, "{beam: [1, 3]}"),
        (
            "name: sets\ntask: set\ndata: {corpus: synthetic-sets, train_examples: 60}\n"
            "model: {width: 16, heads: 2, encoder_layers: 1, inner: 16}\n"
            "training: {steps: 4, batch_tokens: 256, warmup: 2}\n",
            "{split: [test, valid]}",
        ),
    ],
    ids=["translation", "set"],
)
def test_what_asks_for_nothing_else_gives_the_numbers_of_the_own_test(database, data_home, text, settings):
    ran(database, f"{text}evaluations: {{a: {settings}}}\n")
    own, other = numbers(database).values()
    sweep = reading.load_sweep(database)
    assert {f"test/{name}": value for name, value in own.items()}.items() <= sweep.metrics[1].items()
    assert own != other
    (run,) = sweep.runs
    weights = final_weights(database.location.with_suffix(".files"), run)
    assert weights is not None


@pytest.mark.slow
def test_a_kill_between_a_run_and_its_evaluations_leaves_these_to_be_made(database, data_home, monkeypatch):
    # The fork server is a process of its own, so the evaluations are left out on the way to it.
    with monkeypatch.context() as patch:
        start = ForkServer.start
        patch.setattr(
            ForkServer, "start", lambda host, work, within: start(host, replace(work, evaluations=()), within)
        )
        local = supervisor(database, STREAMS + LONGER, Heard())
        local._failed_tries[1] = STALLS
        assert local.run() is None
    assert made(database) == {} and reading.load_sweep(database).runs[0].state is RunState.COMPLETED
    assert [one.action for one in decisions_in(database, *local.plans())] == [Action.EVALUATE]
    heard = ran(database, STREAMS + LONGER)
    assert heard.started_runs == [] and heard.evaluated_runs == [(0, 0, None)]
    assert len(made(database)[1]) == 4


@pytest.mark.slow
def test_only_evaluating_trains_nothing(database, data_home):
    ran(database, STREAMS)
    heard = ran(database, f"{STREAMS}seeds: 2\n{LONGER}", trains=False)
    assert heard.started_runs == [] and heard.evaluating_runs == [(0, 4)]
    assert [run.state for run in reading.load_sweep(database).runs] == [RunState.COMPLETED, RunState.PENDING]


@pytest.mark.slow
def test_damaged_weights_are_recorded_as_the_reason_and_no_other_run_is_stopped(database, data_home):
    ran(database, f"{STREAMS}seeds: 2\n")
    files = database.location.with_suffix(".files")
    first, _ = reading.load_sweep(database).runs
    weights = final_weights(files, first)
    assert weights is not None
    (files / weights.folder / weights.name).write_bytes(b"no weights")
    heard = ran(database, f"{STREAMS}seeds: 2\nevaluations: {{a: {{length: 32}}}}\n")
    found = made(database)
    (failed,) = found.pop(first.id).values()
    ((good,),) = (one.values() for one in found.values())
    assert "does not match its checksum" in failed.error and good.error is None
    assert sorted(decision.failed for decision in heard.decisions) == [0, 1]
    assert "cannot be evaluated (length 32)" in heard.notes[0][1]


@pytest.mark.long
def test_another_text_under_the_same_name_is_not_read_with_the_old_weights(database, data_home):
    ran(database, STREAMS)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET data_fingerprint = 'another'")
    ran(database, STREAMS + LONGER)
    assert {one.error.partition("` ")[2] for one in made(database)[1].values()} == {
        "is not the text that the run was trained with"
    }


def signalled(local: Supervisor, signums: list[signal.Signals]) -> None:
    """Have each worker that the supervisor starts get the next signal, as long as there are any."""
    start = local.host.start

    def then_signalled(work: Work, within: float) -> bool:
        started = start(work, within)
        if signums:
            local.host.signal(signums.pop(0))
        return started

    local.host.start = then_signalled  # type: ignore[method-assign]


@pytest.mark.slow
def test_a_worker_that_dies_at_it_is_started_again_but_not_for_ever(database, data_home):
    ran(database, STREAMS)
    local = supervisor(database, STREAMS + LONGER, heard := Heard())
    signalled(local, [signal.SIGKILL] * 100)
    (weights,) = database.location.with_suffix(".files").glob("*/best-*.ckpt")
    with weights.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # so that none makes any before it dies
        assert local.run() is None
    assert heard.evaluated_runs == [(0, 4, "killed by SIGKILL")] * STALLS
    assert [decision.action for decision in heard.decisions] == [Action.EVALUATE]


@pytest.mark.slow
def test_evaluations_whose_worker_somebody_stopped_or_killed_are_made_all_the_same(database, data_home):
    ran(database, STREAMS)
    local = supervisor(database, STREAMS + LONGER, heard := Heard())
    signalled(local, [signal.SIGTERM] * (STALLS + 1) + [signal.SIGKILL] * (STALLS - 1))
    assert local.run() is None
    assert heard.evaluated_runs[-1] == (0, 0, None)
    assert len(made(database)[1]) == 4


@pytest.mark.slow
def test_a_worker_that_is_asked_to_stop_keeps_what_it_has_made(database, data_home, monkeypatch):
    ran(database, STREAMS)
    local = supervisor(database, STREAMS + LONGER, Heard())
    kept = []

    class Host:
        def start(self, work, within):
            kept.append(work)
            local._stopping = signal.SIGTERM
            return False

        def close(self, *, at_once):
            pass

    local.host = Host()
    local.run()
    (work,) = kept
    monkeypatch.setattr(worker, "_log_to", lambda path: None)
    monkeypatch.setattr("kdx.training.stopping.StopRequest.listen", lambda self: None)
    asked = iter([False, False, True])
    evaluate = "kdx.training.evaluation.Evaluator.evaluate"
    from kdx.training.evaluation import Evaluator

    whole = Evaluator.evaluate

    def until(self, one):
        if next(asked):
            raise Stopped
        return whole(self, one)

    monkeypatch.setattr(evaluate, until)

    class Nobody:
        def send(self, *_):
            return 0

    assert worker.work(work, Nobody()) == worker.STOPPED
    assert len(made(database)[1]) == 2
    assert Path(work.folder).is_dir()


# In a worker: each evaluation that is computed is noted, and none is before both supervisors have planned theirs.
COUNTING = """
import os, sys, time
if any("fork_server_process" in word for word in sys.orig_argv):
    from kdx.training.evaluation import Evaluator
    whole = Evaluator.evaluate
    def counted(self, one):
        while not os.path.exists("both"):
            time.sleep(0.05)
        with open("counted", "a") as file:
            print(self._seed, one.id, file=file)
        time.sleep(0.2)
        return whole(self, one)
    Evaluator.evaluate = counted
"""


@pytest.mark.long
def test_two_supervisors_at_once_make_each_evaluation_once(database, data_home, tmp_path):
    ran(database, f"{STREAMS}seeds: 2\n")
    (tmp_path / "grid.yaml").write_text(f"{STREAMS}seeds: 2\n{LONGER}")
    (tmp_path / "sitecustomize.py").write_text(COUNTING)
    code = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    command = [sys.executable, "-m", "kdx", "evaluate", "grid.yaml", "--workers", "2"]
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": code}, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for one in both:
        assert "8 evaluations of completed runs to make" in one.stderr.readline()
    (tmp_path / "both").touch()
    said = [one.communicate()[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    computed = (tmp_path / "counted").read_text().splitlines()
    assert sorted(computed) == sorted(set(computed)) and len(computed) == 8
    assert [len(its) for its in made(database).values()] == [4, 4]
    assert all(one.error is None and one.metrics for its in made(database).values() for one in its.values())
    assert not any("cannot be evaluated" in words for words in said)


def test_a_worker_that_waits_for_another_shows_that_it_lives_and_can_be_stopped(tmp_path):
    weights, stop = tmp_path / "weights", StopRequest()
    weights.write_bytes(b"")
    looks = []

    class Signs:
        def alive(self):
            looks.append(1)
            stop.asked = len(looks) == 2

    first, second = (evaluating._alone_with(weights, stop, Signs()) for _ in range(2))
    with first, pytest.raises(Stopped), second:
        raise AssertionError("two at once")
    assert len(looks) == 2
    with evaluating._alone_with(weights, StopRequest(), Signs()):
        pass
    with evaluating._alone_with(tmp_path / "gone", StopRequest(), Signs()):
        pass
