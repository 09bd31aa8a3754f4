"""Words of a command name runs by number, or a sweep with conditions."""

from pathlib import Path

import pytest
from looked_after import DB, completed, planned

from kdx.cli.context import Context
from kdx.cli.named_runs import named_runs
from kdx.errors import KdxError
from kdx.store import remarks
from kdx.store.database import open_database


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
