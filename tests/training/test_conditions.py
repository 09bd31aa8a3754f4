"""A run resumes with the same bits or not at all, unless the user asks for it."""

import pytest
from runs import STEPS, cell, run, same_bits, save_every_step

from kdx.errors import ChangedError
from kdx.run_options import RunOptions
from kdx.training import run as running
from kdx.training.environment import environment
from kdx.training.resume import changes, conditions
from kdx.vocabulary import IfChanged

FACTS = {"torch": "2.12.0", "threads": 1, "host": "a", "cores": 8, "kdx": "1"}
CODE = {"kdx.training.run": "code"}


def test_what_no_bit_depends_on_is_no_condition():
    here = conditions(FACTS, "data", CODE)
    assert here == {"torch": "2.12.0", "threads": "1", "data": "data", "code kdx.training.run": "code"}
    assert changes(here, conditions(FACTS | {"host": "b", "cores": 2, "kdx": "2"}, "data", CODE)) is None


def test_each_change_is_told_and_hashes_are_short(figure):
    before = conditions(FACTS, "a" * 64, {"kdx.training.run": "b" * 64, "kdx.models.set": "d" * 64})
    now = conditions(
        {"torch": "2.13.0", "device": "cpu"}, "a" * 64, {"kdx.training.run": "c" * 64, "kdx.models.set": "d" * 64}
    )
    told = changes(before, now)
    assert told == (
        "torch 2.12.0 → 2.13.0, threads 1 → not recorded, code kdx.training.run bbbbbbbb → cccccccc,"
        " device not recorded → cpu"
    )
    figure(f"told: {told}")


@pytest.fixture
def stopped(home, tmp_path, unbroken, monkeypatch):
    """A run that came to step 7, and then another torch."""
    unbroken("prediction")  # which other tests share, so it is made under this torch
    save_every_step(monkeypatch)
    run(cell("prediction"), tmp_path, home, stop_after=7)
    monkeypatch.setattr(running, "environment", lambda training: environment(training) | {"torch": "3.0.0"})
    return tmp_path


def test_under_other_conditions_a_run_is_refused_and_nothing_changes(stopped, home, figure):
    files = sorted(stopped.iterdir())
    with pytest.raises(ChangedError, match=r"came to step 7 under other conditions: torch .* → 3\.0\.0") as refused:
        run(cell("prediction"), stopped, home)
    assert "--if-changed restart" in str(refused.value)
    assert refused.value.changes is not None and refused.value.problem.endswith(f": {refused.value.changes}")
    left = sorted(stopped.iterdir())
    assert left == files
    figure(f"refused: {refused.value.problem}; {len({*left} ^ {*files})} of {len(files)} files changed")


def test_it_begins_anew_when_told_to_and_ends_as_one_that_was_never_stopped(stopped, home, unbroken):
    again = run(cell("prediction"), stopped, home, options=RunOptions(IfChanged.RESTART))
    (begin,) = again.of("begin")
    assert begin[4] == 0 and "torch" in begin[5]
    whole = unbroken("prediction")
    assert again.column("train/loss").keys() == set(range(1, STEPS + 1))
    assert again.rows == whole.rows and same_bits(again.weights, whole.weights)


def test_it_goes_on_when_told_to_and_says_what_changed(stopped, home):
    more = run(cell("prediction"), stopped, home, options=RunOptions(IfChanged.CONTINUE))
    (begin,) = more.of("begin")
    assert begin[4] == 7 and "→ 3.0.0" in begin[5]
    assert min(more.column("train/loss")) == 8


def test_the_next_attempt_is_compared_with_the_last_checkpoint(stopped, home):
    run(cell("prediction"), stopped, home, stop_after=9, options=RunOptions(IfChanged.CONTINUE))
    (begin,) = run(cell("prediction"), stopped, home).of("begin")
    assert begin[4:6] == (9, None)


def test_the_checkpoint_of_another_run_is_set_aside(home, tmp_path, monkeypatch, figure):
    save_every_step(monkeypatch)
    run(cell("prediction"), tmp_path, home, seed=1, stop_after=7)
    (begin,) = run(cell("prediction"), tmp_path, home).of("begin")
    assert begin[4:6] == (0, None)
    aside = len(list(tmp_path.glob("step-*.corrupt")))
    assert aside == 2
    figure(f"{aside} checkpoints of another seed set aside, begun at step {begin[4]}")
