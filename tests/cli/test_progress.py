"""How a sweep is shown: one line an event, or a display that keeps its place."""

import io
import os
import sys
from dataclasses import replace
from functools import partial

import pytest
from rich.text import Text

from kdx.cli import progress as shown
from kdx.cli.progress import IMPORTING, Lines, Live, progress
from kdx.grid.plan import Plan, PlannedCell, PlannedRun
from kdx.grid.spec import CellSpec
from kdx.store.records import RunRecord, RunState
from kdx.sweep.blocked import Pause
from kdx.sweep.decide import decide
from kdx.sweep.lease_holder import Liveness

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})
PLAN = Plan("[red]demo\x1b[2J", (PlannedCell("a" * 32, 0, {"kernel": "[b]rbf"}, SPEC),), seeds=(0, 1, 2))
FIRST, SECOND, _ = PLAN.runs


def record(run: PlannedRun, state: RunState, **fields) -> RunRecord:
    fields = {"valid_score": None, "test_score": None, "error": None, **fields}
    return RunRecord(
        run.seed, run.cell.id, run.seed, 0, state, 1, None, None, 0, 0, valid_step=1, seconds=1.0, **fields
    )


def decided(*records: RunRecord):
    return decide(
        PLAN,
        {each.key: each for each in records},
        lambda owner: Liveness.GONE,
        lambda run: 380,
        {},
        lambda run: True,
    )


def walk(listener: Lines) -> None:
    """A sweep of three runs, one of them ended already: one completes, one fails."""
    over = record(PLAN.runs[2], RunState.DIVERGED, error="NaN")
    listener.decided(decided(over))
    listener.started(FIRST, 1)
    listener.progressed(FIRST, 400, 1.25)
    listener.started(SECOND, 1)
    done = record(FIRST, RunState.COMPLETED, valid_score=31.237, test_score=30.1)
    listener.ended(FIRST, done)
    listener.decided(decided(over, done))
    listener.host_lost("the process that workers are forked from was killed by SIGKILL")
    listener.stopping()
    failed = record(SECOND, RunState.FAILED, error="ValueError: \x1b[31mno")
    listener.ended(SECOND, failed)
    listener.decided(decided(over, done, failed))


def test_each_event_is_one_line(capsys):
    listener = Lines(PLAN)
    walk(listener)
    assert capsys.readouterr() == (
        "",
        "[red]demo\\x1b[2J: 3 runs, 1 already ended\n"
        "started aaaaaaaa [b]rbf · seed 0\n"
        "started aaaaaaaa [b]rbf · seed 1\n"
        "completed aaaaaaaa [b]rbf · seed 0: bleu 31.24 valid, 30.10 test (0 s)\n"
        "the process that workers are forked from was killed by SIGKILL, and all workers with it: starting another\n"
        "stopping at the next safe point; once more ends at once\n"
        "failed aaaaaaaa [b]rbf · seed 1: ValueError: \\x1b[31mno (0 s)\n",
    )
    assert listener.counts == {"failed": 1, "completed": 1, "diverged": 1}


def test_a_run_that_another_process_took_over_has_not_ended_here(capsys):
    listener = Lines(PLAN)
    listener.decided(decided())
    listener.started(FIRST, 1)
    listener.ended(FIRST, record(FIRST, RunState.RUNNING))
    assert capsys.readouterr().err.endswith("\nanother kdx has aaaaaaaa [b]rbf · seed 0 now\n")
    assert listener.ended_here == {}


def test_runs_that_are_left_to_others_are_told_once_for_each_reason(capsys):
    listener = Lines(None)
    left = [replace(each, left="device A → B") for each in decided()]
    listener.decided((*left[:2], replace(left[2], left=None)))
    listener.decided(tuple(left))
    listener.decided(tuple(replace(each, left="its checkpoint is not here") for each in left[:1]))
    assert capsys.readouterr().err == (
        "2 runs left to other workers: device A → B\n1 run left to other workers: its checkpoint is not here\n"
    )


def test_paused_runs_are_counted_apart_and_what_ended_here_is_kept():
    listener = Lines(PLAN)
    failed = record(FIRST, RunState.FAILED, error="no")
    listener.started(FIRST, 1)
    listener.ended(FIRST, failed)
    pause = Pause("ValueError in f (x.py)", 2)
    listener.decided(tuple(replace(each, pause=pause if each.record is None else None) for each in decided(failed)))
    assert listener.counts == {"failed": 1, "paused": 2}
    assert listener.ended_here == {failed.id: RunState.FAILED}


def test_now_and_then_one_line_tells_of_the_whole_sweep(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    listener = Lines(PLAN)
    done = record(PLAN.runs[2], RunState.COMPLETED, valid_score=1.0, test_score=1.0)
    listener.decided(decided(done))
    listener.started(FIRST, 1)
    listener.started(SECOND, 1)
    listener.progressed(FIRST, 400, 1.25)
    now[0] += shown.EVERY
    listener.progressed(SECOND, 1000, 2.5)
    listener.progressed(FIRST, 500, 1.0)
    listener.ended(SECOND, record(SECOND, RunState.COMPLETED, valid_score=1.0, test_score=1.0))
    now[0] += shown.EVERY
    listener.progressed(FIRST, 600, 1.0)
    lines = [line for line in capsys.readouterr().err.splitlines() if "runs ended" in line]
    assert lines == [
        "1 of 3 runs ended, 2 running: aaaaaaaa [b]rbf · seed 0 at step 400 of 1,000, loss 1.250; "
        "aaaaaaaa [b]rbf · seed 1 at step 1,000 of 1,000, loss 2.500",
        "2 of 3 runs ended, 1 running; about 24 s left: aaaaaaaa [b]rbf · seed 0 at step 600 of 1,000, loss 1.000",
    ]


def test_of_many_active_runs_the_first_are_named(capsys, monkeypatch):
    monkeypatch.setattr(shown, "EVERY", -1.0)
    plan = replace(PLAN, seeds=tuple(range(10)))
    listener = Lines(plan)
    for run in plan.runs:
        listener.progressed(run, 1, 1.0)
    assert capsys.readouterr().err.splitlines()[-1].count("seed") == shown.MOST_NAMED - 1
    assert listener.now().endswith("and 7 more")


@pytest.mark.parametrize("listener", [Lines, Live])
def test_what_goes_on_is_told_with_the_step_that_it_goes_on_from(listener, capsys):
    display = listener(PLAN)
    if listener is Live:
        display.console.file = sys.stderr
    display.decided(decided(record(FIRST, RunState.INTERRUPTED)))
    display.started(FIRST, 2)
    line = "started aaaaaaaa [b]rbf · seed 0 (attempt 2, from its checkpoint at step 380: interrupted at step 0)\n"
    assert line in capsys.readouterr().err


@pytest.mark.parametrize("listener", [Lines, Live])
def test_what_a_run_has_to_say_is_one_line_with_its_name(listener, capsys):
    display = listener(PLAN)
    if listener is Live:
        display.console.file = sys.stderr
    display.noted(FIRST, "resumes from step 511, not 979: \x1b[31m")
    assert capsys.readouterr().err == "aaaaaaaa [b]rbf · seed 0 resumes from step 511, not 979: \\x1b[31m\n"


def test_the_time_left_is_that_of_similar_runs_shared_by_all_workers():
    listener = Lines(PLAN, workers=2)
    listener.decided(decided())
    assert listener.left() is None, "nothing like it has completed"
    listener = Lines(PLAN, workers=2, expect=lambda: {FIRST.cell.id: 100.0})
    listener.decided(decided())
    assert listener.left() == 200.0, "three runs, two at a time"
    listener.started(FIRST, 1)
    listener.started(SECOND, 1)
    for run in (FIRST, SECOND):
        listener.progressed(run, SPEC.training.steps // 2, 1.0)
    assert listener.left() == 150.0
    listener.ended(FIRST, record(FIRST, RunState.COMPLETED))
    assert listener.left() == 100.0, "the place of a run that has ended is free, before another starts"


def test_the_display_shows_the_sweep_and_each_run_at_work():
    live = Live(PLAN, workers=2, expect=lambda: {FIRST.cell.id: 7200.0})
    live.console.file = io.StringIO()
    live.decided(decided(record(SECOND, RunState.INTERRUPTED, checkpoint_step=250)))
    live.started(FIRST, 1)
    live.started(SECOND, 2)
    live.progressed(FIRST, 400, 1.25)
    whole, first, second = live.bars.tasks
    assert whole.fields["status"] == "2 running", "before the next look"
    assert (whole.description, whole.total, whole.completed) == ("[red]demo\\x1b[2J", 3, 0)
    assert (first.completed, first.total, first.fields["status"]) == (400, SPEC.training.steps, "loss 1.250")
    assert (second.completed, second.fields["status"]) == (250, IMPORTING), "it resumes from its checkpoint"

    done = record(FIRST, RunState.COMPLETED)
    live.ended(FIRST, done)
    assert whole.completed == 1, "before the next look"
    live.decided(decided(done))
    assert [task.description for task in live.bars.tasks] == [whole.description, second.description]
    assert whole.fields["status"] == "1 running, about 2 h left"
    assert whole.completed == 1
    live.progressed(FIRST, 500, 1.0)  # a late message
    assert "completed aaaaaaaa [b]rbf · seed 0 (0 s)" in live.console.file.getvalue()


def test_a_run_shows_what_it_waits_for_before_its_first_step():
    live = Live(PLAN)
    live.console.file = io.StringIO()
    live.decided(decided())
    live.started(FIRST, 1)
    _, first = live.bars.tasks
    assert first.fields["status"] == "importing torch"
    live.begins(FIRST, "preparing data")
    assert first.fields["status"] == "preparing data"
    live.started(SECOND, 1)
    assert live.bars.tasks[2].fields["status"] == "starting", "torch is there"
    live.ended(SECOND, record(SECOND, RunState.COMPLETED))
    live.begins(SECOND, "preparing data")  # a late message


LONG = replace(PLAN.cells[0], labels={"approach": "Vaswani et al. (2017), Eq. 4", "kernel": "exponential"})


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_bars_end_before_the_edge_and_lose_words_of_names_not_digits(monkeypatch, columns):
    screen = io.StringIO()
    monkeypatch.setattr(shown, "Console", partial(shown.Console, file=screen, force_terminal=True, width=columns))
    live = Live(replace(PLAN, cells=(LONG,)))
    run = PlannedRun(LONG, 0)
    live._add(run, total=1000, completed=0, status="starting")
    live.progressed(run, 400, 1.25)
    live.console.print(live.bars.get_renderable())
    _, line = Text.from_ansi(screen.getvalue()).plain.splitlines()
    assert len(line) == min(columns - 2, shown.WIDEST)
    name = (
        "Vaswani et al. (2017), Eq. 4 · exponential · seed 0"
        if columns > 80
        else "Vaswani et al. … exponential · seed 0"
    )
    assert line.startswith(f"{name} ") and line.rstrip().endswith(" 400/1000 loss 1.250 0:00:00")


def test_nothing_of_the_bars_stays_on_the_screen(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(shown, "Console", partial(shown.Console, file=screen, force_terminal=True, width=80))
    live = Live(PLAN)
    with live.bars:
        live.decided(decided())
    assert screen.getvalue().endswith("\x1b[2K"), "the last line of the bars is erased"


def test_a_second_ctrl_c_leaves_no_run_that_counts_as_running():
    live = Live(PLAN)
    live.console.file = io.StringIO()
    live.decided(decided())
    live.started(FIRST, 1)
    live.stopping()
    live.killed()
    assert (live.counts, live.tasks) == ({"pending": 2, "interrupted": 1}, {})


def test_what_a_run_says_cannot_drive_the_display():
    live = Live(replace(PLAN, name="demo"))
    live.console.file = io.StringIO()
    walk(live)
    assert "\x1b" not in live.console.file.getvalue()


@pytest.mark.parametrize(("terminal", "kind"), [(True, Live), (False, Lines)])
def test_the_display_appears_on_a_terminal_only(monkeypatch, terminal, kind):
    if terminal:
        control, side = os.openpty()
        file = os.fdopen(side, "w")
    else:
        control, file = os.open(os.devnull, os.O_RDONLY), io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with progress(PLAN) as listener:
        assert type(listener) is kind
    file.close()
    os.close(control)


class _Search:
    """What the display reads of a search."""

    total, ended, runs_left = 50, 12, 76


def test_a_search_is_counted_in_trials(capsys, monkeypatch):
    monkeypatch.setattr(shown, "EVERY", 0.0)
    listener = Lines(PLAN, _Search())  # type: ignore[arg-type]
    listener.decided(decided())
    listener.started(FIRST, 1)
    listener.progressed(FIRST, 400, 1.25)
    trial = record(FIRST, RunState.COMPLETED, valid_score=31.237)
    listener.ended(FIRST, trial)
    first, _, now, ended = capsys.readouterr().err.splitlines()
    assert first.endswith(": a search of 50 trials, 12 of them ended")
    assert now.startswith("50 trials, 12 of them ended, 1 running")
    assert ": bleu 31.24 valid (" in ended, "a trial has no test score"
    assert listener.left() == pytest.approx(76 * listener.seconds[0])
    live = Live(PLAN, _Search())  # type: ignore[arg-type]
    live.decided(decided())
    (task,) = live.bars.tasks
    assert (task.completed, task.total) == (12, 50)
