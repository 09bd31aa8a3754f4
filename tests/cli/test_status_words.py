"""The words that `kdx status` has for workers."""

import pytest

from kdx.cli.status_of_sweeps import states_in_words
from kdx.cli.status_words import without_blanks, worker_of
from kdx.store.status import WorkRecord
from kdx.sweep.lease_holder import lease_holder

HERE = lease_holder()
GONE = "/".join([*HERE.split("/")[:3], "999999999", *HERE.split("/")[4:]])


def work(owner: str | None, lease_left: float | None = 30.0, **more: object) -> WorkRecord:
    return WorkRecord(**{**dict.fromkeys(WorkRecord._fields), "owner": owner, "lease_left": lease_left, **more})


def test_of_pending_runs_there_may_be_fewer_where_a_rule_decides():
    counts = {"completed": 1200, "pending": 3}
    assert states_in_words(counts, has_rule=False) == "1,200 completed, 3 pending"
    assert states_in_words(counts, has_rule=True) == "1,200 completed, at most 3 pending"
    assert states_in_words({}, has_rule=True) == "no runs"


@pytest.mark.parametrize(
    ("claim", "alive", "place"),
    [
        (work(HERE), True, " here"),
        (work(GONE), False, " here, which is gone"),
        (work("there/b/n/7/1/x", -1.0), True, " on machine there, whose lease has lapsed"),
        (work(HERE, gpu="0", device="a GPU"), True, " here, on GPU 0 (a GPU)"),
        (work(None), False, "a process of another kdx"),
    ],
)
def test_a_process_is_where_it_works_and_whether_it_may_still_work(claim, alive, place):
    worker = worker_of(claim)
    assert worker.alive == alive and worker.place.endswith(place)


def test_a_column_without_words_is_left_out():
    lines = [("a", "", 1), ("b", "", 2)]
    assert without_blanks(("name", "tags", "n"), lines, "tags") == (("name", "n"), [("a", 1), ("b", 2)])
    lines[0] = ("a", "odd", 1)
    assert without_blanks(("name", "tags", "n"), lines, "tags") == (("name", "tags", "n"), lines)
