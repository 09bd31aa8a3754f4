"""What the commands that start runs share: how many at a time, under which options, and what is said at the end."""

import os
import signal
from pathlib import Path

import pytest
from grids import TINY
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.run_options import RunOptions
from kdx.sweep.supervisor import Supervisor
from kdx.vocabulary import IfChanged


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

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Supervisor, "run", run)
    monkeypatch.setattr("faulthandler.register", lambda *_, **__: None)  # the runner's stderr is no file
    Path("grid.yaml").write_text(TINY % {"steps": 10, "seeds": 1})
    return supervised


@pytest.mark.parametrize(
    ("named", "options", "wanted"),
    [
        ("0,2", [], (2, ("0", "2"))),
        ("0,2", ["--workers", "5"], (5, ("0", "2"))),
        ("", [], (len(os.sched_getaffinity(0)), ())),
    ],
)
def test_there_are_as_many_workers_as_gpus_or_else_as_cores(supervised, monkeypatch, named, options, wanted):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    result = CliRunner().invoke(app, ["sweep", "grid.yaml", *options])
    assert (result.exit_code, [(each.workers, each.gpus) for each in supervised]) == (0, [wanted]), result.output


@pytest.mark.parametrize("command", [["sweep", "grid.yaml"], ["resume"], ["retry", "1"]])
def test_every_command_that_starts_runs_hands_on_what_they_are_told(supervised, command):
    CliRunner().invoke(app, ["sweep", "grid.yaml"])
    for words, expected in (
        ([], RunOptions()),
        (["--if-changed", "continue", "--hang-after", "7"], RunOptions(IfChanged.CONTINUE, 7.0)),
    ):
        result = CliRunner().invoke(app, [*command, *words])
        assert (result.exit_code, supervised[-1].options) == (0, expected), result.output


@pytest.mark.parametrize(
    ("ends", "counts", "code", "expected"),
    [
        (None, {"completed": 2}, 0, "2 runs: 2 completed; next: kdx report tiny"),
        (None, {"completed": 1, "pruned": 1}, 0, "2 runs: 1 completed, 1 pruned; next: kdx report tiny"),
        (None, {"failed": 1}, 4, "1 runs: 1 failed; try them again with: kdx resume --failed tiny"),
        (signal.SIGTERM, {"interrupted": 1}, 143, "1 runs: 1 interrupted; go on with: kdx resume tiny"),
    ],
)
def test_the_last_line_says_what_was_done_and_what_to_type_next(supervised, ends, counts, code, expected):
    supervised.ends, supervised.counts = ends, counts
    result = CliRunner().invoke(app, ["sweep", "grid.yaml"])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (code, expected)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_are_heard_by_nobody_after_the_end(supervised, signum):
    before = signal.getsignal(signum)
    CliRunner().invoke(app, ["sweep", "grid.yaml"])
    assert supervised and signal.getsignal(signum) == before
