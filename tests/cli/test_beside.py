"""What stands beside a command that trains: the user's command at its end, and the refusal of a mirror."""

import errno
import shutil
import signal
from pathlib import Path

import pytest
import typer
from looked_after import refused
from waiting import GIVE_UP, wait_until

import kdx
from kdx.cli.beside import _code_of
from kdx.errors import KdxError

EXAMPLE = Path(__file__).parents[2] / "runs.db.example"
GRID = """
task: prediction
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
data: {corpus: synthetic-language, train_lines: 300}
training: {steps: STEPS, batch_tokens: 256, length: 16, warmup: 3, record_every: 5}
"""
LAST = """--on-end 'echo "$KDX_OUTCOME $KDX_EXIT_CODE $KDX_DB" >> written; echo to stdout; exit 7'"""


@pytest.mark.parametrize(
    ("command", "outcome", "code"),
    [
        ("kdx sweep grid.yaml", "done", 0),
        ("kdx sweep absent.yaml", "error", 2),
        ("kdx resume --db none.db", "error", 3),
        ("kdx worker --db none.db", "error", 3),
    ],
)
def test_the_last_command_runs_once_with_the_outcome(terminal, command, outcome, code):
    terminal.write("grid.yaml", GRID.replace("STEPS", "20"))
    done = terminal.type(f"{command} {LAST}")
    database = "none.db" if "none" in command else "runs.db"
    assert (terminal.folder / "written").read_text() == f"{outcome} {code} {database}\n"
    assert done.returncode == code and done.stdout == "", done.stderr
    assert done.stderr.count("note: the command of --on-end ended with exit code 7") == 1


@pytest.mark.slow
def test_a_stopped_sweep_says_that_it_was_stopped(terminal):
    terminal.write("grid.yaml", GRID.replace("STEPS", "1000000"))
    sweep = terminal.start("sweep", "grid.yaml", "--on-end", "echo $KDX_OUTCOME $KDX_EXIT_CODE > written")
    wait_until(lambda: terminal.is_at_work(since=20))
    sweep.send_signal(signal.SIGTERM)
    assert sweep.wait(GIVE_UP) == 143
    assert (terminal.folder / "written").read_text() == "stopped 143\n"


def test_slurm_says_the_end_of_its_jobs_itself(terminal):
    terminal.write("grid.yaml", GRID.replace("STEPS", "20"))
    done = terminal.type("kdx sweep grid.yaml --slurm --on-end true")
    assert done.returncode == 2 and "--on-end and --slurm exclude each other" in done.stderr


@pytest.mark.parametrize("words", [["sweep", "grid.yaml", "--mirror", "trackio"], ["export", "--format", "trackio"]])
def test_a_mirror_without_its_program_is_refused_before_anything_starts(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "runs.db")
    monkeypatch.setattr("kdx.mirrors.choice.find_spec", lambda name: None)
    problem = refused(*words)
    assert (problem.problem, problem.hint) == (
        "trackio is not installed",
        "in a clone of kdx: pip install -c constraints.txt '.[trackio]'",
    )
    assert [sweep.name for sweep in kdx.sweeps()] == [sweep.name for sweep in kdx.sweeps(EXAMPLE)]


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (typer.Exit(4), 4),
        (SystemExit(130), 130),
        (KdxError("no"), 2),
        (OSError(errno.ENOSPC, "No space left"), 74),
        (ModuleNotFoundError("no", name="torch"), 2),
        (ZeroDivisionError(), 1),
    ],
    ids=repr,
)
def test_the_code_that_the_last_command_sees_is_that_of_kdx(ended, code):
    assert _code_of(ended) == code
