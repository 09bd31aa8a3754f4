"""Words of a command name runs by number, or a sweep with conditions."""

from dataclasses import replace
from pathlib import Path

import pytest
from looked_after import DB, completed, planned
from looked_after import refused as refused_by

from kdx.cli.context import Context
from kdx.cli.named_runs import RunView, chosen, named_runs
from kdx.errors import KdxError
from kdx.store import remarks
from kdx.store.database import open_database
from kdx.store.records import RunRecord, RunState


def named(*words: str):
    with open_database(DB, write=False) as database:
        return named_runs(database, words, Context(str(DB)))


def refused(*words: str) -> KdxError:
    with pytest.raises(KdxError) as caught:
        named(*words)
    return caught.value


def test_runs_are_named_by_number_or_as_a_sweep():
    runs = planned(3)
    assert named("2", "1", "2").runs == (runs[1], runs[0])
    whole = named("tiny")
    assert (whole.sweep, whole.whole, whole.runs) == ("tiny", True, runs)


def test_conditions_narrow_both():
    first, *_ = planned(3)
    completed(first)
    found = named("tiny", "state=pending", "seed=2")
    assert ([run.seed for run in found.runs], found.whole) == ([2], False)
    assert [run.seed for run in named("1", "2", "state=completed").runs] == [0]
    with open_database(DB, write=True) as database:
        remarks.annotate(database, run_id=2, text="", tags=["odd"])
    assert [run.id for run in named("tiny", "tag=odd").runs] == [2]


def test_a_sweep_may_have_a_name_like_a_condition():
    runs = planned(2, name="a=b")
    assert named("a=b").runs == runs


def test_a_sweep_is_named_by_its_grid_file_as_it_was_planned():
    runs = planned(2)
    found = named("grid.yaml", "seed=1")
    assert (found.sweep, found.whole, found.runs) == ("tiny", False, runs[1:])
    assert named("grid.yaml").whole
    text = Path("grid.yaml").read_text()
    Path("a=b.yaml").write_text(text)
    assert named("a=b.yaml").sweep == "tiny"
    Path("grid.yaml").write_text(text.replace("steps: 10", "steps: 11"))
    assert "was not planned from this grid as it is now" in refused("grid.yaml").problem


def test_what_names_nothing_or_too_much_is_refused():
    planned(2)
    assert refused("77").problem == "there is no run 77"
    assert refused("77", "78", "1").problem == "there are no runs 77, 78"
    assert refused("tinny").hint == "did you mean `tiny`?"
    for words in ((), ("tiny", "1"), ("seed=1",), ("tiny", "other")):
        assert "names no runs" in refused(*words).problem or "no runs are named" in refused(*words).problem
    assert refused("tiny", "seed=9").problem == "no run has seed=9"


def test_a_database_in_the_place_of_a_sweep_is_recognised():
    planned(1)
    fault = refused_by("report", "runs.db")
    assert str(fault) == "`runs.db` is a database, not a sweep\n  hint: name it with --db runs.db"
    Path("text").write_text("no database")
    assert refused_by("report", "text").problem == "there is no sweep `text`"


def view(run: int, *, state: str = "completed", invalidated: str | None = None, **more) -> RunView:
    fields = {"id": run, "cell_id": "c0ffee", "seed": run, "state": RunState(state), "invalidated": invalidated}
    record = RunRecord(**{**dict.fromkeys(RunRecord._fields), **fields})
    return RunView(record, **{"choices": {"kernel": "rbf"}, **more})


RUNS = [
    view(1, tags=["odd", "late"]),
    view(2, choices={"kernel": "linear"}, state="failed", not_needed="decided after 2 seeds"),
    view(3, tags=["odd"], invalidated="a bad disk"),
]


@pytest.mark.parametrize(
    ("conditions", "runs"),
    [
        ([], [1, 2, 3]),
        (["tag=odd"], [1, 3]),
        (["tag=odd", "tag=late"], [1]),
        (["cell=c0ff"], [1, 2, 3]),
        (["kernel=rbf", "seed=3"], [3]),
        (["state=failed", "run=2"], [2]),
        (["state=completed"], [1, 3]),
        (["state=invalidated"], [3]),
        (["state=not_needed"], [2]),
    ],
)
def test_runs_meet_all_conditions(conditions, runs):
    assert [each.record.id for each in chosen(RUNS, conditions)] == runs


def test_a_condition_that_fits_no_run_is_refused_with_what_there_is():
    with pytest.raises(KdxError) as caught:
        chosen(RUNS, ["tag=od"])
    assert (caught.value.problem, caught.value.hint) == ("no run has tag=od", "did you mean `odd`?")
    with pytest.raises(KdxError, match="several cells begin with `c0ff`"):
        chosen([*RUNS, replace(RUNS[0], record=RUNS[0].record._replace(cell_id="c0ff11"))], ["cell=c0ff"])
    with pytest.raises(KdxError, match="no run has one yet"):
        chosen([view(1)], ["tag=odd"])
