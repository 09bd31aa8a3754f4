"""What the commands that start runs share: how many at a time, under which options, and what is said at the end."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from grids import TINY
from looked_after import DB, completed, planned, refused, typed

from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside
from kdx.run_options import RunOptions
from kdx.store.database import open_database
from kdx.store.reading import load_sweep
from kdx.store.recording import register
from kdx.sweep.supervisor import Supervisor
from kdx.vocabulary import IfChanged

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def supervised(tmp_path, data_home, monkeypatch):
    """Every supervisor that would have run its plan; `ends` is how."""

    class Supervised(list):
        def __init__(self) -> None:
            self.ends: int | None = None
            self.counts = {"completed": 1}

    supervised = Supervised()

    def run(supervisor):
        supervised.append(supervisor)
        supervisor.listener.counts = supervised.counts
        supervisor.host.close(at_once=True)
        return supervised.ends

    monkeypatch.setattr(Supervisor, "run", run)
    monkeypatch.setattr("faulthandler.register", lambda *_, **__: None)  # the runner's stderr is no file
    Path("grid.yaml").write_text(TINY % {"steps": 10, "seeds": 1})
    return supervised


@pytest.mark.parametrize(
    ("named", "options", "wanted"),
    [
        ("0,2", [], (2, ("0", "2"), 1)),
        ("0,2", ["--per-gpu", "3", "--workers", "2"], (2, ("0", "2"), 3)),
        ("", ["--per-gpu", "2"], (CORES, (), 2)),
    ],
)
def test_there_are_as_many_workers_as_places_on_gpus_or_else_as_cores(supervised, monkeypatch, named, options, wanted):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    result = typed("sweep", "grid.yaml", *options)
    found = [(each.workers, each.gpus.names, each.gpus.on_each) for each in supervised]
    assert (result.exit_code, found) == (0, [wanted]), result.output


def test_devices_are_named_on_the_command_line(supervised, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    monkeypatch.setattr("kdx.sweep.gpus.gpus_of_machine", lambda: 4)
    for words, seen in ((["--devices", "2,3"], ("2", "3")), (["--devices", "none"], ())):
        result = typed("sweep", "grid.yaml", *words)
        assert (result.exit_code, supervised[-1].gpus.names) == (0, seen), result.output


@pytest.mark.parametrize("command", [["sweep", "grid.yaml"], ["resume"], ["retry", "1"]])
def test_every_command_that_starts_runs_hands_on_what_they_are_told(supervised, command):
    typed("sweep", "grid.yaml")
    for words, expected in (
        ([], RunOptions()),
        (["--if-changed", "continue", "--hang-after", "7"], RunOptions(IfChanged.CONTINUE, 7.0)),
    ):
        result = typed(*command, *words)
        assert (result.exit_code, supervised[-1].options) == (0, expected), result.output


@pytest.mark.parametrize(
    ("ends", "counts", "code", "expected"),
    [
        (None, {"completed": 2}, 0, "2 runs: 2 completed; next: kdx report tiny"),
        (None, {"completed": 1, "pruned": 1}, 0, "2 runs: 1 completed, 1 pruned; next: kdx report tiny"),
        (
            None,
            {"completed": 1, "cancelled": 1},
            0,
            "2 runs: 1 completed, 1 cancelled; take up again with: kdx retry tiny state=cancelled",
        ),
        (None, {"failed": 1}, 4, "1 run: 1 failed; try them again with: kdx retry tiny state=failed"),
        (signal.SIGTERM, {"interrupted": 1}, 143, "1 run: 1 interrupted; resume with: kdx resume tiny"),
    ],
)
def test_the_last_line_says_what_was_done_and_what_to_type_next(supervised, ends, counts, code, expected):
    supervised.ends, supervised.counts = ends, counts
    result = typed("sweep", "grid.yaml")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (code, expected)


def test_a_search_that_ends_leaves_the_plan_that_another_command_made_meanwhile(supervised, monkeypatch):
    with Path("grid.yaml").open("a") as file:
        file.write("tune: {parameters: {model.dropout: [0.0, 0.1]}, trials: 2, sampler: grid}\n")

    def run(supervisor):
        supervisor.host.close(at_once=True)
        meanwhile = load_grid("grid.yaml", given=["seeds=[7, 8]"])
        with open_database(DB, write=True) as database:
            register(database, meanwhile)

    monkeypatch.setattr(Supervisor, "run", run)
    said = typed("sweep", "grid.yaml").stderr
    assert said.endswith("tiny was planned anew meanwhile, and its winners are not planned; next: kdx resume tiny\n")
    with open_database(DB, write=False) as database:
        assert load_sweep(database).grid["seeds"] == [7, 8]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_are_heard_by_nobody_after_the_end(supervised, signum):
    before = signal.getsignal(signum)
    typed("sweep", "grid.yaml")
    assert supervised and signal.getsignal(signum) == before


@pytest.mark.parametrize("command", [["sweep", "grid.yaml"], ["resume"]])
def test_a_budget_is_a_deadline_from_the_start_of_the_command(supervised, command):
    typed("sweep", "grid.yaml")
    assert supervised[-1].deadline is None
    before = time.monotonic()
    result = typed(*command, "--budget", "30m", "--workers", "4")
    assert result.exit_code == 0, result.output
    assert before + 1800 <= supervised[-1].deadline <= time.monotonic() + 1800
    note = "note: no run has finished yet, so it is unknown what the budget of 30m leaves out\n"
    assert result.stderr.startswith(note)


@pytest.mark.parametrize("command", [["sweep", "grid.yaml"], ["resume"], ["plan", "grid.yaml"]])
def test_what_is_no_budget_starts_nothing(supervised, command):
    fault = refused(*command, "--budget=6days")
    assert fault.exit_code == 2
    assert fault.problem == "--budget `6days`" and "90m" in fault.allowed
    assert not supervised and not Path("runs.db").exists()


@pytest.mark.parametrize(
    ("ended", "why"),
    [("out_of_time", "the budget of 6h is used"), ("nothing_fits", "no other run fits into the budget of 6h")],
)
def test_the_last_line_says_that_the_budget_is_used(supervised, monkeypatch, ended, why):
    run = Supervisor.run
    monkeypatch.setattr(Supervisor, "run", lambda supervisor: setattr(supervisor, ended, True) or run(supervisor))
    supervised.ends, supervised.counts = signal.SIGINT, {"pending": 3}
    result = typed("sweep", "grid.yaml", "--budget", "6h", "--db", "other.db")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"3 runs: 3 pending; {why}; resume with: kdx resume tiny --db other.db"


def test_a_budget_that_is_used_up_ends_a_resume_of_all_sweeps(supervised):
    typed("sweep", "grid.yaml")
    Path("grid.yaml").write_text((TINY % {"steps": 10, "seeds": 1}).replace("name: tiny", "name: other"))
    typed("sweep", "grid.yaml")
    before, supervised.ends = len(supervised), signal.SIGINT
    assert typed("resume", "--budget", "6h").exit_code == 130
    assert len(supervised) == before + 1


@pytest.fixture
def slurm(played) -> Path:
    """A Slurm that takes all jobs and keeps the environment that they get."""
    return played(sbatch="env > $(dirname $0)/environment; echo 11")


def test_as_many_workers_are_submitted_as_there_are_runs(slurm, data_home):
    planned(3)
    said = typed("resume", "tiny", "--slurm", "--time", "10", "--sbatch=--mem=1G").stderr
    assert "submitted 3 jobs (11) for 3 runs of tiny; logs in " in said
    command = (slurm / "sbatch.words").read_text()
    assert " --array=0-2 " in command and " --time=10 " in command and " --mem=1G " in command
    assert command.endswith("/kdx/slurm/job.sh worker --if-changed refuse --hang-after 600 -- tiny\n")
    note = json.loads(next((files_beside(DB) / "slurm").glob("*/submission.json")).read_text())
    assert (note["array"], note["jobs"]) == (11, 3)


def test_the_address_of_the_database_is_in_the_environment_alone(slurm, tmp_path, data_home):
    planned(1)
    typed("resume", "tiny", "--slurm", "--db", "sqlite:///runs.db", "--jobs", "4")
    assert f"KDX_DB=sqlite:///{tmp_path}/runs.db\n" in (slurm / "environment").read_text()
    assert "runs.db" not in (slurm / "sbatch.words").read_text()


def test_nothing_is_submitted_where_nothing_is_left(slurm, data_home):
    (run,) = planned(1)
    completed(run)
    assert "nothing is left to do" in typed("sweep", "grid.yaml", "--slurm").stderr
    assert not (slurm / "environment").exists()
